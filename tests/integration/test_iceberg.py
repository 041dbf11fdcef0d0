"""Iceberg tables beside writers that were believed dead, other dataflows and other engines (docs/reference/iceberg.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from partitions.loads import Append, Load, Replace, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import Among
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.spark.frames import read_once
from resources.tables.contract.commits import TableCommit, Tag
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg import spark_commit
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.table import IcebergTable
from resources.tables.rows.merge_statement import merge_rows
from tests.support.gates import until
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

APP = "app"
BY_SPARK = "append by Spark"
LOADS: dict[str, Load] = {
    "append": Append(),
    BY_SPARK: Append(),
    "upsert": Upsert(("id",), ()),
    "replace keys": ReplaceKeys(("id",)),
    "replace": Replace(Among("unit", ("a", "b", "zombie"))),
    "replace all": ReplaceAll(),
}


class Gate:
    """What rows wait at while Spark writes them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._reached, self._opened = folder / "reached", folder / "opened"

    def rows(self, spark: SparkSession, row: tuple[int, str]) -> DataFrame:
        """One row, which Spark has when the gate is open."""
        from pyspark.sql import functions as F

        reached, opened, test = str(self._reached), str(self._opened), os.getpid()

        def wait(value: str) -> str:
            import os
            import time

            open(reached, "a").close()  # noqa: PTH123 - runs in a worker of Spark
            while not os.path.exists(opened):  # noqa: PTH110
                os.kill(test, 0)  # a test that died must not keep the engine
                time.sleep(0.02)
            return value

        return spark.createDataFrame([row], "id long, unit string").withColumn(
            "unit", F.udf(wait, "string")("unit")
        )

    def reached(self, writer: Future[None]) -> None:
        """Wait until Spark writes; a writer that has ended without says why."""
        until(lambda: self._reached.exists() or writer.done())
        if not self._reached.exists():
            writer.result()

    def open(self) -> None:
        """Let the rows pass."""
        self._opened.touch()


class Asleep(FolderCatalog):
    """The catalog of a writer that has looked at the table, and goes on when much has happened since."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self._seen: list[Metadata | None] = [FolderCatalog(place).newest()]

    def newest(self) -> Metadata | None:
        """What it saw before it fell asleep, then what is there."""
        return self._seen.pop() if self._seen else super().newest()


@dataclass
class Lake:
    """One table, and what happens to it."""

    spark: SparkSession
    folder: Path
    partition_by: tuple[str, ...] = field(default=())

    @property
    def table(self) -> IcebergTable:
        return IcebergTable(Place(str(self.folder)), self.partition_by)

    def lay_out_for(self, load: str) -> None:
        """Make a table next in which this load is written as its name says: appends to partitions are Spark's."""
        self.partition_by = ("unit",) if load == BY_SPARK else ()

    def load(
        self,
        number: int,
        *rows: tuple[int, str],
        load: Load | None = None,
        app: str = APP,
        table: IcebergTable | None = None,
        **tag: Any,
    ) -> None:
        table = table or self.table
        made = Tag(app, number, tag.pop("owner", f"{app} {number}"), **tag)
        frame = self.spark.createDataFrame(list(rows), "id long, unit string")
        base = self.table.tip(app).version
        table.write(frame, load or Append(), made, str(number), base=base)

    def asleep(self) -> IcebergTable:
        """The table of a writer that wakes up later."""
        table = self.table
        table._catalog = Asleep(Place(str(self.folder)))
        return table

    def call(self, procedure: str, **arguments: str) -> None:
        """Another engine's call of a procedure for the table."""
        catalog, namespace, name = foreign_table(self.spark, self.folder).split(".")
        given = ", ".join(f"{key} => {value}" for key, value in arguments.items())
        comma = ", " if given else ""
        self.spark.sql(
            f"CALL {catalog}.system.{procedure}(table => '{namespace}.{name}'{comma}{given})"
        ).collect()

    def sql(self, text: str) -> None:
        """Another engine's statement; ``{t}`` is the table."""
        self.spark.sql(text.format(t=foreign_table(self.spark, self.folder))).collect()

    def age(self, days: int) -> None:
        """Make all snapshots and files older. A checksum beside the metadata would say that it was changed."""
        newest = self.table._catalog.newest()
        assert newest is not None
        raw: Any = newest.raw
        for entry in [*raw["snapshots"], *raw["snapshot-log"]]:
            entry["timestamp-ms"] -= days * 86_400_000
        Path(newest.location).write_text(json.dumps(raw))
        (self.folder / "metadata" / f".{Path(newest.location).name}.crc").unlink(missing_ok=True)
        for file in self.folder.rglob("*"):
            seconds = file.stat().st_mtime - days * 86_400
            os.utime(file, (seconds, seconds))

    def expire(self) -> None:
        """Expire all snapshots that nothing keeps."""
        self.call("expire_snapshots", older_than="TIMESTAMP '2100-01-01 00:00:00'", retain_last="1")

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        rows = self.table.contents.read(self.spark, self.table.contents.newest_version()).collect()
        return sorted((tuple(row) for row in rows), key=str)

    def recorded(self, number: int, app: str = APP) -> TableCommit:
        commit = self.table.head(None, app).find_tagged_commit(number)
        assert commit is not None
        return commit.commit

    @property
    def files(self) -> set[str]:
        """The data files of what readers see."""
        files = self.spark.table(f"{foreign_table(self.spark, self.folder)}.files")
        return {row[0] for row in files.select("file_path").collect()}

    @property
    def branches(self) -> list[str]:
        metadata = self.table._catalog.newest()
        assert metadata is not None
        return [name for name, ref in metadata.refs.items() if ref["type"] == "branch"]


@pytest.fixture
def lake(spark: SparkSession, tmp_path: Path) -> Lake:
    return Lake(spark, tmp_path / "lake" / "bronze" / "t")


@pytest.mark.parametrize(
    ("load", "rows"),
    [
        (Upsert(("id",), (), where=Among("unit", ("a",))), [(2, "z"), (3, "b"), (4, "c")]),
        (ReplaceKeys(("id",), where=Among("unit", ("a",))), [(2, "z"), (3, "b"), (4, "c")]),
    ],
    ids=["upsert", "replace keys"],
)
def test_clearing_loads_by_keys_leave_others(lake: Lake, load: Load, rows: list[tuple[int, str]]) -> None:
    lake.load(1, (1, "a"), (2, "a"))
    lake.load(2, (3, "b"))
    before = lake.files
    lake.load(3, (4, "c"))
    lake.load(4, (2, "z"), load=load)
    assert lake.rows == rows
    assert len(before & lake.files) == 1, "that of number 2"
    (commit,) = (commit for commit in lake.table.head(None, APP).tagged_commits if commit.number == 4)
    assert (commit.rows, commit.removed) == (1, 2)


@pytest.mark.parametrize(
    "name",
    [
        "append",
        BY_SPARK,
        "upsert",
        pytest.param("replace keys", marks=pytest.mark.full),
        "replace",
        pytest.param("replace all", marks=pytest.mark.full),
    ],
)
def test_a_writer_that_found_its_number_free_lands_nothing_if_another_took_it(lake: Lake, name: str) -> None:
    lake.lay_out_for(name)
    lake.load(1, (1, "a"))
    zombie = lake.asleep()
    lake.load(2, (2, "b"), load=LOADS[name])
    lake.load(3, (3, "c"))
    expected = lake.rows
    lake.load(2, (2, "zombie"), load=LOADS[name], table=zombie, owner="zombie")
    assert (lake.rows, lake.branches) == (expected, ["main"])
    assert [commit.owner for commit in lake.table.head(None, APP).tagged_commits] == [
        "app 1",
        "app 2",
        "app 3",
    ]


@pytest.mark.parametrize("name", ["append", BY_SPARK, "upsert"])
def test_a_fence_keeps_a_writer_out_that_found_its_number_free(lake: Lake, name: str) -> None:
    lake.lay_out_for(name)
    lake.load(1, (1, "a"))
    zombie = lake.asleep()
    lake.table.give_up(lake.spark, Tag(APP, 2, "fence", gives_up=True), "1", None)
    lake.load(2, (2, "zombie"), load=LOADS[name], table=zombie)
    assert (lake.rows, lake.recorded(2).id) == ([(1, "a")], "fence")


@pytest.mark.parametrize("name", ["append", BY_SPARK])
def test_a_slice_without_rows_keeps_a_writer_out_that_found_its_number_free(lake: Lake, name: str) -> None:
    lake.lay_out_for(name)
    lake.load(1, (1, "a"))
    before = lake.table.tip(APP).version
    zombie = lake.asleep()
    lake.load(2)
    lake.load(2, (2, "zombie"), table=zombie, owner="zombie")
    commit = lake.table.head(None, APP).find_tagged_commit(2)
    assert commit is not None
    assert (lake.rows, commit.owner, commit.follows) == ([(1, "a")], "app 2", before)


def test_no_reader_ever_sees_the_row_of_a_fence(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    lake.table.give_up(lake.spark, Tag(APP, 2, "fence", gives_up=True), "1", None)
    metadata = lake.table._catalog.newest()
    assert metadata is not None
    shown = [entry["snapshot-id"] for entry in metadata.raw["snapshot-log"]]
    assert [metadata.snapshots[snapshot].count("total-records") for snapshot in shown] == [1, 1]


@pytest.mark.parametrize("name", ["append", BY_SPARK, "upsert"])
def test_rows_that_others_commit_meanwhile_stay_and_the_number_lands_once(lake: Lake, name: str) -> None:
    lake.lay_out_for(name)
    lake.load(1, (1, "a"))
    slow = lake.asleep()
    lake.sql("INSERT INTO {t} VALUES (77, 'foreign', NULL)")
    lake.load(2, (2, "b"), load=LOADS[name], table=slow)
    assert lake.rows == [(1, "a"), (2, "b"), (77, "foreign")]
    head = lake.table.head(lake.recorded(1), APP)
    assert (head.has_recorded, head.emptied_by, [commit.number for commit in head.tagged_commits]) == (
        True,
        None,
        [2],
    )


def test_two_dataflows_append_at_once_and_no_row_is_lost(lake: Lake) -> None:
    lake.load(1, (0, "first"))

    def load(app: str) -> None:
        for number in (2, 3, 4):
            lake.load(number, (number, app), app=app)

    with ThreadPoolExecutor() as pool:
        list(pool.map(load, ("one", "two")))
    assert lake.rows == sorted([(0, "first"), *((n, a) for a in ("one", "two") for n in (2, 3, 4))], key=str)


def test_an_append_lands_among_numbers_of_several_dataflows(lake: Lake) -> None:
    for app, number in (("b", 1), ("a", 1), ("b", 2), ("a", 2), ("b", 3), ("b", 4)):
        lake.load(number, (number, app), app=app)
    lake.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    lake.load(3, (3, "a"), app="a")
    lake.load(5, (5, "b"), app="b")
    assert lake.rows == [
        (n, u)
        for n, u in sorted([(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a"), (3, "b"), (4, "b"), (5, "b")])
    ]
    head = lake.table.head(lake.recorded(2, "a"), "a")
    assert (head.has_recorded, head.emptied_by, head.highest_tag) == (True, None, 3)


@pytest.mark.parametrize(
    "statement",
    ["UPDATE {t} SET unit = 'changed'", "DELETE FROM {t} WHERE id < 10"],
    ids=["update", "delete"],
)
def test_rows_that_others_change_or_delete_are_theirs_to_change(lake: Lake, statement: str) -> None:
    lake.load(1, (1, "a"), (2, "b"))
    recorded = lake.recorded(1)
    lake.sql(statement)
    head = lake.table.head(recorded, APP)
    assert (head.has_recorded, head.emptied_by, head.highest_tag) == (True, None, 1)


def test_the_snapshot_of_the_newest_entry_is_kept_from_expiry_by_a_tag(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    lake.load(2, (2, "b"), after=lake.recorded(1))
    recorded = lake.recorded(2)
    lake.table.after_append(recorded, "flow")
    lake.sql("INSERT INTO {t} VALUES (77, 'foreign', NULL)")
    lake.call("rewrite_data_files", options="map('rewrite-all', 'true')")
    lake.expire()
    head = lake.table.head(recorded, APP)
    assert (
        head.has_recorded,
        head.commits_cleaned,
        head.emptied_by,
        head.highest_tag,
        head.tagged_commits,
    ) == (True, True, None, 2, ())
    told = lake.table.adoptable_state(APP)
    assert told is not None
    assert (told.state, told.number, told.owner, told.beyond) == ("2", 2, "app 2", False)
    lake.load(2, (2, "zombie"))
    lake.load(3, (3, "c"))
    assert [row[0] for row in lake.rows] == [1, 2, 3, 77]


def test_a_tag_moves_on_and_is_not_moved_where_it_is(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    lake.table.after_append(lake.recorded(1), "flow")
    lake.load(2, (2, "b"))
    for _ in range(2):
        lake.table.after_append(lake.recorded(2), "flow")
    metadata = lake.table._catalog.newest()
    assert metadata is not None
    assert metadata.refs["strandline_flow"] == {
        "snapshot-id": metadata.raw["current-snapshot-id"],
        "type": "tag",
    }
    assert metadata.version == 4
    lake.load(3, (3, "c"))
    assert [row[0] for row in lake.rows] == [1, 2, 3]


def test_after_an_expiry_without_a_tag_the_rows_tell_which_number_is_the_highest(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    lake.load(2, (2, "b"))
    recorded = lake.recorded(2)
    lake.sql("INSERT INTO {t} VALUES (77, 'foreign', NULL)")
    lake.sql("INSERT INTO {t} VALUES (78, 'foreign', NULL)")
    lake.expire()
    head = lake.table.head(recorded, APP)
    assert (head.has_recorded, head.commits_cleaned, head.highest_tag) == (True, True, 2)
    lake.load(2, (2, "zombie"))
    lake.load(3, (3, "c"))
    assert [row[0] for row in lake.rows] == [1, 2, 3, 77, 78]
    lost = TableCommit(recorded.version, recorded.id, 5)
    assert lake.table.head(lost, APP).has_recorded is False


def test_a_table_that_was_rolled_back_does_not_have_the_recorded_commit(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    first = lake.recorded(1)
    lake.load(2, (2, "b"), after=first)
    recorded = lake.recorded(2)
    lake.table.after_append(recorded, "flow")
    lake.call("rollback_to_snapshot", snapshot_id=str(first.version).partition("-")[2])
    head = lake.table.head(recorded, APP)
    assert (head.has_recorded, head.is_older, head.highest_tag) == (False, True, 1)
    told = lake.table.adoptable_state(APP)
    assert told is not None
    assert (told.state, told.number) == ("1", 1)


def test_a_branch_that_a_dead_run_has_left_is_dropped_by_the_next_one(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    lake.sql(f"ALTER TABLE {{t}} CREATE BRANCH strandline_{APP}_2_left")
    lake.sql("ALTER TABLE {t} CREATE BRANCH audit")
    lake.load(2, (1, "b"), load=LOADS["upsert"])
    assert (lake.branches, lake.rows) == (["main", "audit"], [(1, "b")])


def test_a_table_whose_metadata_is_packed_is_loaded_into_and_tagged(lake: Lake) -> None:
    lake.load(1, (1, "a"))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.compression-codec' = 'gzip')")
    lake.load(2, (1, "b"), load=LOADS["upsert"])
    recorded = lake.recorded(2)
    lake.table.after_append(recorded, "flow")
    lake.load(3, (2, "c"), after=recorded)
    metadata = lake.table._catalog.newest()
    assert metadata is not None
    refs = metadata.refs
    assert refs.keys() == {"main", "strandline_flow"}
    assert refs["strandline_flow"]["snapshot-id"] == int(str(recorded.version).partition("-")[2])
    assert lake.rows == [(1, "b"), (2, "c")]


@pytest.mark.parametrize(
    ("name", "meanwhile"),
    [
        ("upsert", "fenced"),
        ("replace all", "dropped"),
        *(
            pytest.param(name, meanwhile, marks=pytest.mark.full)
            for name, meanwhile in (
                ("upsert", "written"),
                ("replace all", "fenced"),
                ("replace all", "written"),
            )
        ),
    ],
)
def test_a_writer_whose_number_was_taken_lands_once_or_not_at_all(
    lake: Lake, engine: SparkEngine, tmp_path: Path, name: str, meanwhile: str
) -> None:
    lake.load(1, (1, "a"), (2, "b"))
    gate = Gate(tmp_path / "gate")
    base = lake.table.tip(APP).version

    def write() -> None:
        rows = gate.rows(engine.session(), (3, "zombie"))  # pyspark looks for the session of the thread
        lake.table.write(rows, LOADS[name], Tag(APP, 2, "zombie"), "2", base=base)

    with ThreadPoolExecutor(1) as pool:
        zombie = pool.submit(write)
        try:
            gate.reached(zombie)
            if meanwhile == "fenced":
                lake.table.give_up(lake.spark, Tag(APP, 2, "fence", gives_up=True), "1", None)
            elif meanwhile == "written":
                lake.load(2, (3, "b"), load=LOADS[name])
                lake.load(3, (4, "d"))
            else:
                (branch,) = [found for found in lake.branches if found != "main"]
                lake.sql(f"ALTER TABLE {{t}} DROP BRANCH `{branch}`")
            expected = lake.rows
        finally:
            gate.open()
        zombie.result()
    if meanwhile == "dropped":
        expected = [(3, "zombie")]
    assert (lake.rows, lake.branches) == (expected, ["main"])


def test_a_merge_with_a_dropped_branch_lands_once(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.partition_by = ("unit",)
    lake.load(1, (1, "a"), (2, "b"))

    def dropped(*arguments: Any) -> Any:
        monkeypatch.setattr(spark_commit, "merge_rows", merge_rows)
        (branch,) = [found for found in lake.branches if found != "main"]
        lake.sql(f"ALTER TABLE {{t}} DROP BRANCH `{branch}`")
        return merge_rows(*arguments)

    monkeypatch.setattr(spark_commit, "merge_rows", dropped)
    lake.load(2, (2, "c"), (3, "c"), load=LOADS["upsert"])
    assert (lake.rows, lake.branches) == ([(1, "a"), (2, "c"), (3, "c")], ["main"])


def test_a_load_under_a_rollback_lands_on_it(lake: Lake, engine: SparkEngine, tmp_path: Path) -> None:
    lake.load(1, (1, "a"))
    first = lake.recorded(1)
    lake.load(2, (2, "b"))
    gate, base = Gate(tmp_path / "gate"), lake.table.tip(APP).version

    def write() -> None:
        rows = gate.rows(engine.session(), (3, "c"))
        lake.table.write(rows, LOADS["upsert"], Tag(APP, 3, "app 3"), "3", base=base)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            gate.reached(writer)
            lake.call("rollback_to_snapshot", snapshot_id=str(first.version).partition("-")[2])
        finally:
            gate.open()
        writer.result()
    assert (lake.rows, lake.branches) == ([(1, "a"), (3, "c")], ["main"])


def test_a_rollback_before_a_load_shows_stays(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.load(1, (1, "a"))
    first = lake.recorded(1)
    lake.load(2, (2, "b"))
    put, acts = FolderCatalog._put_next, ["rollback"]

    def put_after_rollback(catalog: FolderCatalog, before: Metadata, raw: Mapping[str, Any]) -> bool:
        if acts and raw["current-snapshot-id"] != before.raw["current-snapshot-id"]:
            acts.pop()
            lake.call("rollback_to_snapshot", snapshot_id=str(first.version).partition("-")[2])
        return put(catalog, before, raw)

    monkeypatch.setattr(FolderCatalog, "_put_next", put_after_rollback)
    lake.load(3, (3, "c"), load=LOADS["upsert"])
    assert (acts, lake.rows, lake.branches) == ([], [(1, "a"), (3, "c")], ["main"])
    folder = lake.folder / "metadata"
    newest = max(int(path.name[1:].partition(".")[0]) for path in folder.glob("v*.metadata.json"))
    assert (folder / "version-hint.text").read_text() == str(newest)


@pytest.mark.full
def test_a_table_that_merges_on_read_is_counted_and_read_like_any_other(lake: Lake) -> None:
    lake.load(1, (1, "a"), (2, "b"), (3, "c"))
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('write.merge.mode' = 'merge-on-read')")
    lake.load(2, (1, "z"), (4, "d"), load=LOADS["upsert"])
    commit = lake.table.head(None, APP).find_tagged_commit(2)
    assert commit is not None
    counted = lake.table.complete_counts(commit, 3)
    assert (counted.rows, counted.removed, lake.table.contents.count_rows()) == (2, 1, 4)
    assert lake.rows == [(1, "z"), (2, "b"), (3, "c"), (4, "d")]
    assert [tuple(row.values()) for row in lake.table.contents.distinct_rows(["id", "unit"])] == lake.rows


def test_another_writers_table_is_not_loaded_into(lake: Lake) -> None:
    from partitions.errors import RowsRefused

    lake.sql("CREATE TABLE {t} (id BIGINT, unit STRING) USING iceberg")
    lake.sql("INSERT INTO {t} VALUES (1, 'a')")
    with pytest.raises(RowsRefused, match="expected a table that Strandline created"):
        lake.load(1, (2, "b"))
    assert lake.rows == [(1, "a")]


@pytest.mark.parametrize("rows", [True, False], ids=["with rows", "without a snapshot"])
def test_a_load_that_replaces_all_rows_makes_another_writers_table_ones_own(lake: Lake, rows: bool) -> None:
    lake.sql("CREATE TABLE {t} (unit INT, _commit INT) USING iceberg PARTITIONED BY (bucket(4, unit))")
    if rows:
        lake.sql("INSERT INTO {t} VALUES (7, 8)")
    lake.load(1, (1, "a"), (2, "b"), load=ReplaceAll())
    assert lake.rows == [(1, "a"), (2, "b")]
    lake.load(2, (3, "c"))
    lake.load(2, (4, "zombie"))
    assert lake.rows == [(1, "a"), (2, "b"), (3, "c")]
    assert lake.table.head(None, APP).highest_tag == 2


@pytest.mark.parametrize(
    ("partition_by", "order"),
    [
        ((), "WRITE ORDERED BY unit"),
        pytest.param(
            ("unit",), "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY unit", marks=pytest.mark.full
        ),
    ],
)
def test_replace_all_changes_a_sorted_column(lake: Lake, partition_by: tuple[str, ...], order: str) -> None:
    lake.partition_by = partition_by
    lake.load(1, (1, "a"))
    lake.sql(f"ALTER TABLE {{t}} {order}")
    lake.load(2, (2, "b"))
    frame = lake.spark.createDataFrame([(3, 5)], "id long, unit int")
    lake.table.write(frame, ReplaceAll(), Tag(APP, 3, "app 3"), "3", base=lake.table.tip(APP).version)
    metadata = lake.table._catalog.newest()
    assert metadata is not None
    assert (lake.rows, metadata.partition_spec.partition_by) == ([(3, 5)], partition_by)


def test_replace_all_may_leave_null_where_another_writer_needs_a_value(lake: Lake) -> None:
    columns = "id BIGINT NOT NULL, unit STRING NOT NULL, s STRUCT<k: BIGINT NOT NULL> NOT NULL, kept BIGINT NOT NULL"
    lake.sql(f"CREATE TABLE {{t}} ({columns}) USING iceberg TBLPROPERTIES ('format-version' = '1')")
    lake.sql("ALTER TABLE {t} SET IDENTIFIER FIELDS id, s.k, unit")
    lake.sql("INSERT INTO {t} VALUES (7, 'x', named_struct('k', 1L), 1)")
    frame = lake.spark.createDataFrame(
        [("1", None, (None,), None)], "id string, unit string, s struct<k: long>, kept long"
    )
    lake.table.write(frame, ReplaceAll(), Tag(APP, 1, "app 1"), "1", base=lake.table.tip(APP).version)
    assert lake.rows == [("1", None, (None,), None)]
    assert not str(lake.recorded(1).version).startswith("0-"), "its snapshots are numbered"


def test_a_table_without_rows_has_a_version_that_is_read(lake: Lake) -> None:
    lake.sql("CREATE TABLE {t} (id BIGINT) USING iceberg")
    assert (lake.rows, lake.table.contents.count_rows(), lake.table.contents.has_data()) == ([], 0, False)
    assert list(lake.table.contents.distinct_rows(["id"])) == []


def test_vacuum_leaves_named_and_young_snapshots_and_needed_files(lake: Lake) -> None:
    for number in (1, 2):
        lake.load(number, (number, "a"))
    recorded = lake.recorded(2)
    lake.table.after_append(recorded, "flow")
    lake.sql("INSERT INTO {t} VALUES (77, 'foreign', NULL)")
    stray, state = lake.folder / "data" / "stray.parquet", lake.folder / "_strandline" / "state.json"
    state.parent.mkdir()
    for file in (stray, state):
        file.write_text("x")
    lake.age(8)
    lake.load(3, (3, "a"))
    young = lake.folder / "data" / "young.parquet"
    young.write_text("x")
    last = lake.recorded(3)
    there = [path for path in lake.folder.rglob("*") if path.is_file()]
    deleted = lake.table.maintenance.vacuum(lambda: lake.spark).deleted
    assert deleted == len([path for path in there if not path.exists()]) > 0
    metadata = lake.table._catalog.newest()
    assert metadata is not None
    left = {snapshot.version for snapshot in metadata.snapshots.values()}
    assert left == {recorded.version, last.version}
    assert [file.exists() for file in (stray, state, young)] == [False, True, True]
    for commit in (recorded, last):
        head = lake.table.head(commit, APP)
        assert (head.has_recorded, head.emptied_by, head.highest_tag) == (True, None, 3)
    lake.load(3, (3, "zombie"))
    assert lake.rows == [(1, "a"), (2, "a"), (3, "a"), (77, "foreign")]


@pytest.mark.full
def test_a_retention_of_the_table_is_kept_but_never_below_a_day(lake: Lake) -> None:
    for number in (1, 2):
        lake.load(number, (number, "a"))
    lake.age(2)
    lake.load(3, (3, "a"))
    assert lake.table.maintenance.vacuum(lambda: lake.spark).deleted == 0
    lake.sql("ALTER TABLE {t} SET TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '60000')")
    lake.load(4, (4, "a"))
    assert lake.table.maintenance.vacuum(lambda: lake.spark).deleted > 0
    metadata = lake.table._catalog.newest()
    assert metadata is not None
    left = {snapshot.version for snapshot in metadata.snapshots.values()}
    assert left == {lake.recorded(number).version for number in (3, 4)}
    assert lake.rows == [(number, "a") for number in (1, 2, 3, 4)]


@pytest.mark.full
@pytest.mark.parametrize("name", ["append", "upsert"])
def test_fields_inside_of_arrays_and_maps_come_with_their_rows(lake: Lake, name: str) -> None:
    ddl = (
        "id long, points array<struct<x: int>>, named map<string, struct<x: float>>, price decimal(8,2)",
        "id long, points array<struct<x: bigint, y: string>>, named map<string, struct<x: double, y: date>>, price decimal(10,2)",
    )
    rows = (
        (1, [(1,)], {"a": (0.5,)}, None),
        (2, [(2**40, "y")], {"a": (0.5, date(2024, 1, 1))}, Decimal("12345678.25")),
    )
    for number, (row, columns) in enumerate(zip(rows, ddl, strict=True), 1):
        table = lake.table.with_schema_mode("merge")
        frame = lake.spark.createDataFrame([row], columns)
        tag, base = Tag(APP, number, f"app {number}"), table.tip(APP).version
        table.write(frame, LOADS[name], tag, str(number), base=base)
    assert lake.rows == [
        (1, [(1, None)], {"a": (0.5, None)}, None),
        (2, [(2**40, "y")], {"a": (0.5, date(2024, 1, 1))}, Decimal("12345678.25")),
    ]
    first = lake.table.contents.read(lake.spark, str(lake.recorded(1).version))
    assert first.schema["points"].dataType.simpleString() == "array<struct<x:int>>"
    lake.load(2, (2, "zombie"), table=lake.table.with_schema_mode("merge"))
    assert lake.table.contents.columns() == ["id", "points", "named", "price"]


@pytest.mark.full
def test_versions_of_rows_get_new_columns(lake: Lake) -> None:
    load = Scd2(("id",), "since")
    for number, ddl, row in (
        (1, "id long, since int", (1, 1)),
        (2, "id long, since long, fact string", (1, 2**40, "b")),
        (3, "since int, id long", (3, 2)),
    ):
        table = lake.table.with_schema_mode("merge")
        frame, base = lake.spark.createDataFrame([row], ddl), table.tip(APP).version
        table.write(frame, load, Tag(APP, number, "owner"), str(number), base=base)
    rows = lake.table.contents.read(lake.spark, lake.table.contents.newest_version())
    shown = rows.select("id", "fact", "_valid_from", "_valid_to", "_is_current").collect()
    assert sorted((tuple(row) for row in shown), key=str) == [
        (1, "b", 2**40, None, True),
        (1, None, 1, 2**40, False),
        (2, None, 3, None, True),
    ]


def test_a_row_that_does_not_fit_is_not_converted_in_mode_rescue(lake: Lake) -> None:
    from partitions.errors import RowsRefused

    lake.load(1, (1, "a"))
    table = lake.table.with_schema_mode("rescue")
    frame = lake.spark.createDataFrame([("2", "b", "{}")], "id string, unit string, _rescued_data string")
    with pytest.raises(RowsRefused, match="expected type bigint, found column id of type string"):
        table.write(frame, Append(), Tag(APP, 2, "owner"), "2", base=table.tip(APP).version)
    narrow = lake.spark.createDataFrame([(2, "b", "{}")], "id int, unit string, _rescued_data string")
    table.write(narrow, Append(), Tag(APP, 2, "owner"), "2", base=table.tip(APP).version)
    assert lake.rows == [(1, "a", None), (2, "b", "{}")]


@pytest.mark.full
def test_dataflows_of_a_shared_table_merge_at_once(lake: Lake, engine: SparkEngine) -> None:
    def load(name: str) -> None:
        spark = engine.session()  # each run has one of its own
        for number in (1, 2, 3):
            table = lake.table.share_of(name)
            frame = spark.createDataFrame(
                [(1, f"{name}{number}", name)], "id long, unit string, _dataflow string"
            )
            tag, base = Tag(name, number, f"{name} {number}"), table.tip(name).version
            retry_conflicts(partial(table.write, frame, Upsert(("id",), ()), tag, str(number), base=base))

    with ThreadPoolExecutor() as pool:
        list(pool.map(load, ("one", "two")))
    assert lake.rows == [(1, "one3", "one"), (1, "two3", "two")]
    for name in ("one", "two"):
        head = lake.table.share_of(name).head(None, name)
        assert [(commit.number, commit.rows) for commit in head.tagged_commits] == [(1, 1), (2, 1), (3, 1)]


def test_rows_are_kept_for_the_session_that_reads_them(engine: SparkEngine) -> None:
    first = engine.session()
    engine.session()
    assert read_once(first.range(2)).collect() == [(0,), (1,)]
