"""Loads whose rows may delete their key, over random batches, compared with a plain reading of their rules.

See docs/reference/loads.md, Deletes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from partitions.history import HistoryNames
from partitions.loads import ByKeys, Load, Order, OrderByColumn, OrderByPath, ReplaceKeys, Scd2, Upsert
from partitions.path.order import FileKey
from partitions.supported import FORMATS
from resources.connections.places import Place
from resources.tables.contract.commits import Tag, TaggedCommit
from resources.tables.contract.table import Table
from resources.tables.registry import open_table
from resources.tables.rows.keyed_rows import latest_by_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[Any, ...]
"""k, k2, at, fact, file, deletes; a row of the table lacks the last."""
SCHEMA = "k long, k2 string, at long, fact string, file string, deletes boolean"
KEYS = ("k", "k2")


def _drawn(seed: int, sizes: Sequence[int] = (40, 150, 12, 80)) -> list[list[Row]]:
    """Batches over many keys, each of which has a history of its own."""
    draw = random.Random(seed)

    def row() -> Row:
        key = (draw.choice([None, *range(24)]), draw.choice([None, "a"]))
        at, fact, file = draw.choice([None, *range(9)]), draw.choice("xy"), draw.choice(["a", "d-1/a", "d/a"])
        return (*key, at, fact, file, draw.choice([None, False, False, True]))

    return [[row() for _ in range(size)] for size in sizes]


PLAIN = [pytest.param(name, (), id=name) for name, fits in FORMATS.items() if fits["merge_upsert"] is None]
PARTITIONED = [
    pytest.param(plain.values[0], ("k2",), id=f"{plain.id}, partitioned", marks=pytest.mark.full)
    for plain in PLAIN
]
"""Into these Spark merges each batch."""
each_table = pytest.mark.parametrize(("table_format", "partition_by"), PLAIN + PARTITIONED)
each_seed = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 6))]
)


def _low(value: Any) -> tuple[bool, Any]:
    """NULL is below every value."""
    return value is not None, value


def _position(row: Row) -> tuple[Any, ...]:
    """Where a row stands among those of its key: by ``at``, then deletes, then the other columns."""
    return (_low(row[2]), _low(row[5]), _low(row[3]), row[4])


def _latest(batch: Sequence[Row], by_time: bool = False) -> dict[Any, Row]:
    """The latest row of each key by ``at``, of ties the delete, then the one with higher columns."""
    latest: dict[Any, Row] = {}
    for row in sorted(batch, key=_position):
        latest[(row[:2], row[2]) if by_time else row[:2]] = row
    return latest


def _upserted(table: list[Row], batch: list[Row], *, guarded: bool) -> list[Row]:
    """Each latest row goes in, or deletes its key; guarded, unless its key is there with a later file."""
    by_key = {row[:2]: row for row in table}
    for key, row in _latest(batch).items():
        if guarded and key in by_key and FileKey.of(row[4]) < FileKey.of(by_key[key][4]):
            continue
        by_key.pop(key, None)
        if not row[5]:
            by_key[key] = row[:5]
    return list(by_key.values())


def _replaced(table: list[Row], batch: list[Row]) -> list[Row]:
    """Keys of the batch go; its rows come, but the deletes."""
    keys = {row[:2] for row in batch}
    return [row for row in table if row[:2] not in keys] + [row[:5] for row in batch if not row[5]]


def _versions(table: list[Row], batch: list[Row]) -> list[Row]:
    """Each event once, the batch's before the table's: versions, and the deletes that ended some."""
    events: dict[Any, Row | None] = {}
    for row in table:
        events.update({(row[:2], row[6]): None} if row[8] else {})
    events.update({(row[:2], row[2]): row[:5] for row in table})
    for at, row in _latest(batch, by_time=True).items():
        events[at] = None if row[5] else row[:5]
    versions: list[Row] = []
    open_version: dict[Any, int] = {}
    for (key, time), event in sorted(events.items(), key=lambda item: _low(item[0][1])):
        before = open_version.get(key)
        if before is not None and event is not None and versions[before][3] == event[3]:
            continue
        if before is not None:
            versions[before] = (*versions[before][:5], versions[before][2], time, False, event is None)
            del open_version[key]
        if event is not None:
            open_version[key] = len(versions)
            versions.append((*event, event[2], None, True, False))
    return versions


def _sorted(table: Sequence[Row]) -> list[Row]:
    return sorted(table, key=lambda row: [_low(value) for value in row])


def _read(spark: SparkSession, table: Table, columns: Sequence[str]) -> list[Row]:
    frame = table.contents.read(spark, table.contents.newest_version())
    return _sorted([tuple(row) for row in frame.select(*columns).collect()])


COLUMNS = ("k", "k2", "at", "fact", "file")


def _check(
    spark: SparkSession,
    place: Place,
    how: tuple[str, tuple[str, ...]],
    load: Load,
    drawn: list[list[Row]],
    rule: Callable[[list[Row], list[Row]], list[Row]],
    columns: Sequence[str] = COLUMNS,
    ignored: Sequence[str] = (),
    prepare: Callable[[DataFrame], DataFrame] = lambda frame: frame,
) -> list[TaggedCommit]:
    """Load batches one by one; the table holds what the rule says, and the counts of commits add up.

    Values of ignored columns may be those of another row.
    """
    places = [place for place, name in enumerate(columns) if name not in ignored]
    expected: list[Row] = []
    total = 0
    commits: list[TaggedCommit] = []
    for number, batch in enumerate(drawn, 1):
        table = open_table(how[0], place, how[1])
        frame = prepare(_frame(spark, batch))
        has_deletes = isinstance(load, ByKeys) and load.deletes is not None
        latest = latest_by_key(frame if has_deletes else frame.drop("deletes"), load)
        table.write(latest, load, Tag("app", number, "o"), "s", base=table.tip("app").version)
        expected = rule(expected, batch)
        expected_rows = [tuple(row[place] for place in places) for row in expected]
        assert _read(spark, table, [columns[place] for place in places]) == _sorted(expected_rows)
        names = set(table.contents.columns())
        assert names == {*columns}
        commit = table.head(None, "app").find_tagged_commit(number)
        assert commit is not None
        commit = table.complete_counts(commit, total)
        total += commit.rows - (commit.removed or 0)
        assert total == len(expected)
        commits.append(commit)
    return commits


def _frame(spark: SparkSession, batch: list[Row]) -> DataFrame:
    return spark.createDataFrame(batch, SCHEMA)


@each_seed
@each_table
@pytest.mark.parametrize("guard", [(), (OrderByPath("file"),)], ids=["last wins", "later stay"])
def test_an_upsert_deletes_the_keys_whose_latest_row_says_so(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
    guard: Order,
) -> None:
    def rule(table: list[Row], batch: list[Row]) -> list[Row]:
        return _upserted(table, batch, guarded=bool(guard))

    load = Upsert(KEYS, (OrderByColumn("at"),), guard=guard, deletes="deletes")
    place = Place(str(tmp_path / "t"))
    _check(spark, place, (table_format, partition_by), load, _drawn(seed), rule)


@each_seed
@each_table
def test_a_replace_by_keys_deletes_keys_whose_rows_all_say_so(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
) -> None:
    load = ReplaceKeys(KEYS, deletes="deletes")
    place = Place(str(tmp_path / "t"))
    _check(spark, place, (table_format, partition_by), load, _drawn(seed), _replaced)


@each_seed
@each_table
def test_a_delete_ends_the_version_of_its_key_at_its_time(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
) -> None:
    load = Scd2(KEYS, "at", ignored=("file",), deletes="deletes")
    place = Place(str(tmp_path / "t"))
    columns = (*COLUMNS, "_valid_from", "_valid_to", "_is_current", "_is_deleted")
    _check(spark, place, (table_format, partition_by), load, _drawn(seed), _versions, columns, ("file",))


@each_seed
@each_table
def test_the_columns_of_versions_have_the_names_and_the_open_end_of_the_load(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
) -> None:
    names = HistoryNames(
        valid_from="valid from", valid_to="VALID_TO", is_current="current", is_deleted="gone"
    )
    load = Scd2(KEYS, "at", tracked=("FACT",), deletes="deletes", names=names, open_end="99")

    def rule(table: list[Row], batch: list[Row]) -> list[Row]:
        before = [(*row[:6], None if row[7] else row[6], *row[7:]) for row in table]
        return [(*row[:6], 99 if row[7] else row[6], *row[7:]) for row in _versions(before, batch)]

    place = Place(str(tmp_path / "t"))
    _check(
        spark,
        place,
        (table_format, partition_by),
        load,
        _drawn(seed),
        rule,
        (*COLUMNS, *names.all),
        ("file",),
    )


@each_seed
@each_table
def test_an_insert_leaves_each_key_that_the_table_has(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
) -> None:
    def rule(table: list[Row], batch: list[Row]) -> list[Row]:
        by_key = {row[:2]: row for row in table}
        for row in sorted(batch, key=lambda row: (_low(row[2]), row[3], row[4])):
            by_key.setdefault(row[:2], row[:5])
        return list(by_key.values())

    load = Upsert(KEYS, (OrderByColumn("at"),), guard=(OrderByColumn("at"),), inserts_only=True)
    _check(spark, Place(str(tmp_path / "t")), (table_format, partition_by), load, _drawn(seed), rule)


@each_seed
@each_table
def test_an_immutable_column_keeps_its_first_value(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
) -> None:
    def rule(table: list[Row], batch: list[Row]) -> list[Row]:
        by_key = {row[:2]: row for row in table}
        firsts: dict[Any, str] = {}
        for row in sorted(batch, key=_position):
            if not row[5] and row[3] is not None:
                firsts.setdefault(row[:2], row[3])
        for key, row in _latest(batch).items():
            before = by_key.pop(key, None)
            if not row[5]:
                fact = before[3] if before is not None and before[3] is not None else firsts.get(key)
                by_key[key] = (*row[:3], fact, row[4])
        return list(by_key.values())

    drawn = [
        [(*row[:3], None if row[4] == "a" else row[3], *row[4:]) for row in batch] for batch in _drawn(seed)
    ]
    load = Upsert(KEYS, (OrderByColumn("at"),), deletes="deletes", immutable=("FACT",))
    _check(spark, Place(str(tmp_path / "t")), (table_format, partition_by), load, drawn, rule)


@each_seed
@each_table
def test_an_update_leaves_the_columns_that_a_row_lacks(
    spark: SparkSession,
    table_format: str,
    partition_by: tuple[str, ...],
    tmp_path: Path,
    seed: int,
) -> None:
    def rule(table: list[Row], batch: list[Row]) -> list[Row]:
        by_key = {row[:2]: row for row in table}
        facts = {key: row[3] for key, row in by_key.items()}
        winners = {}
        for row in sorted(batch, key=lambda row: (_low(row[2]), _low(row[3]), row[4])):
            winners[row[:2]] = row
        for row in sorted(batch, key=lambda row: (_low(row[2]), _low(row[3]))):
            if row[4] != "a":
                facts[row[:2]] = row[3]
        for key, row in winners.items():
            fact = facts.get(key) if row[4] == "a" else row[3]
            by_key[key] = (*row[:3], fact, row[4])
        return list(by_key.values())

    def prepare(frame: DataFrame) -> DataFrame:
        return frame.withColumn("absent", F.when(F.col("file") == "a", F.array(F.lit("fact"))))

    drawn = [  # fact is absent in rows of file a, and sometimes NULL in others
        [(*row[:3], None if row[4] == "a" or row[3:5] == ("y", "d/a") else row[3], *row[4:]) for row in batch]
        for batch in _drawn(seed)
    ]
    load = Upsert(KEYS, (OrderByColumn("at"),), absent="absent")
    place = Place(str(tmp_path / "t"))
    _check(spark, place, (table_format, partition_by), load, drawn, rule, prepare=prepare)
