"""Appends to Iceberg tables, and replacements of rows, that Strandline commits itself: what they look like to readers, and beside other writers (docs/iceberg.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from partitions.errors import RowsRefused, TargetError
from partitions.loads import Append, ByValue, Load, Replace, ReplaceKeys, Scd2, Upsert
from partitions.predicate import Among, Between, Predicate
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.tables import changed_rows
from resources.tables.contract.commits import Tag, TaggedCommit
from resources.tables.data_files import written as data_files
from resources.tables.iceberg import own_commit
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.own_commit import OwnCommit
from resources.tables.iceberg.table import IcebergTable
from tests.support.iceberg import foreign_table, iceberg_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APP = "app"
COLUMNS = (
    "yes boolean, tiny byte, whole int, long long, single float, double double, small decimal(9,2), large decimal(18,0), huge decimal(38,10),"
    " day date, at timestamp, local timestamp_ntz, text string, bytes binary, nested struct<a: int, b: struct<c: string, d: decimal(5,1)>>"
)
local = datetime.fromisoformat
ROWS: list[tuple[Any, ...]] = [
    (True, -128, -(2**31), -(2**63), 1.5, 2.5, Decimal("-9999999.99"), Decimal(10**17), Decimal("1e-10"),
     date(1582, 10, 4), local("1969-12-31 23:59:59.999999"), local("1900-01-01"), "ä\U0001f600" * 20, b"\xff" * 40,
     {"a": 1, "b": {"c": "x", "d": Decimal("0.1")}}),
    (False, 127, 2**31 - 1, 2**63 - 1, float("nan"), float("inf"), Decimal("0.01"), Decimal(-1), Decimal("9" * 28 + ".5"),
     date(9999, 12, 31), local("2026-01-01 12:00"), local("2026-01-01 12:00:00.000001"), "", b"", {"a": None, "b": None}),
    (None,) * 15,
]  # fmt: skip


@dataclass
class Lake:
    """One table, and whether its appends were Strandline's own."""

    spark: SparkSession
    folder: Path
    own: list[bool]

    def append(
        self, number: int, *rows: Any, columns: str = "id long", table: IcebergTable | None = None
    ) -> None:
        self.append_rows(number, self.spark.createDataFrame(list(rows), columns).coalesce(1), table)

    def replace(self, number: int, where: Predicate, *rows: Any, columns: str = "id long") -> None:
        given = self.spark.createDataFrame(list(rows), columns).coalesce(1)
        self.append_rows(number, given, load=Replace(where))

    def load(self, number: int, load: Load, *rows: Any, columns: str) -> None:
        self.append_rows(number, self.spark.createDataFrame(list(rows), columns), load=load)

    def append_rows(
        self, number: int, rows: DataFrame, table: IcebergTable | None = None, load: Load | None = None
    ) -> None:
        (table or self.table()).write(
            rows,
            load or Append(),
            Tag(APP, number, f"owner {number}"),
            str(number),
            base=self.table().tip(APP).version,
        )

    def make_again(self) -> None:
        """Somebody drops the table and makes it again, with a row of its own."""
        self.table().remove(lambda: self.spark)
        self.append(1, (7,))

    def table(self, *partition_by: str) -> IcebergTable:
        return IcebergTable(Place(str(self.folder)), partition_by)

    def call(self, procedure: str, **arguments: Any) -> None:
        """Another engine's procedure."""
        table = foreign_table(self.spark, self.folder)
        catalog, _, name = table.partition(".")
        given = ", ".join(f"{key} => {value}" for key, value in arguments.items())
        self.spark.sql(f"CALL {catalog}.system.{procedure}(table => '{name}', {given})").collect()

    def sql(self, text: str) -> Any:
        """Another engine's statement; ``{t}`` is the table."""
        return self.spark.sql(text.format(t=foreign_table(self.spark, self.folder))).collect()

    @property
    def ids(self) -> list[Any]:
        """The ids of all rows, which Spark and pyiceberg read alike."""
        by_spark = self.sql("SELECT id FROM {t}")
        assert len(by_spark) == len(iceberg_rows(self.folder, ["id"]))
        return sorted(row["id"] for row in by_spark)

    @property
    def committed_by(self) -> str | None:
        """What the newest commit under the app's tag says of its writer."""
        return self.table().head(None, APP).tagged[-1].committed_by

    @property
    def metadata(self) -> Metadata:
        found = FolderCatalog(Place(str(self.folder))).newest()
        assert found is not None
        return found

    @property
    def strays(self) -> set[str]:
        """Data files that the table does not know."""
        known = {Path(row["file_path"]).name for row in self.sql("SELECT file_path FROM {t}.all_data_files")}
        return {path.name for path in (self.folder / "data").rglob("*.parquet")} - known


@pytest.fixture
def lake(engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    own: list[bool] = []
    land = OwnCommit.land

    def told(self: OwnCommit, *arguments: Any) -> str | None:
        reason = land(self, *arguments)
        own.append(reason is None)
        return reason

    monkeypatch.setattr(OwnCommit, "land", told)
    return Lake(engine.session(), tmp_path / "lake/bronze/t", own)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Have somebody act once the files of an append are written, before it is committed."""

    def arranged(act: Callable[[], Any]) -> None:
        write = data_files.write_files

        def written(*arguments: Any, **more: Any) -> None:
            write(*arguments, **more)
            monkeypatch.setattr(own_commit, "write_files", write)
            act()

        monkeypatch.setattr(own_commit, "write_files", written)

    return arranged


def test_values_of_every_type_are_read_back_and_found_by_their_bounds(lake: Lake) -> None:
    lake.append(1, columns=COLUMNS)
    lake.append(2, *ROWS, columns=COLUMNS)
    assert lake.own == [True]
    read = lake.table().contents.read(lake.spark, lake.table().contents.newest_version())
    assert sorted(map(str, read.collect())) == sorted(
        map(str, lake.spark.createDataFrame(ROWS, COLUMNS).collect())
    )
    by_pyiceberg = iceberg_rows(lake.folder, ["whole", "huge", "at", "nested", "_commit"])
    zoned = ROWS[0][10].replace(tzinfo=UTC)
    assert (ROWS[0][2], ROWS[0][8], zoned, ROWS[0][14], f"{APP}:0000000002") in [
        tuple(row.values()) for row in by_pyiceberg
    ]
    for name in read.columns:
        found = lake.sql(f"SELECT count(*) n FROM {{t}} WHERE {name} = (SELECT max({name}) FROM {{t}})")
        assert found[0]["n"] == 1, name
        lowest = lake.sql(f"SELECT count(*) n FROM {{t}} WHERE {name} = (SELECT min({name}) FROM {{t}})")
        assert lowest[0]["n"] == 1, name


def test_the_bounds_of_an_append_are_those_that_spark_s_own_commit_has(lake: Lake, tmp_path: Path) -> None:
    lake.append(1, columns=COLUMNS)
    lake.append(2, *ROWS, columns=COLUMNS)
    other = Lake(lake.spark, tmp_path / "lake/bronze/other", [])
    other.append(1, *ROWS, columns=COLUMNS)  # makes the table, which is Spark's to do
    bounds = "SELECT lower_bounds, upper_bounds, null_value_counts, record_count FROM {t}.files"
    (mine,), (theirs,) = lake.sql(bounds), other.sql(bounds)
    commit = max(mine["lower_bounds"])
    for column in theirs["null_value_counts"]:
        assert mine["null_value_counts"][column] == theirs["null_value_counts"][column], column
    for side in ("lower_bounds", "upper_bounds"):
        for column, bound in mine[side].items():
            assert column == commit or bound == theirs[side].get(column, bound), (side, column)
    assert mine["record_count"] == 3


@pytest.mark.parametrize(
    ("columns", "change", "reason"),
    [
        ("id long, many array<int>", "", "column many has a type, or needs values, that plain files do not tell"),
        ("id long, pairs map<string, int>", "", "column pairs has a type, or needs values, that plain files do not tell"),
        ("id long", "ALTER TABLE {t} WRITE ORDERED BY id", "the table has a sort order"),
        ("id long", "ALTER TABLE {t} ADD PARTITION FIELD bucket(4, id)", "the table is partitioned"),
        (
            "id long",
            "ALTER TABLE {t} SET TBLPROPERTIES ('write.parquet.bloom-filter-enabled.column.id' = 'true')",
            "the table sets write.parquet.bloom-filter-enabled.column.id",
        ),
        ("id long", "ALTER TABLE {t} SET TBLPROPERTIES ('format-version' = '3')", "the table has format version 3"),
    ],
    ids=["list", "map", "sorted", "partitioned", "property", "version 3"],
)  # fmt: skip
def test_what_asks_more_of_a_writer_lands_once_by_spark_which_says_why(
    lake: Lake, columns: str, change: str, reason: str
) -> None:
    more = (None,) * columns.count(",", 0, columns.find("<") if "<" in columns else None)
    lake.append(1, (1, *more), columns=columns)
    if change:
        lake.sql(change)
    lake.append(2, (2, *more), columns=columns)
    assert (lake.own, lake.ids, lake.strays) == ([False], [1, 2], set())
    assert lake.committed_by == f"Spark: {reason}"


@pytest.mark.parametrize("kind", ["INT96", "TIMESTAMP_MILLIS"])
def test_times_that_a_session_writes_for_other_readers_are_left_to_spark(lake: Lake, kind: str) -> None:
    columns, rows = (
        "id long, at timestamp",
        [(1, local("2026-01-01")), (2, local("1500-01-01 00:00:00.000001"))],
    )
    lake.append(1, rows[0], columns=columns)
    lake.spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
    try:
        lake.append(2, rows[1], columns=columns)
    finally:
        lake.spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    assert (lake.own, lake.ids, lake.strays) == ([False], [1, 2], set())
    assert {row["at"].microsecond for row in iceberg_rows(lake.folder, ["at"])} == {0, 1}


@pytest.mark.parametrize(
    "value",
    [
        "date'+10000-01-01'",
        "date'-0005-01-01'",
        "timestamp'+12000-01-01 00:00:00'",
        "timestamp_ntz'+12000-01-01 00:00:00'",
        "CAST(X'C328' AS string)",
        "CONCAT(REPEAT('a', 15), DECODE(X'ED9FBF', 'utf-8'), 'bb')",
    ],
)
def test_values_that_python_has_no_word_for_are_left_to_spark(lake: Lake, value: str) -> None:
    rows = lake.spark.sql(f"SELECT 2L id, {value} x")
    lake.append(1, (1, None), columns=f"id long, x {rows.schema['x'].dataType.simpleString()}")
    lake.append_rows(2, rows)
    assert (lake.own, lake.strays) == ([False], set())
    assert [row["id"] for row in lake.sql(f"SELECT id FROM {{t}} WHERE x = {value}")] == [2]


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("CASE id WHEN 0 THEN 100D WHEN 1 THEN DOUBLE('NaN') ELSE 5D END", "100D"),
        ("IF(id < 1000, 'a', REPEAT('q', 5000))", "REPEAT('q', 5000)"),
    ],
    ids=["NaN", "long texts"],
)
def test_rows_without_bounds_in_a_file_are_found(lake: Lake, value: str, wanted: str) -> None:
    rows = lake.spark.range(3000).selectExpr("id", f"{value} AS x").coalesce(1)
    lake.append(1, columns=f"id long, x {rows.schema['x'].dataType.simpleString()}")
    lake.spark.conf.set("parquet.block.size", "1")  # many groups of rows in one file
    try:
        lake.append_rows(2, rows)
    finally:
        lake.spark.conf.unset("parquet.block.size")
    expected = rows.where(f"x = {wanted}").count()
    assert lake.own == [True]
    assert lake.sql(f"SELECT count(*) n FROM {{t}} WHERE x = {wanted}")[0]["n"] == expected > 0


def _tagged(lake: Lake, number: int) -> TaggedCommit:
    (found,) = [each for each in lake.table().head(None, APP).tagged if each.number == number]
    return found


def test_rows_are_replaced_in_one_snapshot_that_copies_those_that_stay_of_a_file(lake: Lake) -> None:
    lake.append(1, (1,), (2,))
    lake.append(2, (3,), (4,))
    lake.append(3, (5,))
    lake.append(4, (6,), (7,))
    lake.replace(5, Between("id", 2, 6), (3,), (3,), (5,))
    assert (lake.own[-1], lake.ids, lake.strays) == (True, [1, 3, 3, 5, 6, 7], set())
    newest, before = list(lake.metadata.lineage())[:2]
    assert (newest.parent, newest.operation) == (before.id, "overwrite")
    assert (newest.count("total-records"), newest.count("total-data-files")) == (6, 3)
    tagged = _tagged(lake, 5)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (3, 4, False)
    commits = lake.sql("SELECT id, _commit FROM {t} WHERE id IN (1, 6, 7)")
    assert {(row["id"], int(row["_commit"][-10:])) for row in commits} == {(1, 1), (6, 4), (7, 4)}
    entries = lake.sql("SELECT status, snapshot_id FROM {t}.entries")
    assert sorted(tuple(row) for row in entries) == sorted(
        [(2, newest.id)] * 3 + [(1, newest.id)] * 2 + [(1, before.id)]
    )
    lake.append(6, (8,))
    lake.replace(7, Between("id", 8, 9))
    assert (lake.own[-1], lake.ids, lake.strays) == (True, [1, 3, 3, 5, 6, 7], set())
    assert next(lake.metadata.lineage()).operation == "delete"
    lake.sql("INSERT INTO {t} VALUES (77, NULL)")  # Spark goes on from there
    lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
    assert lake.ids == [1, 3, 3, 5, 6, 7, 77]


def test_rows_without_values_or_statistics_are_looked_at_one_by_one(lake: Lake) -> None:
    columns = "id long, unit string, x double"
    lake.append(1, (1, "a", 1.0), columns=columns)
    lake.append(2, (2, None, 1.0), (3, "a" * 40, float("nan")), (4, "a", None), columns=columns)
    lake.replace(3, Among("unit", ("a",)), (5, "a", 2.0), columns=columns)
    assert (lake.own, lake.ids) == ([True, True], [2, 3, 5])
    lake.replace(4, Between("x", 0.0, 9.0, upper_inclusive=True), columns=columns)
    assert (lake.own, lake.ids) == ([True] * 3, [3])
    lake.replace(5, Among("unit", (None,)), (6, None, 0.0), columns=columns)
    assert (lake.own, lake.ids) == ([True] * 4, [3, 6])


def test_what_others_committed_meanwhile_is_replaced_once(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    lake.append(1, (1,), (2,))
    meanwhile(lambda: lake.sql("INSERT INTO {t} VALUES (2, NULL), (77, NULL)"))
    lake.replace(2, Between("id", 2, 3), (2,))
    assert (lake.own, lake.ids, lake.strays) == ([True], [1, 2, 77], set())


@pytest.mark.parametrize("act", ["fenced", "written"])
def test_a_replacement_whose_number_was_taken_meanwhile_leaves_nothing(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None], act: str
) -> None:
    lake.append(1, (1,), (2,))
    taken = {
        "fenced": lambda: lake.table().give_up(lake.spark, Tag(APP, 2, "fence", gives_up=True), "1", None),
        "written": lambda: lake.replace(2, Between("id", 2, 3), (2,), (2,)),
    }
    meanwhile(taken[act])
    lake.replace(2, Between("id", 2, 3))
    assert (lake.ids, lake.strays) == ([1, 2] if act == "fenced" else [1, 2, 2], set())


def test_a_row_outside_of_what_is_replaced_is_refused_and_leaves_nothing(lake: Lake) -> None:
    lake.append(1, (1,), (2,))
    with pytest.raises(RowsRefused, match="1 rows are not among those that the slice replaces"):
        lake.replace(2, Between("id", 2, 3), (2,), (4,))
    assert (lake.ids, lake.strays) == ([1, 2], set())


def test_counts_of_a_commit_are_those_it_had_also_after_the_one_before_was_expired(lake: Lake) -> None:
    lake.append(1, (1,), (2,), (3,))
    lake.append(2, (4,))
    lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
    tagged = _tagged(lake, 2)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (1, 0, False)
    lake.replace(3, Between("id", 1, 3), (1,))
    lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
    tagged = _tagged(lake, 3)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (1, 2, False)


def test_rows_that_stay_of_a_table_whose_path_looks_like_a_pattern_are_there(lake: Lake) -> None:
    odd = Lake(lake.spark, lake.folder.parent.parent / "br[1]{a,b}" / "t", lake.own)
    odd.append(1, (1,), (2,))
    odd.replace(2, Between("id", 2, 3), (2,))
    assert (odd.own, sorted(row["id"] for row in iceberg_rows(odd.folder, ["id"]))) == ([False], [1, 2])


def test_rows_that_stay_keep_their_values_whatever_the_slice_says_of_its_columns(lake: Lake) -> None:
    columns = "id long, name string, s struct<a: int>"
    lake.append(1, (1, "ab", (70_000,)), (2, "cd", (300,)), columns=columns)
    rows = lake.spark.createDataFrame([(2, "ef", (7,))], "id long, name string, s struct<a: tinyint>").select(
        "id", F.col("name").alias("name", metadata={"__CHAR_VARCHAR_TYPE_STRING": "char(5)"}), "s"
    )
    lake.append_rows(2, rows, load=Replace(Between("id", 2, 3)))
    assert lake.own == [True]
    found = lake.sql("SELECT id, name, s.a AS a FROM {t} ORDER BY id")
    assert [(row["id"], row["name"].rstrip(), row["a"]) for row in found] == [(1, "ab", 70_000), (2, "ef", 7)]
    assert found[0]["name"] == "ab"


def test_a_damaged_file_whose_rows_stay_stops_the_commit(lake: Lake) -> None:
    lake.append(1)
    lake.append(2, *((id_,) for id_ in range(2000)))
    (file,) = (path for path in (lake.folder / "data").rglob("*.parquet") if path.stat().st_size > 2000)
    data = bytearray(file.read_bytes())
    for at in range(4, len(data) // 2):
        data[at] ^= 0x5A
    file.write_bytes(bytes(data))
    lake.spark.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    try:
        with pytest.raises(Exception, match=r"\.parquet|expected 2,000 rows"):
            lake.replace(3, Between("id", 5, 6), (5,))
    finally:
        lake.spark.conf.unset("spark.sql.files.ignoreCorruptFiles")
    assert (lake.table().tip(APP).tag, lake.strays) == (2, set())


@pytest.mark.parametrize("name", ["_part.parquet", ".part.parquet", "part._COPYING_", "a{1,2}[x]*.parquet"])
@pytest.mark.each_case
def test_rows_stay_whatever_their_files_name(lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    lake.append(1)
    find = data_files.found_files

    def renamed(place: Place, folder: str, rows: DataFrame) -> list[data_files.Written]:
        (found,) = find(place, folder, rows)
        assert place.local is not None
        new = f"{folder}/{name}"
        (place.local / found.path).rename(place.local / new)
        return [found._replace(path=new)]

    monkeypatch.setattr(own_commit, "found_files", renamed)
    lake.append(2, (1,), (2,), (3,))
    monkeypatch.setattr(own_commit, "found_files", find)
    lake.replace(3, Between("id", 2, 3), (2,))
    # Spark's readers of files do not find them, so the replacement is left to Iceberg's.
    assert (lake.own, lake.ids) == ([True, False], [1, 2, 3])


def test_files_without_a_column_of_the_table_are_copied_by_spark(lake: Lake) -> None:
    lake.append(1, (1,), (2,), (3,))
    lake.append(2, (4,))
    lake.sql("ALTER TABLE {t} ADD COLUMN more int")
    lake.replace(3, Between("id", 2, 3), (2, 7), columns="id long, more int")
    assert (lake.own, lake.ids, lake.strays) == ([True, False], [1, 2, 3, 4], set())
    lake.replace(4, Between("id", 4, 5), (4, 8), columns="id long, more int")  # all of a file
    assert (lake.own[-1], lake.ids, lake.strays) == (True, [1, 2, 3, 4], set())


def test_a_table_with_deletes_beside_its_files_is_changed_by_spark(lake: Lake) -> None:
    lake.append(1, (1,), (2,), (3,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    lake.sql("DELETE FROM {t} WHERE id = 1")
    lake.sql("ALTER TABLE {t} UNSET TBLPROPERTIES ('write.delete.mode')")
    assert lake.sql("SELECT count(*) n FROM {t}.delete_files")[0]["n"] == 1
    lake.replace(2, Between("id", 2, 3), (2,))
    assert (lake.own, lake.ids) == ([False], [2, 3])


TWO = "id long, unit string"


def _rows(lake: Lake, columns: str = "id, unit") -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in lake.sql(f"SELECT {columns} FROM {{t}}")), key=str)


@pytest.mark.parametrize("load", [Upsert(("id",), ()), ReplaceKeys(("id",))], ids=["upsert", "replace keys"])
def test_rows_of_keys_change_in_one_snapshot_beside_other_files(lake: Lake, load: Load) -> None:
    lake.append(1, (1, "a"), (None, "b"), (2, "c"), columns=TWO)
    lake.append(2, (3, "d"), (4, "e"), columns=TWO)
    lake.append(3, (5, "f"), columns=TWO)
    lake.load(4, load, (None, "x"), (3, "y"), (9, "z"), columns=TWO)
    assert (lake.own[-1], lake.strays) == (True, set())
    assert _rows(lake) == [(1, "a"), (2, "c"), (3, "y"), (4, "e"), (5, "f"), (9, "z"), (None, "x")]
    newest, before = list(lake.metadata.lineage())[:2]
    assert (newest.parent, newest.operation) == (before.id, "overwrite")
    assert (newest.count("total-records"), newest.count("deleted-data-files")) == (7, 2)
    tagged = _tagged(lake, 4)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (3, 2, False)
    numbers = lake.sql("SELECT id, _commit FROM {t}")
    assert {row["id"] for row in numbers if int(row["_commit"][-10:]) == 4} == {None, 3, 9}


def test_rows_of_new_keys_only_are_put_on_the_snapshot_that_has_none_of_them(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    lake.append(1, (1, "a"), columns=TWO)
    meanwhile(lambda: lake.sql("INSERT INTO {t} VALUES (2, 'theirs', NULL), (77, 'theirs', NULL)"))
    lake.load(2, Upsert(("id",), ()), (2, "b"), (3, "c"), columns=TWO)
    assert (lake.own[-1], lake.strays) == (True, set())
    assert _rows(lake) == [(1, "a"), (2, "b"), (3, "c"), (77, "theirs")]
    lake.load(3, Upsert(("id",), ()), (4, "d"), columns=TWO)
    tagged = _tagged(lake, 3)
    assert (next(lake.metadata.lineage()).operation, tagged.rows, tagged.removed) == ("append", 1, 0)


def test_versions_end_and_begin_in_one_snapshot(lake: Lake) -> None:
    columns, load = "id long, at long, fact string", Scd2(("id",), "at")
    lake.append_rows(
        1,
        lake.spark.createDataFrame([(1, 1, "a"), (2, 1, "b"), (3, 1, "c"), (3, 5, "d")], columns),
        load=load,
    )
    lake.load(2, load, (4, 1, "x"), columns=columns)
    lake.load(3, load, (1, 3, "z"), (2, 2, "b"), (3, 5, "c"), (5, 9, "n"), columns=columns)
    assert (lake.own, lake.strays) == ([True, True], set())
    versions = _rows(lake, "id, fact, _valid_from, _valid_to, _is_current, CAST(right(_commit, 10) AS int)")
    assert versions == [
        (1, "a", 1, 3, False, 3),
        (1, "z", 3, None, True, 3),
        (2, "b", 1, None, True, 1),
        (3, "c", 1, None, True, 3),
        (4, "x", 1, None, True, 2),
        (5, "n", 9, None, True, 3),
    ]
    tagged = _tagged(lake, 3)
    assert (tagged.rows, tagged.removed, tagged.uncounted) == (4, 3, False)
    lake.load(4, load, (1, 3, "y"), columns=columns)  # another value for the same time
    assert (lake.own[-1], _rows(lake, "id, fact, _valid_to")[1]) == (True, (1, "y", None))


@pytest.mark.full
def test_what_a_change_by_keys_cannot_say_is_a_merge_of_spark(lake: Lake) -> None:
    lake.append(1, (1, "a"), (1, "b"), (2, "c"), columns=TWO)
    lake.load(2, Upsert(("id",), ()), (1, "x"), columns=TWO)
    assert (lake.own[-1], _rows(lake)) == (False, [(1, "x"), (1, "x"), (2, "c")])  # each row of a key stays
    lake.load(3, Upsert(("id",), (), guard=(ByValue("unit"),)), (1, "a"), (2, "z"), columns=TWO)
    assert (lake.own[-1], _rows(lake)) == (False, [(1, "x"), (1, "x"), (2, "z")])  # what is later stays
    lake.load(4, ReplaceKeys(("id",)), (1, "k"), (1, "l"), columns=TWO)
    assert (lake.own[-1], _rows(lake)) == (True, [(1, "k"), (1, "l"), (2, "z")])
    lake.load(5, Upsert(("id",), (), guard=(ByValue("unit"),)), (2, "z"), (3, "c"), columns=TWO)
    assert (lake.own[-1], _rows(lake)[2:]) == (True, [(2, "z"), (3, "c")])
    lake.load(6, Upsert(("id",), (), where=Among("unit", ("l",))), (2, "y"), columns=TWO)
    assert (lake.own[-1], _rows(lake)) == (False, [(1, "k"), (2, "y"), (3, "c")])
    assert lake.strays == set()


HISTORY = "id long, at long, fact string"
VERSIONS = Scd2(("id",), "at")


def _versions(lake: Lake) -> list[tuple[Any, ...]]:
    return _rows(lake, "id, fact, _valid_from, _valid_to, _is_current")


def test_columns_that_came_without_rows_are_there_when_keys_are_looked_for(lake: Lake) -> None:
    taking = lake.table().taking_columns("merge")
    lake.load(1, VERSIONS, (1, 1, "a"), (2, 1, "a"), columns=HISTORY)
    rows = lake.spark.createDataFrame([(1, 2, "a", 5), (2, 2, "a", None)], f"{HISTORY}, more int")
    lake.append_rows(2, rows, taking, VERSIONS)
    assert _rows(lake, "id, more, _valid_from, _is_current") == [
        (1, 5, 2, True),
        (1, None, 1, False),
        (2, None, 1, True),
    ]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["RENAME COLUMN id TO x", "RENAME COLUMN n TO id", "RENAME COLUMN x TO n"], [(7, 77)]),
        (["DROP COLUMN id", "ADD COLUMN id long"], [(7, 77), (None, 7)]),
    ],
    ids=["exchanged", "made again"],
)
@pytest.mark.each_case
def test_keys_are_those_that_the_names_mean_now(
    lake: Lake, statements: list[str], expected: list[tuple[Any, ...]]
) -> None:
    lake.append(1, (5, 7), columns="id long, n long")
    for statement in statements:
        lake.sql(f"ALTER TABLE {{t}} {statement}")
    lake.load(2, Upsert(("id",), ()), (7, 77), columns="id long, n long")
    assert _rows(lake, "id, n") == expected


def test_a_history_that_was_doubled_stops_a_load_and_loses_nothing(lake: Lake) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), (2, 1, "a"), columns=HISTORY)
    lake.sql("INSERT INTO {t} SELECT * FROM {t}")
    before = _versions(lake)
    with pytest.raises(Exception, match="MERGE_CARDINALITY_VIOLATION"):
        lake.load(2, VERSIONS, (1, 2, "a"), (2, 5, "b"), columns=HISTORY)
    assert _versions(lake) == before


def test_columns_of_the_history_are_found_in_any_case(lake: Lake) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), columns=HISTORY)
    for old, new in (("_valid_to", "x"), ("x", "_VALID_TO"), ("_is_current", "x"), ("x", "_Is_Current")):
        lake.sql(f"ALTER TABLE {{t}} RENAME COLUMN {old} TO {new}")
    lake.load(2, VERSIONS, (2, 1, "a"), columns=HISTORY)
    lake.call("rewrite_data_files", options="map('rewrite-all','true')")
    lake.load(3, VERSIONS, (1, 5, "b"), columns=HISTORY)
    assert lake.own[-1]
    assert _versions(lake) == [(1, "a", 1, 5, False), (1, "b", 5, None, True), (2, "a", 1, None, True)]


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        (f"{HISTORY}, more int", (1, 2, "b", 5)),
        ("id long, at long, fact int", (1, 2, 5)),
        ("id long, at string, fact string", (1, "x", "a")),
        ("id long, at long, fact string, _file string", (1, 2, "a", "f")),
    ],
    ids=["unknown", "another type", "another time", "reserved"],
)
@pytest.mark.each_case
def test_unfit_versions_are_refused_in_words(lake: Lake, columns: str, row: tuple[Any, ...]) -> None:
    lake.load(1, VERSIONS, (1, 1, "a"), columns=HISTORY)
    with pytest.raises(RowsRefused, match="expected"):
        lake.load(2, VERSIONS, row, columns=columns)
    assert (_versions(lake), lake.strays) == ([(1, "a", 1, None, True)], set())


@pytest.mark.parametrize("step", ["changes_of", "write_files"])
@pytest.mark.each_case
def test_files_joined_meanwhile_are_searched(lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    lake.append(1, (1, "a"), (2, "b"), columns=TWO)
    lake.append(2, (3, "c"), columns=TWO)
    go_on = vars(own_commit)[step]

    def joined(*arguments: Any, **more: Any) -> Any:
        monkeypatch.setattr(own_commit, step, go_on)
        lake.call("rewrite_data_files", options="map('rewrite-all','true')")
        lake.call("expire_snapshots", older_than="TIMESTAMP '2999-01-01 00:00:00'", retain_last=1)
        return go_on(*arguments, **more)

    monkeypatch.setattr(own_commit, step, joined)
    lake.load(3, Upsert(("id",), ()), (2, "x"), columns=TWO)
    assert _rows(lake) == [(1, "a"), (2, "x"), (3, "c")]


def test_only_rows_of_its_own_share_are_changed_by_keys(lake: Lake) -> None:
    columns = "id long, unit string, _dataflow string"
    for number, name in enumerate("xyx", 1):
        table = lake.table().share_of(name)
        rows = lake.spark.createDataFrame([(1, f"{number}", name)], columns)
        table.write(
            rows, Upsert(("id",), ()), Tag(name, number, "o"), "s", base=lake.table().tip(name).version
        )
    assert (lake.own, _rows(lake, "_dataflow, unit")) == ([True, True], [("x", "3"), ("y", "2")])


def test_a_damaged_file_of_changed_keys_stops_commits(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(1, (1, "a"), (2, "b"), columns=TWO)
    monkeypatch.setattr(
        changed_rows.Changes, "of", lambda self, part, there: _of(self, part.where("id <> 1"), there)
    )
    with pytest.raises(TargetError, match=r"expected 3 rows of the slice and of the files .* found 2"):
        lake.load(2, Upsert(("id",), ()), (2, "x"), (3, "y"), columns=TWO)
    assert (_rows(lake), lake.strays) == ([(1, "a"), (2, "b")], set())


_of = changed_rows.Changes.of


def test_an_append_is_put_on_what_others_have_committed_meanwhile(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    lake.append(1, (1,))
    meanwhile(lambda: lake.sql("INSERT INTO {t} VALUES (77, NULL)"))
    lake.append(2, (2,))
    assert (lake.own, lake.ids, lake.committed_by) == ([True], [1, 2, 77], "Strandline (pyiceberg)")
    assert [snapshot.count("total-records") for snapshot in lake.metadata.lineage()] == [3, 2, 1]


@pytest.fixture
def before_snapshots(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Have somebody act before each of the next snapshots is put, after the newest metadata was read."""

    def arranged(*acts: Callable[[], Any]) -> None:
        put, left = FolderCatalog.add_snapshot, list(acts)

        def late(self: FolderCatalog, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
            if left:
                left.pop(0)()
            return put(self, before, snapshot)

        monkeypatch.setattr(FolderCatalog, "add_snapshot", late)

    return arranged


def test_files_keep_their_snapshots_number(lake: Lake, before_snapshots: Callable[..., None]) -> None:
    lake.append(1, (1,))
    before_snapshots(*[lambda: lake.sql("INSERT INTO {t} VALUES (77, NULL)")] * 2)
    lake.append(2, (2,))
    entries = lake.sql("SELECT snapshot_id, sequence_number FROM {t}.entries")
    assert {tuple(row) for row in entries} == {(each.id, each.sequence) for each in lake.metadata.lineage()}


def test_a_version_of_a_free_number_is_not_put(lake: Lake, before_snapshots: Callable[..., None]) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    before_snapshots(lambda: [lake.sql("INSERT INTO {t} VALUES (77, NULL)") for _ in range(5)])
    with pytest.raises(TargetError, match="others have committed many times"):
        lake.append(2, (2,))
    assert lake.ids == [1, *[77] * 5]
    lake.append(2, (2,))
    assert lake.ids == [1, 2, *[77] * 5]


def test_a_remade_table_takes_no_older_version(lake: Lake, before_snapshots: Callable[..., None]) -> None:
    lake.append(1, (1,))
    before_snapshots(lake.make_again)
    with pytest.raises(TargetError, match="the table was dropped"):
        lake.append(2, (2,))
    assert lake.ids == [7]


def test_a_writer_that_slept_before_its_hint_leaves_that_of_the_newest_version(lake: Lake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    for number in range(2, 7):
        lake.append(number, (number,))
    FolderCatalog(Place(str(lake.folder)))._put_hint(3)
    assert (lake.folder / "metadata/version-hint.text").read_text() == str(lake.metadata.version)
    assert lake.ids == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("act", ["fenced", "written"])
def test_an_append_whose_number_was_taken_meanwhile_leaves_nothing(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None], act: str
) -> None:
    lake.append(1, (1,))
    taken = {
        "fenced": lambda: lake.table().give_up(lake.spark, Tag(APP, 2, "fence", gives_up=True), "1", None),
        "written": lambda: lake.append(2, (2,)),
    }
    meanwhile(taken[act])
    lake.append(2, (3,))
    assert (lake.ids, lake.strays) == ([1] if act == "fenced" else [1, 2], set())


def test_columns_that_others_have_changed_meanwhile_are_filled_by_spark(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    lake.append(1, (1,))
    meanwhile(lambda: lake.sql("ALTER TABLE {t} ADD COLUMN more int"))
    lake.append(2, (2,))
    assert (lake.own, lake.ids, lake.strays) == ([False], [1, 2], set())


def test_a_remade_table_takes_nothing_of_an_append_begun_before(
    lake: Lake, meanwhile: Callable[[Callable[[], Any]], None]
) -> None:
    lake.append(1, (1,))
    meanwhile(lake.make_again)
    with pytest.raises(TargetError, match="expected the files that Spark has just written, found none"):
        lake.append(2, (2,))
    assert lake.ids == [7]


class LosesAnswers(FolderCatalog):
    """A catalog whose answer to a snapshot is lost, after or before it was put."""

    lands: bool

    def add_snapshot(self, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
        if self.lands:
            assert super().add_snapshot(before, snapshot)
        raise TargetError("the connection was lost")


@pytest.mark.parametrize("lands", [True, False], ids=["after it landed", "before"])
def test_a_lost_answer_is_looked_up_and_the_retry_lands_once(lake: Lake, lands: bool) -> None:
    lake.append(1, (1,))
    table = lake.table()
    catalog = LosesAnswers(Place(str(lake.folder)))
    catalog.lands, table._catalog = lands, catalog
    if lands:
        lake.append(2, (2,), table=table)
    else:
        with pytest.raises(TargetError, match="connection was lost"):
            lake.append(2, (2,), table=table)
    lake.append(2, (2,))
    assert lake.ids == [1, 2]


class LosesLookups(FolderCatalog):
    """A catalog that takes a snapshot, and then answers nothing for a moment."""

    down = False

    def add_snapshot(self, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
        assert super().add_snapshot(before, snapshot)
        self.down = True
        raise TargetError("the connection was lost")

    def newest(self) -> Metadata | None:
        if self.down:
            raise TargetError("the connection was lost")
        return super().newest()


@pytest.mark.parametrize("load", [Append(), Replace(Between("id", 2, 3))], ids=["append", "replace"])
@pytest.mark.each_case
def test_a_commit_that_landed_although_nothing_tells_keeps_its_files(lake: Lake, load: Load) -> None:
    lake.append(1, (1,), (2,))
    table = lake.table()
    table._catalog = LosesLookups(Place(str(lake.folder)))
    rows = lake.spark.createDataFrame([(2,)], "id long").coalesce(1)
    with pytest.raises(TargetError, match="connection was lost"):
        lake.append_rows(2, rows, table=table, load=load)
    assert lake.ids == ([1, 2, 2] if isinstance(load, Append) else [1, 2])
    lake.append_rows(2, rows, load=load)
    assert (len(lake.ids), lake.table().tip(APP).tag) == (3 if isinstance(load, Append) else 2, 2)


def test_an_append_that_landed_unknown_keeps_its_files(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the request was repeated on its way: the second answer is that the number is taken."""
    put = FolderCatalog.add_snapshot

    def asked_twice(self: FolderCatalog, before: Metadata, snapshot: Mapping[str, Any]) -> bool:
        return put(self, before, snapshot) and put(self, before, snapshot)

    lake.append(1, (1,))
    monkeypatch.setattr(FolderCatalog, "add_snapshot", asked_twice)
    lake.append(2, (2,))
    assert lake.ids == [1, 2]


def test_spark_joins_manifests_when_there_are_as_many_as_the_table_wants(lake: Lake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('commit.manifest.min-count-to-merge' = '4')")
    for number in (2, 3, 4, 5):
        lake.append(number, (number,))
    assert lake.own == [True, True, False, True]
    assert len(lake.sql("SELECT path FROM {t}.manifests")) == 2
    assert lake.ids == [1, 2, 3, 4, 5]


def test_no_more_files_of_metadata_stay_than_the_table_keeps(lake: Lake) -> None:
    lake.append(1, (1,))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.previous-versions-max' = '2')")
    for number in range(2, 7):
        lake.append(number, (number,))
    assert len(list((lake.folder / "metadata").glob("v*.metadata.json"))) == 3
    assert len(lake.metadata.raw["metadata-log"]) == 2
    lake.sql("INSERT INTO {t} VALUES (77, NULL)")  # Spark goes on from there
    assert lake.ids == [1, 2, 3, 4, 5, 6, 77]
