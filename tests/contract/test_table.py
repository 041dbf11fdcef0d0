"""What every table format promises to the protocol, the guards, decisions, checks and readers (docs/explanation/architecture.md, Contracts)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from partitions.errors import RowsRefused, SourceError
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
from partitions.predicate import NOTHING, Among, Predicate
from resources.connections.places import Place
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.commits import TableCommit, Tag, TaggedCommit, Version
from resources.tables.contract.maintenance import CanOptimize
from resources.tables.contract.spans import TellsSpans
from resources.tables.contract.table import FollowsUp, Table, TellsRefusals
from resources.tables.registry import open_table
from resources.tables.rows import row_counts as counting
from tests.contract.capabilities import pytest_generate_tests
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

__all__ = ["pytest_generate_tests"]

APP = "app"
UPSERT = Upsert(("id",), (OrderByColumn("unit"),))
BY_UNIT = ReplaceKeys(("unit",))
by_each_writer = pytest.mark.parametrize(
    "partition_by", [(), ("unit",)], ids=["by Strandline", "by Spark's MERGE"]
)
"""Who commits a load by keys: Spark, where the table has partitions."""


@dataclass(frozen=True)
class Foreign:
    """What another writer does to a table of a format: appends a row, overwrites all rows, restores a version, reads the ids."""

    append: Callable[[Path], None]
    overwrite: Callable[[Path], None]
    restore: Callable[[Path, Version], None]
    ids: Callable[[Path], list[int]]


_ROWS = pa.table({"id": pa.array([77], pa.int64()), "unit": ["foreign"]})


def _delta_writer(mode: Any) -> Callable[[Path], None]:
    return lambda folder: write_deltalake(str(folder), _ROWS, mode=mode)


def _delta_restore(folder: Path, version: Version) -> None:
    DeltaTable(str(folder)).restore(int(version))


def _delta_ids(folder: Path) -> list[int]:
    return sorted(DeltaTable(str(folder)).to_pyarrow_table()["id"].to_pylist())


def _parquet_append(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(_ROWS, folder / "foreign.parquet")


def _parquet_overwrite(folder: Path) -> None:
    for file in folder.rglob("*.parquet"):
        file.unlink()
    _parquet_append(folder)


def _parquet_restore(folder: Path, version: Version) -> None:
    """As a backup puts it back: without the lists that came later, and without their files."""
    for file in (folder / "_strandline").iterdir():
        if int(file.stem) > int(version):
            for added in json.loads(file.read_text()).get("added", ()):
                (folder / added["path"]).unlink()
            file.unlink()


def _parquet_ids(folder: Path) -> list[int]:
    return sorted(pq.read_table(folder)["id"].to_pylist())


def _iceberg(spark: SparkSession) -> Foreign:
    """Another writer in a catalog of its own."""

    def rows(folder: Path) -> DataFrameWriterV2:
        name = foreign_table(spark, folder)
        return spark.createDataFrame([(77, "foreign")], "id long, unit string").writeTo(name)

    def append(folder: Path) -> None:
        if (folder / "metadata").exists():
            rows(folder).append()
        else:
            rows(folder).using("iceberg").create()

    def overwrite(folder: Path) -> None:
        from pyspark.sql import functions as F

        rows(folder).overwrite(F.lit(True))

    def restore(folder: Path, version: Version) -> None:
        catalog, namespace, table = foreign_table(spark, folder).split(".")
        snapshot = str(version).partition("-")[2]
        spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{namespace}.{table}', {snapshot})").collect()

    def ids(folder: Path) -> list[int]:
        return sorted(row["id"] for row in spark.table(foreign_table(spark, folder)).collect())

    return Foreign(append, overwrite, restore, ids)


FOREIGN: dict[str, Callable[[SparkSession], Foreign]] = {
    "delta": lambda _: Foreign(
        _delta_writer("append"), _delta_writer("overwrite"), _delta_restore, _delta_ids
    ),
    "iceberg": _iceberg,
    "parquet": lambda _: Foreign(_parquet_append, _parquet_overwrite, _parquet_restore, _parquet_ids),
}


class Subject:
    """A table of one format, and what a test does to it.

    Attributes:
        folder: where it lies.
        table: the format's.
        foreign: what others do to it.
    """

    def __init__(self, name: str, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.foreign = folder, spark, FOREIGN[name](spark)
        self.name = name
        self.partition_by: tuple[str, ...] = ()

    @property
    def table(self) -> Table:
        """A new one each time: nothing is remembered."""
        return open_table(self.name, Place(str(self.folder)), self.partition_by)

    def rows(self, *rows: tuple[int | None, str | None]) -> DataFrame:
        """Rows of an id and a unit."""
        return self.spark.createDataFrame(list(rows), "id long, unit string")

    def load(
        self, number: int, *rows: tuple[int | None, str | None], load: Load | None = None, **tag: Any
    ) -> None:
        """Load rows under a number; the state after it is the number."""
        table = self.table
        made = Tag(APP, number, tag.pop("owner", f"owner {number}"), **tag)
        table.write(self.rows(*rows), load or Append(), made, str(number), base=table.tip(APP).version)
        if isinstance(table, FollowsUp) and (newest := table.tip(APP).newest):
            table.after_append(newest, "flow")

    def give_up(self, number: int) -> None:
        """Fence a number."""
        tag = Tag(APP, number, f"fence {number}", gives_up=True)
        first = (lambda: self.rows()) if self.table.tip(APP).newest is None else None
        self.table.give_up(self.spark, tag, "0", first)

    def commit(self, number: int) -> TaggedCommit:
        """The commit of a number, with its counts."""
        found = self.table.head(None, APP).find_tagged_commit(number)
        assert found is not None
        return self.table.complete_counts(found, 0)

    @property
    def all_rows(self) -> list[tuple[Any, ...]]:
        """All rows, each as often as it is there."""
        rows = self.table.contents.read(self.spark, self.table.contents.newest_version()).collect()
        return sorted((tuple(row) for row in rows), key=str)

    @property
    def ids(self) -> list[int]:
        """The ids in the table, read without Spark."""
        return [row["id"] for row in self.table.contents.distinct_rows(["id"])]


@pytest.fixture
def subject(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Subject:
    return Subject(request.param, tmp_path / "table", spark)


def _text_counts(table: Table, column: str) -> dict[str, int]:
    counts = table.contents.text_counts(column).to_pydict()
    return dict(zip(counts["text"], counts["rows"], strict=True))


def test_a_table_that_is_not_there_has_nothing(subject: Subject) -> None:
    table = subject.table
    assert (table.tip(APP).newest, table.head(None, APP).newest) == (None, None)
    assert (table.exists(), table.contents.has_data()) == (False, False)
    assert (
        table.contents.columns(),
        table.contents.schema(),
        table.contents.count_rows(),
        table.contents.distinct_texts("unit"),
        _text_counts(table, "unit"),
    ) == ([], None, 0, set(), {})
    assert (table.contents.count_bytes(), table.contents.rows_in_log()) == (0, 0)
    for read in (table.contents.newest_version, lambda: table.contents.distinct_rows(["id"])):
        with pytest.raises(SourceError) as refused:
            read()
        assert refused.value.code == "source_missing"


def test_a_write_makes_the_table_and_its_commit_says_whose_it_is(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "b"))
    commit = subject.commit(1)
    assert (commit.owner, commit.number, commit.rows, commit.removed) == ("owner 1", 1, 2, 0)
    assert (commit.gives_up, commit.follows) == (False, None)
    assert (subject.ids, subject.table.contents.columns()) == ([1, 2], ["id", "unit"])
    assert (subject.table.exists(), subject.table.contents.has_data()) == (True, True)


def test_an_append_adds_rows_and_follows_the_version_before(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    first = subject.table.tip(APP).version
    subject.load(2, (2, "b"))
    assert (subject.ids, subject.commit(2).follows) == ([1, 2], first)


def test_its_bytes_are_those_of_the_files_that_its_newest_version_has(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    first = {file for file in subject.folder.rglob("*.parquet") if not file.name.startswith(".")}
    assert subject.table.contents.count_bytes() == sum(file.stat().st_size for file in first)
    subject.load(2, (2, "b"), load=ReplaceAll())
    newest = {file for file in subject.folder.rglob("*.parquet") if not file.name.startswith(".")} - first
    assert subject.table.contents.count_bytes() == sum(file.stat().st_size for file in newest)


def test_its_log_counts_the_rows_of_its_newest_version(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "b"))
    assert subject.table.contents.rows_in_log() == 2
    subject.load(2, (3, "b"), load=ReplaceAll())
    assert subject.table.contents.rows_in_log() == 1


@pytest.mark.parametrize("number", [2, 1])
def test_a_number_that_is_there_or_below_is_skipped_in_silence(subject: Subject, number: int) -> None:
    subject.load(1, (1, "a"))
    subject.load(2, (2, "b"))
    subject.load(number, (3, "c"), owner="zombie")
    assert (subject.ids, subject.table.tip(APP).highest_tag) == ([1, 2], 2)


def test_a_replace_deletes_what_its_predicate_means_and_nothing_else(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "b"), (3, "it's"))
    subject.load(2, (4, "a"), load=Replace(Among("unit", ("a", "it's"))))
    assert subject.ids == [2, 4]
    assert (subject.commit(2).rows, subject.commit(2).removed) == (1, 2)


def test_a_replace_needs_no_counts_of_spark(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "observed_values", lambda observation: {})  # as on a busy Connect server
    subject.load(1, (1, "a"), (2, "b"), (3, "c"))
    load = Replace(Among("unit", ("a", "b")))
    with pytest.raises(Exception, match="lie outside") as refused:
        subject.load(2, (4, "a"), (5, "d"), load=load)
    table = subject.table
    assert isinstance(table, TellsRefusals)
    assert table.refuses_rows_outside(refused.value)
    assert subject.ids == [1, 2, 3]
    subject.load(2, (4, "a"), load=load)
    subject.load(3, load=Replace(Among("unit", ("c",))))
    assert subject.ids == [4]
    assert [(subject.commit(n).rows, subject.commit(n).removed) for n in (2, 3)] == [(1, 2), (0, 1)]


def test_a_replace_by_no_rows_deletes_all_the_same(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "b"))
    subject.load(2, load=Replace(Among("unit", ("a",))))
    assert (subject.ids, subject.commit(2).removed) == ([2], 1)


def test_an_upsert_updates_the_rows_of_its_keys_and_adds_the_others(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "b"))
    subject.load(2, (2, "c"), (3, "d"), load=UPSERT)
    assert subject.all_rows == [(1, "a"), (2, "c"), (3, "d")]
    commit = subject.commit(2)
    assert (commit.owner, commit.rows, commit.removed) == ("owner 2", 2, 1)


def test_a_null_key_is_a_key_like_any_other(subject: Subject) -> None:
    subject.load(1, (None, "a"), (1, "b"))
    subject.load(2, (None, "c"), load=UPSERT)
    subject.load(3, (2, None), load=BY_UNIT)
    subject.load(4, (3, None), load=BY_UNIT)
    assert subject.all_rows == [(1, "b"), (3, None), (None, "c")]


def test_an_upsert_leaves_rows_that_are_later_by_its_guard(subject: Subject) -> None:
    guarded = Upsert(("id",), (), guard=(OrderByPath("unit"),))
    subject.load(1, (1, "d/b"), (2, "d/b"), (3, "d/e/b"), (4, None))
    subject.load(2, (1, "d/a"), (2, "d/c"), (3, "d-1/b"), (4, "a"), load=guarded)
    assert subject.all_rows == [(1, "d/b"), (2, "d/c"), (3, "d/e/b"), (4, "a")]
    assert (subject.commit(2).rows, subject.commit(2).removed) == (2, 2)


@pytest.mark.parametrize("where", [NOTHING, Among("unit", ("d/a",))])
def test_an_upsert_wins_over_later_rows_outside_of_those_that_it_guards(
    subject: Subject, where: Predicate
) -> None:
    order = (OrderByPath("unit"),)
    load = Upsert(("id",), (), order, where, guarded=Among("unit", ("d/c", "e/a")))
    subject.load(1, (1, "d/b"), (2, "d/c"), (3, None), (4, "a"))
    subject.load(2, (1, "d/a"), (2, "d/a"), (3, "d/a"), (4, "d/a"), load=load)
    assert subject.all_rows == [(1, "d/a"), (2, "d/c"), (3, "d/a"), (4, "d/a")]


def test_an_upsert_deletes_the_rows_that_it_was_told_to_and_does_not_have(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "a"), (3, "b"))
    subject.load(2, (2, "z"), load=Upsert(("id",), (), where=Among("unit", ("a",))))
    assert subject.all_rows == [(2, "z"), (3, "b")]
    assert (subject.commit(2).rows, subject.commit(2).removed) == (1, 2)


def test_a_replace_by_keys_deletes_the_rows_of_its_keys_and_adds_all_of_its_own(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "a"), (3, "b"))
    subject.load(2, (4, "a"), (5, "a"), (6, "c"), load=BY_UNIT)
    assert subject.all_rows == [(3, "b"), (4, "a"), (5, "a"), (6, "c")]
    assert (subject.commit(2).rows, subject.commit(2).removed) == (3, 2)
    subject.load(3, (7, "c"), load=ReplaceKeys(("unit",), where=Among("id", (3,))))
    assert subject.all_rows == [(4, "a"), (5, "a"), (7, "c")]


@by_each_writer
@pytest.mark.parametrize("load", [UPSERT, BY_UNIT], ids=["upsert", "replace keys"])
def test_a_load_by_keys_without_rows_records_its_number_and_changes_nothing(
    subject: Subject, load: Load, partition_by: tuple[str, ...]
) -> None:
    subject.partition_by = partition_by
    subject.load(1, (1, "a"))
    subject.load(2, load=load)
    commit = subject.commit(2)
    assert (subject.ids, commit.owner, commit.rows, commit.removed) == ([1], "owner 2", 0, 0)


@by_each_writer
@pytest.mark.parametrize("load", [UPSERT, BY_UNIT], ids=["upsert", "replace keys"])
@pytest.mark.parametrize("number", [2, 1])
def test_a_number_of_a_load_by_keys_that_is_there_or_below_is_skipped_in_silence(
    subject: Subject, load: Load, number: int, partition_by: tuple[str, ...]
) -> None:
    subject.partition_by = partition_by
    subject.load(1, (1, "a"), load=load)
    subject.load(2, (2, "b"), load=load)
    subject.load(number, (2, "zombie"), (3, "b"), load=load, owner="zombie")
    assert (subject.all_rows, subject.commit(2).owner) == ([(1, "a"), (2, "b")], "owner 2")


@by_each_writer
def test_a_fenced_number_keeps_a_load_by_keys_out(subject: Subject, partition_by: tuple[str, ...]) -> None:
    subject.partition_by = partition_by
    subject.load(1, (1, "a"), load=UPSERT)
    subject.load(2, (1, "b"), load=UPSERT)
    subject.give_up(3)
    subject.load(3, (1, "zombie"), load=UPSERT)
    subject.load(4, (9, "z"))
    assert subject.all_rows == [(1, "b"), (9, "z")]
    assert (subject.commit(3).gives_up, subject.commit(4).owner) == (True, "owner 4")


def test_a_row_of_a_key_whose_partition_changed_is_moved(subject: Subject) -> None:
    subject.partition_by = ("unit",)
    subject.load(1, (1, "a"), (2, "a"))
    subject.load(2, (1, "b"), load=UPSERT)
    assert subject.all_rows == [(1, "b"), (2, "a")]


def _versions(subject: Subject, number: int, *rows: tuple[int | None, int | None, str | None]) -> None:
    """Load versions of ids under a number."""
    frame = subject.spark.createDataFrame(list(rows), "id long, since long, fact string")
    tag, table = Tag(APP, number, f"owner {number}"), subject.table
    table.write(frame, Scd2(("id",), "since"), tag, str(number), base=table.tip(APP).version)


def _history(subject: Subject) -> list[tuple[Any, ...]]:
    rows = subject.table.contents.read(subject.spark, subject.table.contents.newest_version())
    columns = ["id", "fact", "_valid_from", "_valid_to", "_is_current"]
    return sorted(
        (tuple(row) for row in rows.select(*columns).collect()), key=lambda row: (str(row[0]), row[2] or 0)
    )


def test_versions_of_a_key_follow_each_other_and_the_last_is_current(subject: Subject) -> None:
    _versions(subject, 1, (1, 10, "a"), (1, 20, "b"), (1, 15, "a"), (2, 10, None), (None, None, "n"))
    first = [
        (1, "a", 10, 20, False),
        (1, "b", 20, None, True),
        (2, None, 10, None, True),
        (None, "n", None, None, True),
    ]
    assert _history(subject) == first
    _versions(subject, 2, (1, 30, "c"), (2, 30, None), (None, 5, "m"))
    assert _history(subject) == [
        (1, "a", 10, 20, False),
        (1, "b", 20, 30, False),
        (1, "c", 30, None, True),
        (2, None, 10, None, True),
        (None, "n", None, 5, False),
        (None, "m", 5, None, True),
    ]
    assert (subject.commit(2).rows, subject.commit(2).removed) == (4, 2)


@pytest.mark.full
def test_a_late_or_corrected_version_moves_the_ends_of_its_neighbours(subject: Subject) -> None:
    _versions(subject, 1, (1, 10, "a"), (1, 30, "b"))
    _versions(subject, 2, (1, 20, "b"), (1, 5, "z"))
    assert _history(subject) == [(1, "z", 5, 10, False), (1, "a", 10, 20, False), (1, "b", 20, None, True)]
    _versions(subject, 3, (1, 10, "z"), (1, 20, "c"))
    assert _history(subject) == [(1, "z", 5, 20, False), (1, "c", 20, None, True)]


def test_versions_that_are_there_change_nothing_and_a_skipped_number_adds_none(subject: Subject) -> None:
    _versions(subject, 1, (1, 10, "a"))
    _versions(subject, 2, (1, 10, "a"), (1, 20, "a"))
    commit = subject.commit(2)
    assert (_history(subject), commit.rows, commit.removed) == ([(1, "a", 10, None, True)], 0, 0)
    _versions(subject, 2, (1, 30, "zombie"))
    _versions(subject, 1, (1, 40, "zombie"))
    _versions(subject, 3)
    assert _history(subject) == [(1, "a", 10, None, True)]
    assert subject.table.tip(APP).highest_tag == 3


def test_a_replace_of_all_rows_gives_the_table_new_columns(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    tag, base = Tag(APP, 2, "owner 2"), subject.table.tip(APP).version
    other = subject.spark.createDataFrame([("x", 9)], "name string, id long")
    subject.table.write(other, ReplaceAll(), tag, "2", base=base)
    assert (subject.table.contents.columns(), subject.ids, subject.commit(2).removed) == (
        ["name", "id"],
        [9],
        None,
    )


def _load_columns(subject: Subject, number: int, load: Load, *columns: str) -> None:
    table = subject.table
    rows = subject.rows((number, "b")).select(*columns)
    table.write(rows, load, Tag(APP, number, "owner"), "s", base=table.tip(APP).version)


def test_columns_are_matched_by_name_and_a_missing_one_is_null(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    _load_columns(subject, 2, Append(), "unit", "id")
    _load_columns(subject, 3, Append(), "id")
    assert subject.table.contents.columns() == ["id", "unit"]
    assert subject.all_rows == [(1, "a"), (2, "b"), (3, None)]


@pytest.mark.full
def test_columns_of_a_load_by_keys_are_matched_by_name_and_a_missing_one_is_null(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    _load_columns(subject, 2, UPSERT, "unit", "id")
    _load_columns(subject, 3, UPSERT, "id")
    _load_columns(subject, 4, ReplaceKeys(("id",)), "id")
    assert subject.table.contents.columns() == ["id", "unit"]
    assert subject.all_rows == [(1, "a"), (2, "b"), (3, None), (4, None)]


@pytest.mark.parametrize("other", ["id long, unit string, more string", "id string, unit string"])
@pytest.mark.parametrize(
    "load",
    [Append(), Replace(Among("unit", ("a",))), UPSERT, BY_UNIT],
    ids=["append", "replace", "upsert", "replace keys"],
)
def test_rows_of_other_columns_commit_nothing(subject: Subject, load: Load, other: str) -> None:
    from pyspark.errors import AnalysisException

    subject.load(1, (1, "a"))
    rows, base = subject.spark.createDataFrame([], other), subject.table.tip(APP).version
    with pytest.raises((RowsRefused, AnalysisException)):
        subject.table.write(rows, load, Tag(APP, 2, "owner 2"), "2", base=base)
    assert (subject.ids, subject.table.tip(APP).highest_tag) == ([1], 1)


@pytest.mark.parametrize("load", [Append(), None], ids=["append", "replace"])
def test_a_table_takes_new_columns_and_wider_types_with_rows(subject: Subject, load: Load | None) -> None:
    _gets_columns(subject, load)


@pytest.mark.parametrize("load", [UPSERT, BY_UNIT], ids=["upsert", "replace keys"])
def test_a_table_takes_new_columns_and_wider_types_with_rows_by_keys(subject: Subject, load: Load) -> None:
    _gets_columns(subject, load)


def _gets_columns(subject: Subject, load: Load | None) -> None:
    """Batches of other columns, one after another; without a load each replaces what it brings."""
    columns = ["id int, unit string", "id long, unit string, more struct<a: long>", "unit string, id int"]
    batches: list[tuple[Any, ...]] = [(1, "a"), (2**40, "b", (7,)), ("none", 3)]
    for number, (ddl, row) in enumerate(zip(columns, batches, strict=True), 1):
        table = open_table(subject.name, Place(str(subject.folder)), schema_mode="merge")
        rows, tag = subject.spark.createDataFrame([row], ddl), Tag(APP, number, f"owner {number}")
        own = load or Replace(Among("unit", tuple(value for value in row if isinstance(value, str))))
        table.write(rows, own, tag, "s", base=table.tip(APP).version)
    assert subject.all_rows == [(1, "a", None), (1099511627776, "b", (7,)), (3, "none", None)]
    assert subject.ids == [1, 3, 2**40]
    assert [subject.commit(number).rows for number in (1, 2, 3)] == [1, 1, 1]


def test_a_load_by_a_new_column_brings_it_and_replaces_nothing_at_first(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    for number, row in enumerate([(2, "b", "x"), (3, "b", "x"), (4, "b", "y")], 2):
        table = open_table(subject.name, Place(str(subject.folder)), schema_mode="merge")
        rows = subject.spark.createDataFrame([row], "id long, unit string, day string")
        tag = Tag(APP, number, f"owner {number}")
        table.write(rows, Replace(Among("day", (row[2],))), tag, "s", base=table.tip(APP).version)
    assert subject.all_rows == [(1, "a", None), (3, "b", "x"), (4, "b", "y")]
    assert [(subject.commit(number).rows, subject.commit(number).removed) for number in (2, 3, 4)] == [
        (1, 0),
        (1, 1),
        (1, 0),
    ]


def test_a_table_that_takes_columns_refuses_a_type_that_is_not_safely_wider(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    table = open_table(subject.name, Place(str(subject.folder)), schema_mode="merge")
    rows, base = subject.spark.createDataFrame([], "id string, unit string"), table.tip(APP).version
    with pytest.raises(
        RowsRefused, match="column id: expected bigint or a wider type that keeps all values, found string"
    ):
        table.write(rows, Append(), Tag(APP, 2, "owner 2"), "2", base=base)
    assert (subject.ids, subject.table.tip(APP).highest_tag) == ([1], 1)


def test_a_first_write_has_nothing_to_replace(subject: Subject) -> None:
    subject.load(1, (1, "a"), load=Replace(Among("unit", ("a",))))
    assert subject.ids == [1]


def test_a_first_write_is_refused_where_a_table_has_come_since(subject: Subject) -> None:
    subject.foreign.append(subject.folder)
    with pytest.raises(Exception, match=r"already exist|found others"):
        subject.table.write(subject.rows((1, "a")), Append(), Tag(APP, 1, "owner 1"), "1", base=None)
    assert subject.foreign.ids(subject.folder) == [77]


def test_a_first_write_is_skipped_in_silence_where_its_own_number_has_come_since(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    subject.table.write(subject.rows((1, "a")), Append(), Tag(APP, 1, "zombie"), "1", base=None)
    assert subject.ids == [1]


def test_a_fence_changes_no_row_and_keeps_its_number_from_every_writer(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    subject.give_up(2)
    subject.load(2, (2, "b"))
    fence = subject.commit(2)
    assert (subject.ids, fence.gives_up, fence.owner, fence.rows) == ([1], True, "fence 2", 0)


def test_a_fence_of_a_number_that_landed_changes_nothing(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    subject.give_up(1)
    assert (subject.ids, subject.commit(1).owner) == ([1], "owner 1")


def test_a_fence_makes_the_table_where_there_is_none(subject: Subject) -> None:
    subject.give_up(1)
    assert (subject.table.contents.columns(), subject.ids, subject.commit(1).follows) == (
        ["id", "unit"],
        [],
        None,
    )
    assert subject.table.contents.has_data()  # a tag is remembered


def _recorded(subject: Subject, number: int) -> TableCommit:
    return subject.commit(number).commit


def test_a_head_tells_the_commits_after_the_recorded_one(subject: Subject) -> None:
    for number in (1, 2, 3):
        subject.load(number, (number, "a"))
    head = subject.table.head(_recorded(subject, 1), APP)
    assert (head.has_recorded, head.highest_tag, [commit.number for commit in head.tagged_commits]) == (
        True,
        3,
        [2, 3],
    )
    assert (head.emptied_by, head.is_older, head.commits_cleaned) == (None, False, False)


def test_rows_that_others_append_undo_nothing(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    recorded = _recorded(subject, 1)
    subject.foreign.append(subject.folder)
    head = subject.table.head(recorded, APP)
    assert (head.has_recorded, head.emptied_by, head.tagged_commits, subject.ids) == (True, None, (), [1, 77])


def test_an_overwrite_by_others_is_told(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    recorded = _recorded(subject, 1)
    subject.foreign.overwrite(subject.folder)
    head = subject.table.head(recorded, APP)
    assert head.emptied_by or head.missing_files


def test_a_table_that_was_made_again_does_not_have_the_recorded_commit(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    subject.load(2, (2, "a"))
    recorded = _recorded(subject, 2)
    rmtree(subject.folder)
    assert subject.table.head(recorded, APP).newest is None
    subject.load(1, (1, "a"), owner="another")
    head = subject.table.head(recorded, APP)
    assert (head.has_recorded, head.is_older, [commit.number for commit in head.tagged_commits]) == (
        False,
        True,
        [1],
    )


def test_another_dataflows_tags_are_not_this_ones(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    head = subject.table.head(None, "another")
    assert (head.highest_tag, head.tagged_commits, subject.table.tip("another").highest_tag) == (0, (), 0)


@pytest.mark.parametrize("length", [10, 100_000])
def test_a_commit_tells_the_state_that_it_was_written_with(subject: Subject, length: int) -> None:
    state = "s" * length
    subject.load(1, (1, "a"))
    tag = Tag(APP, 2, "owner 2", after=_recorded(subject, 1))
    table = subject.table
    table.write(subject.rows((2, "b")), Append(), tag, state, base=table.tip(APP).version)
    told = adopted_state(subject.table)
    assert told is not None
    assert (told.state, told.app_id, told.number, told.owner) == (state, APP, 2, "owner 2")


def test_a_state_is_told_as_far_as_the_rows_go_back_to_it(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    first, version = _recorded(subject, 1), subject.table.tip(APP).version
    subject.load(2, (2, "b"), after=first)
    assert version is not None
    subject.foreign.restore(subject.folder, version)
    told = adopted_state(subject.table)
    assert (told and told.state, subject.ids) == ("1", [1])


def test_a_version_is_read_as_it_was(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    version = subject.table.contents.newest_version()
    subject.load(2, (2, "b"))
    rows: Sequence[Any] = subject.table.contents.read(subject.spark, version).collect()
    assert [row["id"] for row in rows] == [1]


def test_the_rows_of_a_version_that_meet_a_condition_are_read_in_arrow(subject: Subject) -> None:
    subject.load(1, (1, "a"), (2, "b"), (3, None))
    version = subject.table.contents.newest_version()
    subject.load(2, (4, "b"))
    contents = subject.table.contents
    whole = contents.arrow_rows(version).read_all()
    assert whole.schema.names == ["id", "unit"]
    assert whole.sort_by("id").to_pylist() == [
        {"id": 1, "unit": "a"},
        {"id": 2, "unit": "b"},
        {"id": 3, "unit": None},
    ]
    of_b = contents.arrow_rows(contents.newest_version(), Among("unit", ("b",)), ["id"]).read_all()
    assert of_b.sort_by("id").to_pylist() == [{"id": 2}, {"id": 4}]
    assert contents.arrow_rows(version, NOTHING).read_all().to_pylist() == []


def test_statistics_tell_the_span_of_files_by_a_column_of_one_value_each(subject: Subject) -> None:
    subject.load(1, (5, "a"), (2, "a"))
    subject.load(2, (7, "b"))
    table = subject.table
    assert isinstance(table.contents, TellsSpans)
    spans = table.contents.file_spans(table.contents.newest_version(), "unit", "id")
    assert spans is not None
    found = {
        group: (min(file.lowest for file in files), max(file.highest for file in files), sum(file.rows for file in files))
        for group in "ab"
        if (files := [file for file in spans if file.group == group])
    }  # fmt: skip
    assert found == {"a": (2, 5, 2), "b": (7, 7, 1)}
    assert isinstance(table.maintenance, CanOptimize)
    table.maintenance.optimize(lambda: subject.spark, ())  # one file has both
    assert table.contents.file_spans(table.contents.newest_version(), "unit", "id") is None


def test_care_changes_no_row_and_keeps_what_was_recorded(subject: Subject) -> None:
    for number in (1, 2, 3):
        subject.load(number, (number, "a"))
    recorded, table = _recorded(subject, 2), subject.table
    if isinstance(table.maintenance, CanOptimize):
        assert table.maintenance.optimize(lambda: subject.spark, ()).removed == 3
    assert table.maintenance.vacuum(lambda: subject.spark).deleted == 0
    head = subject.table.head(recorded, APP)
    assert (head.has_recorded, head.emptied_by, head.missing_files, head.highest_tag) == (True, None, (), 3)
    assert subject.ids == [1, 2, 3]
    subject.load(4, (4, "a"))
    assert subject.ids == [1, 2, 3, 4]


def test_a_table_aside_is_removed_whole_and_can_be_made_again(subject: Subject) -> None:
    subject.load(1, (1, "a"))
    for _ in range(2):  # again does no harm
        subject.table.remove(lambda: subject.spark)
        assert subject.table.exists() is False
        left = [path for path in subject.folder.parent.rglob("*") if subject.folder.name in path.parts]
        assert left == []
    subject.load(1, (2, "b"), owner="another")
    assert (subject.ids, subject.commit(1).owner) == ([2], "another")


def test_distinct_rows_are_sorted_with_null_first_and_never_cut_short(subject: Subject) -> None:
    subject.load(1, (2, "b"), (1, "a"), (2, "b"))
    table = subject.table
    table.write(
        subject.spark.createDataFrame([(3, None)], "id long, unit string"),
        Append(),
        Tag(APP, 2, "owner 2"),
        "2",
        base=table.tip(APP).version,
    )
    assert list(subject.table.contents.distinct_rows(["unit", "id"])) == [
        {"unit": None, "id": 3},
        {"unit": "a", "id": 1},
        {"unit": "b", "id": 2},
    ]
    assert subject.table.contents.distinct_texts("unit") == {"a", "b"}
    assert _text_counts(subject.table, "unit") == {"a": 1, "b": 2}
    with pytest.raises(SourceError, match="at most 2 distinct rows"):
        subject.table.contents.distinct_rows(["id"], max_rows=2)
