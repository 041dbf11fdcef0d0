"""Lake tables that other writers change by SQL, and the multisets of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from partitions.target import COMMIT_COLUMN
from resources.connections.places import Place
from resources.tables.contract.commit_log import (
    CHANGE,
    DELETE,
    INSERT,
    VERSION,
    LoggedCommit,
    TableCommits,
)
from resources.tables.data_files.changed_values import changed_values
from resources.tables.delta.commit_log import DeltaCommits
from resources.tables.delta.log import DeltaLog
from resources.tables.iceberg.catalog import FolderCatalog
from resources.tables.iceberg.commit_log import IcebergCommits
from tests.support.iceberg import foreign_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

OWN = ("_ingested_at", "_run_id")
COLUMNS = (
    "id bigint, text string, number double, entries map<string,double>, list array<float>, "
    "struct struct<x:int,y:double>, bytes binary, amount decimal(10,2), part int, _run_id string"
)

_VECTORS = {"delta.enableDeletionVectors": "true"}
_FEED = {"delta.enableChangeDataFeed": "true"}
_BY_NAME = {"delta.columnMapping.mode": "name"}
_ROW_LEVEL = ("write.delete.mode", "write.update.mode", "write.merge.mode")
_MERGE_ON_READ = dict.fromkeys(_ROW_LEVEL, "merge-on-read")
TABLES: Mapping[str, tuple[str, dict[str, str], bool]] = {
    "delta": ("delta", {}, True),
    "delta, deletion vectors": ("delta", _VECTORS, False),
    "delta, feed": ("delta", _FEED, True),
    "delta, feed, names, vectors": ("delta", _FEED | _BY_NAME | _VECTORS, True),
    "delta, ids, checkpoints v2": (
        "delta",
        {"delta.columnMapping.mode": "id", "delta.checkpointPolicy": "v2", "delta.checkpointInterval": "2"},
        False,
    ),
    "iceberg, copy on write": ("iceberg", {"format-version": "2"}, True),
    "iceberg, merge on read": ("iceberg", {"format-version": "2", **_MERGE_ON_READ}, False),
    "iceberg, merge on read, parts": ("iceberg", {"format-version": "2", **_MERGE_ON_READ}, True),
    "iceberg 3, deletion vectors": ("iceberg", {"format-version": "3", **_MERGE_ON_READ}, True),
}
"""Tables: format, properties, and whether they have partitions."""

Rows = Counter[tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class SqlTable:
    """A table that Spark writes.

    Attributes:
        spark: session.
        folder: folder of the table.
        format: delta or iceberg.
        scratch: folder for scratch files.
    """

    spark: SparkSession
    folder: Path
    format: str
    scratch: Path

    @classmethod
    def create(
        cls, spark: SparkSession, folder: Path, format_: str, properties: Mapping[str, str], *, parts: bool
    ) -> SqlTable:
        """Create an empty table below a folder."""
        place = folder / "lake" / "bronze" / "events"
        place.parent.mkdir(parents=True)
        (folder / "scratch").mkdir()
        table = cls(spark, place, format_, folder / "scratch")
        listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        table.sql(
            f"CREATE TABLE {{T}} ({COLUMNS}) USING {format_} {'PARTITIONED BY (part)' if parts else ''} "
            f"{f'TBLPROPERTIES ({listed})' if listed else ''}"
        )
        return table

    @property
    def name(self) -> str:
        """Name of the table in SQL."""
        if self.format == "delta":
            return f"delta.`{self.folder}`"
        return foreign_table(self.spark, self.folder)

    @property
    def commits(self) -> TableCommits:
        """Commits of the table, as Strandline reads them."""
        place = Place(str(self.folder))
        if self.format == "delta":
            return DeltaCommits(DeltaLog(place))
        return IcebergCommits(place, FolderCatalog(place))

    def sql(self, statement: str) -> None:
        """Run a statement in which ``{T}`` is the table, and ``{C}`` its catalog."""
        name = self.name
        self.spark.sql(statement.format(T=name, C=name.partition(".")[0])).collect()

    def insert(self, *ids: int, number: str = "1.5d") -> None:
        """Insert a row for each id."""
        self.sql("INSERT INTO {T} VALUES " + ", ".join(values(id_, number) for id_ in ids))

    def folder_for_reads(self) -> Place:
        """Return the scratch folder."""
        return Place(str(self.scratch))

    def read(self, commit: LoggedCommit) -> DataFrame:
        """Return the rows after a commit, as Spark reads them."""
        if self.format == "delta":
            reader = self.spark.read.format("delta").option("versionAsOf", str(commit.version))
            return reader.load(str(self.folder))
        return self.spark.read.option("versionAsOf", commit.id).table(self.name)

    def net(self, *commits: LoggedCommit) -> DataFrame:
        """Return the net changes of commits."""
        return self.commits.net_changes(self.spark, commits, self.folder_for_reads)


def values(id_: int, number: str = "1.5d") -> str:
    """Return a row in SQL, with values that compare badly."""
    return (
        f"({id_}, 'a b{id_}', {number}, map('k', double('NaN'), 'j', 1.0d), array(float('-0.0'), NULL), "
        f"struct({id_}, double('NaN')), X'00FF', 1.50, {id_ % 2}, 'run')"
    )


@dataclass(frozen=True)
class Change:
    """The net change of one commit.

    Attributes:
        commit: the commit.
        inserted: rows that came.
        deleted: rows that went.
    """

    commit: LoggedCommit
    inserted: Rows
    deleted: Rows


def multiset(rows: DataFrame) -> Rows:
    """Return rows as they are, without the columns of a run."""
    return Counter(plain_row(row) for row in rows.collect())


def changed(net: DataFrame) -> tuple[Rows, Rows]:
    """Return the inserted and the deleted rows, from one query."""
    rows = net.collect()
    inserted, deleted = (
        Counter(plain_row(row) for row in rows if row[CHANGE] == change) for change in (INSERT, DELETE)
    )
    return inserted, deleted


def check_net_changes(table: SqlTable) -> list[Change]:
    """Assert that the rows before each commit and its net change are the rows after it; return the changes."""
    changes: list[Change] = []
    before: Rows = Counter()
    for commit in table.commits.since(None).commits:
        change = Change(commit, *changed(table.net(commit)))
        after = multiset(table.read(commit)) if commit.kind != "nothing" else before
        before = _with_columns_of(before, after)
        before.subtract(_with_columns_of(change.deleted, after))
        before.update(_with_columns_of(change.inserted, after))
        assert {row: count for row, count in before.items() if count} == after, commit
        assert not set(change.inserted) & set(change.deleted), commit
        if commit.kind != "rewrites":
            assert not change.deleted, commit
        if commit.kind != "rewrites" or commit.only_inserts:
            assert change.inserted.total() == commit.rows, commit
        _check_changed_values(table, change)
        changes.append(change)
        before = after
    files = table.commits.snapshot_files(changes[-1].commit.read_position)
    if all(file.rows is not None for file in files):
        assert sum(file.rows or 0 for file in files) == before.total()
    return changes


def _check_changed_values(table: SqlTable, change: Change) -> None:
    """Assert that Arrow finds the ids and parts of the rows that a commit changes, without Spark.

    Where equality deletes apply it may find more.
    """
    files = table.commits.changed_files([change.commit])
    values = changed_values(files, ["id", "part"])
    assert values is not None, change.commit
    told = {
        (repr(row["id"]), repr(None if row["part"] is None else int(row["part"])))
        for row in values.rows.to_pylist()
    }
    rows = (dict(row) for row in (*change.inserted, *change.deleted))
    actual = {(row["id"], row["part"]) for row in rows}
    if all(file.is_exact for file in files):
        assert told == actual, change.commit
    assert told >= actual, change.commit


def _with_columns_of(rows: Rows, others: Rows) -> Rows:
    """Return rows with NULL in the columns that only others have."""
    if not rows or not others:
        return Counter(rows)
    names = [name for name, _ in next(iter(others))]
    aligned: Rows = Counter()
    for row, count in rows.items():
        by_name = dict(row)
        aligned[tuple((name, by_name.get(name, repr(None))) for name in names)] += count
    return aligned


def plain_row(row: Row, *left_out: str) -> tuple[tuple[str, Any], ...]:
    """Return the names and values of a row as they compare, without columns of a run and of changes."""
    hidden = {*OWN, CHANGE, VERSION, COMMIT_COLUMN, *left_out}
    return tuple((name, _plain(value)) for name, value in sorted(row.asDict().items()) if name not in hidden)


def random_statement(random: Random, format_: str) -> str:
    """Return a statement that changes a table in some way, or not at all."""
    ids = sorted(random.sample(range(8), 3))
    low, high = ids[0], ids[-1]
    listed = ", ".join(map(str, ids))
    merge = f"MERGE INTO {{T}} t USING (SELECT explode(array({listed})) AS id) s ON t.id = s.id"
    insert = "WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 0)"
    overwrite = "INSERT OVERWRITE {T} SELECT * FROM {T} WHERE id <> " + str(low)
    compact = (
        "OPTIMIZE {T}"
        if format_ == "delta"
        else "CALL {C}.system.rewrite_data_files(table => 'bronze.events', options => map('rewrite-all', 'true'))"
    )
    return random.choice(
        [
            "INSERT INTO {T} VALUES " + ", ".join(values(id_, random.choice(NUMBERS)) for id_ in ids),
            f"DELETE FROM {{T}} WHERE id BETWEEN {low} AND {high}",
            f"DELETE FROM {{T}} WHERE id = {low}",
            f"DELETE FROM {{T}} WHERE part = {low % 2}",
            f"UPDATE {{T}} SET number = {random.choice(NUMBERS)} WHERE id <= {ids[1]}",
            f"UPDATE {{T}} SET text = text, _run_id = 'again' WHERE id >= {ids[1]}",
            f"UPDATE {{T}} SET part = 1 - part WHERE id = {low}",
            f"{merge} WHEN MATCHED AND t.id = {low} THEN DELETE WHEN MATCHED THEN UPDATE SET text = 'merged' {insert}",
            f"{merge} WHEN MATCHED AND t.id > 100 THEN DELETE {insert}",
            overwrite,
            compact,
            "ALTER TABLE {T} SET TBLPROPERTIES ('team' = 'x')",
        ]
    )


NUMBERS = ("0.0d", "double('-0.0')", "double('NaN')", "NULL", "2.5d")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((_plain(key), _plain(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(map(_plain, value))
    return repr(bytes(value) if isinstance(value, bytearray) else value)
