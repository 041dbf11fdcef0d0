"""Loads by keys over random batches, compared with a plain reading of their rules (docs/reference/loads.md)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitions.loads import (
    Append,
    Load,
    OrderByColumn,
    OrderByPath,
    Replace,
    ReplaceAll,
    ReplaceKeys,
    Scd2,
    Upsert,
)
from partitions.path.order import FileKey
from partitions.predicate import NOTHING, Among
from partitions.supported import FORMATS
from resources.connections.places import Place
from resources.tables.contract.commits import Tag
from resources.tables.contract.sharing import share_of
from resources.tables.contract.table import Table
from resources.tables.registry import open_table
from resources.tables.rows.deduplicate import latest_rows
from resources.tables.rows.scd2 import scd2_initial_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[int | None, str | None, int | None, str]
COLUMNS = "k long, k2 string, at long, file string"

keys = st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from([None, "a"]))
rows = st.builds(
    lambda key, at, file: (*key, at, file),
    keys,
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from(["a", "b", "d/a", "d-1/a", "d/b/a"]),
)
batches = st.lists(st.lists(rows, max_size=8), min_size=2, max_size=3)


def _low(value: Any) -> tuple[bool, Any]:
    """NULL is below every value."""
    return value is not None, value


def _latest(batch: list[Row]) -> dict[Any, Row]:
    """The latest row of each key by ``at``; of ties the one with the higher columns."""
    found: dict[Any, Row] = {}
    for row in sorted(batch, key=lambda row: (_low(row[2]), row[3])):
        found[row[:2]] = row
    return found


def _upserted(table: list[Row], batch: list[Row]) -> list[Row]:
    """Each row goes in, unless its key is there with a later file."""
    there = {row[:2]: row for row in table}
    for key, row in _latest(batch).items():
        if key not in there or FileKey.of(row[3]) >= FileKey.of(there[key][3]):
            there[key] = row
    return list(there.values())


def _replaced(table: list[Row], batch: list[Row], file: str | None) -> list[Row]:
    """Keys that are in the batch, and rows of a file, go; the batch comes."""
    gone = {row[:2] for row in batch}
    return [row for row in table if row[:2] not in gone and row[3] != file] + batch


def _versions(table: list[Any], batch: list[Any]) -> list[tuple[Any, ...]]:
    """Each key and time once, the batch's before the table's; no version like the one before it. The file is what does not count."""
    times: dict[Any, Any] = {(row[:2], row[2]): row for row in table}
    latest = {(row[:2], row[2]): row for row in sorted(batch, key=lambda row: (row[3], row[4]))}
    found: list[tuple[Any, ...]] = []
    last: dict[Any, int] = {}
    for (key, _), row in sorted((times | latest).items(), key=lambda item: _low(item[0][1])):
        if key in last and found[last[key]][3] == row[3]:
            continue
        if key in last:
            found[last[key]] = (*found[last[key]][:5], row[2], False)
        last[key] = len(found)
        found.append((*row, None, True))
    return found


def _sorted(table: list[Row]) -> list[Any]:
    return sorted(table, key=lambda row: [_low(value) for value in row])


def _frame(spark: SparkSession, batch: list[Row]) -> DataFrame:
    return spark.createDataFrame(batch, COLUMNS)


PLAIN = [pytest.param(name, (), id=name) for name, fits in FORMATS.items() if fits["merge_upsert"] is None]
PARTITIONED = [
    pytest.param(plain.values[0], ("k2",), id=f"{plain.id}, partitioned", marks=pytest.mark.full)
    for plain in PLAIN
]
"""Into these Spark merges each batch."""
each_table = pytest.mark.parametrize(("table_format", "partition_by"), PLAIN + PARTITIONED)


_FEW = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))


@each_table
@_FEW
@given(batches)
def test_an_upsert_leaves_the_rows_that_its_rule_says(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[list[Row]],
) -> None:
    order = (OrderByColumn("at"),)
    load = Upsert(("k", "k2"), order, guard=(OrderByPath("file"),))
    expected: list[Row] = []
    folder = tmp_path_factory.mktemp("upsert")
    for number, batch in enumerate(drawn, 1):
        table = open_table(table_format, Place(str(folder / "t")), partition_by)
        latest = latest_rows(_frame(spark, batch), load.keys, order)
        table.write(latest, load, Tag("app", number, "o"), "s", base=table.tip("app").version)
        expected = _upserted(expected, batch)
        assert _read(spark, table) == _sorted(expected)


@pytest.mark.full
@pytest.mark.parametrize("file", [None, "a"])
@each_table
@_FEW
@given(batches)
def test_a_replace_by_keys_leaves_the_rows_that_its_rule_says(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
    file: str | None,
    drawn: list[list[Row]],
) -> None:
    load = ReplaceKeys(("k", "k2"), where=Among("file", (file,)) if file else NOTHING)
    expected: list[Row] = []
    folder = tmp_path_factory.mktemp("replace")
    for number, batch in enumerate(drawn, 1):
        table = open_table(table_format, Place(str(folder / "t")), partition_by)
        rows = _frame(spark, batch)
        table.write(rows, load, Tag("app", number, "o"), "s", base=table.tip("app").version)
        expected = _replaced(expected, batch, file)
        assert _read(spark, table) == _sorted(expected)
        commit = table.head(None, "app").find_tagged_commit(number)
        assert commit is not None
        assert table.complete_counts(commit, 0).rows == len(batch)


changes = st.builds(
    lambda key, at, fact, file: (*key, at, fact, file),
    st.tuples(st.sampled_from([None, 1]), st.sampled_from(["a"])),
    st.sampled_from([None, 1, 2, 3, 4, 5]),
    st.sampled_from(["x", "y"]),
    st.sampled_from("ab"),
)


@pytest.mark.full
@each_table
@_FEW
@given(st.lists(st.lists(changes, max_size=6), min_size=2, max_size=3))
def test_versions_are_those_that_their_rule_says(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path_factory: pytest.TempPathFactory,
    drawn: list[list[Any]],
) -> None:
    load = Scd2(("k", "k2"), "at", ignored=("file",))
    expected: list[tuple[Any, ...]] = []
    folder = tmp_path_factory.mktemp("versions")
    for number, batch in enumerate(drawn, 1):
        table = open_table(table_format, Place(str(folder / "t")), partition_by)
        rows = latest_rows(
            spark.createDataFrame(batch, "k long, k2 string, at long, fact string, file string"),
            (*load.keys, load.effective),
            (),
        )
        table.write(rows, load, Tag("app", number, "o"), "s", base=table.tip("app").version)
        expected = _versions([row[:5] for row in expected], batch)
        columns = ["k", "k2", "_valid_from", "fact", "_valid_to", "_is_current"]
        there = table.contents.read(spark, table.contents.newest_version()).select(*columns).collect()
        expected_rows = [(*row[:4], *row[5:]) for row in expected]
        assert sorted(map(str, map(tuple, there))) == sorted(map(str, expected_rows))


@pytest.mark.parametrize(
    ("kind", "value", "same"),
    [
        ("map<string,int>", {"a": 1, "b": None}, {"b": None, "a": 1}),
        ("map<binary,double>", {b"\x00": -0.0}, {b"\x00": 0.0}),
        (
            "struct<a:array<map<string,map<string,int>>>>",
            ([{"x": {"a": 1, "b": 2}, "y": None}],),
            ([{"y": None, "x": {"b": 2, "a": 1}}],),
        ),
    ],
)
def test_maps_are_alike_in_any_order_of_keys(spark: SparkSession, kind: str, value: Any, same: Any) -> None:
    rows = spark.createDataFrame([(1, 1, value), (1, 2, same), (1, 3, None)], f"k int, at int, fact {kind}")
    versions = scd2_initial_rows(rows, Scd2(("k",), "at")).select("_valid_from", "_valid_to", "_is_current")
    assert sorted(map(tuple, versions.collect())) == [(1, 3, False), (3, None, True)]
    latest = latest_rows(rows.where("at < 3").drop("at"), ("k",), ())
    assert latest.select("k").collect() == [(1,)]


LOADS: dict[str, Load] = {
    "append": Append(),
    "upsert": Upsert(("k", "k2"), (OrderByColumn("at"),)),
    "replace": Replace(Among("file", ("a",))),
    "all": ReplaceAll(),
}


def _loaded(table: list[Row], load: str, batch: list[Row]) -> list[Row]:
    """The rows of one dataflow after a load, as if it had the table for itself."""
    match load:
        case "append":
            return table + batch
        case "replace":
            return [row for row in table if row[3] != "a"] + batch
        case "all":
            return batch
    latest, there = _latest(batch), {row[:2] for row in table}
    return [latest.get(row[:2], row) for row in table] + [
        row for key, row in latest.items() if key not in there
    ]


turns = st.tuples(st.sampled_from("xy"), st.sampled_from(sorted(LOADS)), st.lists(rows, max_size=4))


@pytest.mark.full
@_FEW
@given(st.lists(turns, min_size=4, max_size=7))
def test_dataflows_of_a_shared_table_have_the_rows_they_had_alone(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str, list[Row]]]
) -> None:
    folder = tmp_path_factory.mktemp("shared")
    expected: dict[str, list[Row]] = {"x": [], "y": []}
    for number, (name, load, given_rows) in enumerate(drawn, 1):
        batch = [(*row[:3], "a") for row in given_rows] if load == "replace" else given_rows
        table = share_of(open_table("delta", Place(str(folder / "t"))), name)
        frame = _frame(spark, batch)
        frame = latest_rows(frame, ("k", "k2"), (OrderByColumn("at"),)) if load == "upsert" else frame
        frame = frame.selectExpr("*", f"'{name}' AS _dataflow")
        table.write(frame, LOADS[load], Tag(name, number, "o"), "s", base=table.tip(name).version)
        expected[name] = _loaded(expected[name], load, batch)
        assert {each: _of(spark, folder, each) for each in expected} == {
            each: _sorted(there) for each, there in expected.items()
        }
        assert table.contents.count_rows() == len(expected[name])


def _of(spark: SparkSession, folder: Path, dataflow: str) -> list[Any]:
    there = spark.read.format("delta").load(str(folder / "t")).where(f"_dataflow = '{dataflow}'")
    return _sorted([tuple(row) for row in there.select("k", "k2", "at", "file").collect()])


def _read(spark: SparkSession, table: Table) -> list[Any]:
    return _sorted(
        [tuple(row) for row in table.contents.read(spark, table.contents.newest_version()).collect()]
    )


def test_the_latest_row_does_not_depend_on_where_rows_are_read(spark: SparkSession) -> None:
    """Types that cannot be compared tell rows apart, too; all columns come back as they were."""
    texts = ["map('x', 1)", "map('x', 2)", "map('x', CAST(NULL AS INT))"]
    union = " UNION ALL ".join(
        f"SELECT {key} AS `k.1`, {text} AS m, named_struct('z', array({at})) AS s, {at} AS at"
        for key in ("1", "NULL")
        for at in ("1", "2")
        for text in texts
    )
    rows = spark.sql(union)
    answers = [
        sorted(map(str, latest_rows(frame, ["K.1"], (OrderByColumn("at"),)).collect()))
        for frame in (rows, rows.orderBy("at").repartition(5), rows.coalesce(1))
    ]
    assert answers[0] == answers[1] == answers[2]
    assert latest_rows(rows, ["k.1"], ()).columns == ["k.1", "m", "s", "at"]
    assert [row for row in answers[0] if "at=1" in row] == []
    assert len(answers[0]) == 2


def test_a_million_changes_of_one_key_are_one_row_before_they_move(spark: SparkSession) -> None:
    changes = spark.range(0, 1_000_000, 1, 2).selectExpr("1 AS k", "id % 500000 AS at", "id AS value")
    latest = latest_rows(changes, ["k"], (OrderByColumn("at"),))
    assert [tuple(row) for row in latest.collect()] == [(1, 499_999, 999_999)]
