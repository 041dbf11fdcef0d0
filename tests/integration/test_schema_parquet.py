"""Columns of Parquet tables that change: old files stay as they are, and every reader that asks for all columns sees each value (docs/reference/schemas.md)."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from partitions.errors import RowsRefused, TargetError
from partitions.loads import Append, Load, Replace
from partitions.predicate import Among
from resources.connections.places import Place
from resources.tables.contract.commits import TableCommit, Tag
from resources.tables.parquet.commit_list import CommitList
from resources.tables.parquet.table import ParquetTable
from tests.support.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MERGE: dict[str, Any] = {"format": "parquet", "schema_mode": "merge"}


def write(
    folder: Path,
    number: int,
    rows: DataFrame,
    load: Load | None = None,
    partition_by: tuple[str, ...] = (),
    mode: Any = "merge",
) -> ParquetTable:
    """Load rows under a number, as a run does it."""
    table = ParquetTable(Place(str(folder)), partition_by, schema_mode=mode)
    base = table.tip("app").version
    table.write(rows, load or Append(), Tag("app", number, f"intent {number}"), "{}", base=base)
    table.after_append(TableCommit(None), "flow")
    return table


def found(feed: Feed, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a dataflow's table, as Strandline reads them, by ``id``."""
    table = feed.platform.table(feed.dataflow)
    rows = (
        table.contents.read(feed.engine.session(), table.contents.newest_version()).select(*columns).collect()
    )
    return sorted(map(tuple, rows), key=lambda row: (row[0] is None, row[0]))


NARROW = (
    "SELECT 1 AS id, CAST(1 AS byte) AS b, CAST(2 AS short) AS s, CAST(1.5 AS float) AS f, CAST(1.25 AS decimal(5,2)) AS d,"
    " named_struct('x', 1) AS st, array(1) AS a, map('k', 1) AS m"
)
WIDE = (
    "SELECT CAST(2 AS long) AS id, CAST(300 AS short) AS b, CAST(2 AS long) AS s, CAST(0.1 AS double) AS f, CAST(2.125 AS decimal(9,4)) AS d,"
    " named_struct('y', 't', 'x', CAST(2 AS long)) AS st, array(CAST(2 AS long)) AS a, map('k', CAST(2 AS long)) AS m, 'new' AS n"
)
COLUMNS = ("id", "b", "s", "f", "d", "st", "a", "m", "n")
FIRST = (1, 1, 2, 1.5, Decimal("1.2500"), (1, None), [1], {"k": 1}, None)
SECOND = (2, 300, 2, 0.1, Decimal("2.1250"), (2, "t"), [2], {"k": 2}, "new")


def test_wider_types_and_new_fields_are_read_from_all_files(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t", 1, spark.sql(NARROW))
    table = write(tmp_path / "t", 2, spark.sql(WIDE))
    rows = table.contents.read(spark, 2).select(*COLUMNS)
    assert dict(rows.dtypes)["st"] == "struct<x:bigint,y:string>"
    assert sorted(map(tuple, rows.collect())) == [FIRST, SECOND]
    assert [len(row) for row in table.contents.read(spark, 1).collect()] == [8], (
        "the version before stays as it was"
    )
    assert table.contents.highest_values(["id", "b", "f", "d"]) == {
        "id": 2,
        "b": 300,
        "f": 1.5,
        "d": Decimal("2.1250"),
    }
    assert [row["n"] for row in table.contents.distinct_rows(["n"])] == [None, "new"]
    assert table.contents.holds_any(2, Among("d", (Decimal("1.25"),)))
    narrow = write(tmp_path / "t", 3, spark.sql(NARROW.replace("1 AS id", "3 AS id")))
    assert sorted(row[0] for row in narrow.contents.read(spark, 3).select("id").collect()) == [1, 2, 3]


def test_plain_readers_of_all_schemas_see_each_value(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    columns = "SELECT CAST(1 AS int) AS id, CAST(1.5 AS float) AS f"
    write(folder, 1, spark.sql(columns))
    write(folder, 2, spark.sql("SELECT CAST(2 AS long) AS id, CAST(0.1 AS double) AS f, 'new' AS n"))
    expected = [(1, 1.5, None), (2, 0.1, "new")]
    asked = f"SELECT id, f, n FROM read_parquet('{folder}/*.parquet', union_by_name = true) ORDER BY id"
    assert duckdb.connect().execute(asked).fetchall() == expected
    told = spark.read.schema("id long, f double, n string").parquet(str(folder))
    assert sorted(map(tuple, told.collect())) == expected
    newest = max(folder.glob("*.parquet"), key=lambda file: len(pq.read_schema(file)))
    rows = ds.dataset(folder, schema=pq.read_schema(newest)).to_table().to_pylist()
    assert sorted((row["id"], row["f"], row["n"]) for row in rows) == expected


def test_rows_copied_out_of_old_files_get_new_columns(spark: SparkSession, tmp_path: Path) -> None:
    two = spark.createDataFrame([(1, "a"), (2, "b")], "id int, unit string").coalesce(1)
    write(tmp_path / "t", 1, two)
    more = spark.createDataFrame([("b", 3, 7)], "unit string, id long, more int")
    table = write(tmp_path / "t", 2, more, Replace(Among("unit", ("b",))))
    assert sorted(map(tuple, table.contents.read(spark, 2).collect())) == [(1, "a", None), (3, "b", 7)]
    commit = table.head(None, "app").tagged_commits[-1]
    assert (commit.rows, commit.removed) == (1, 1)


def test_a_partition_column_keeps_its_values_as_it_widens(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t", 1, spark.sql("SELECT 1 AS id, CAST(5 AS int) AS part"), partition_by=("part",))
    table = write(tmp_path / "t", 2, spark.sql("SELECT 2 AS id, CAST(99999999999 AS long) AS part"))
    assert sorted(map(tuple, table.contents.read(spark, 2).collect())) == [(1, 5), (2, 99999999999)]
    assert table.contents.highest_values(["part"]) == {"part": 99999999999}
    gone = spark.sql("SELECT 3 AS id, CAST(5 AS long) AS part")
    table = write(tmp_path / "t", 3, gone, Replace(Among("part", (5,))))
    assert sorted(row["id"] for row in table.contents.distinct_rows(["id"])) == [2, 3]


def test_a_partition_column_of_floats_does_not_become_wider(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t", 1, spark.sql("SELECT 1 AS id, CAST(0.1 AS float) AS part"), partition_by=("part",))
    with pytest.raises(RowsRefused, match="expected the type float of column part of partition_by to stay"):
        write(tmp_path / "t", 2, spark.sql("SELECT 2 AS id, CAST(0.1 AS double) AS part"))
    assert ParquetTable(Place(str(tmp_path / "t"))).contents.count_rows() == 1


def test_a_writer_does_not_take_back_columns_that_came_while_it_wrote(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "t", 1, spark.sql("SELECT 1 AS id"))
    late = ParquetTable(Place(str(tmp_path / "t")), schema_mode="merge")
    commit = late._commit(Tag("other", 1, "late"), "{}")
    put, other = commit.log.put, spark.sql("SELECT 2 AS id, 'x' AS n")
    met: list[int] = []

    def put_late(made: CommitList) -> bool:
        if not met:
            met.append(1)
            write(tmp_path / "t", 2, other)
        return put(made)

    monkeypatch.setattr(commit.log, "put", put_late)
    with pytest.raises(TargetError, match="another dataflow changed its columns meanwhile"):
        commit.write(spark.sql("SELECT 3 AS id, 5 AS m"), Append(), (), 1)
    table = ParquetTable(Place(str(tmp_path / "t")))
    assert sorted(map(tuple, table.contents.read(spark, 2).collect()), key=str) == [(1, None), (2, "x")]


def test_a_lot_of_commits_after_a_change_still_know_the_columns(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "t", 1, spark.sql("SELECT 1 AS id"))
    write(tmp_path / "t", 2, spark.sql("SELECT 2 AS id, 'x' AS n"))
    for number in range(3, 23):
        ParquetTable(Place(str(tmp_path / "t"))).give_up(
            spark, Tag("app", number, f"{number}", gives_up=True), "{}", None
        )
    table = ParquetTable(Place(str(tmp_path / "t")))
    assert sorted(map(tuple, table.contents.read(spark, 22).collect()), key=str) == [(1, None), (2, "x")]
