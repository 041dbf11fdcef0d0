"""Strandline's commits of an Iceberg table: each is valid only on the snapshot on which its number was free (docs/adr/0019).

An append is one commit: it overwrites the rows of its own number, of which there must be none, in no snapshot since. Every other load is made
on a branch that begins at that snapshot; the branch then becomes what readers see, if they still see that snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError, WriteConflict
from partitions.evolution import SchemaMode
from partitions.loads import Append, ByKeys, Load, Replace, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.target import COMMIT_COLUMN, HISTORY_COLUMNS
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark.frames import read_once
from resources.spark.settings import settings_for_a_while
from resources.sql import literal, quoted
from resources.tables.contract.commits import Tag
from resources.tables.contract.conflict_retries import outlasting_conflicts
from resources.tables.iceberg.branches import Branches
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.columns import (
    check_types,
    commit_of,
    in_order_of,
    with_commit,
)
from resources.tables.iceberg.commit import OWNS_COLUMN, commit_value, summary_of
from resources.tables.iceberg.conflicts import conflict_of, is_conflict
from resources.tables.iceberg.evolution import TakenColumns
from resources.tables.iceberg.head import tip_of
from resources.tables.iceberg.layout import Layout
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.own_commit import table_gone
from resources.tables.iceberg.rows import hides_commit_column, owns_commit_column
from resources.tables.rows.merge_statement import merging_writer, missing_rows_writer
from resources.tables.rows.scd2 import changed_versions, first_versions
from resources.tables.user_metadata import committed_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
    from pyspark.sql.types import StructType

_NEW_TABLE = {
    OWNS_COLUMN: COMMIT_COLUMN,
    # Else bounds are cut after 16 letters, and a file of one number may be one of any other.
    f"write.metadata.metrics.column.{COMMIT_COLUMN}": "full",
    # Else each commit leaves a file that lists all snapshots.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
_NUMBERED = {"format-version": "2"}
"""Without numbers of snapshots nothing tells which of two versions is the older one, where one was expired."""

MADE = "the table is made"
"""Why Spark commits a first slice."""

_SUMMARY = "spark.sql.iceberg.snapshot-property."


@dataclass(frozen=True)
class Commits:
    """Makes commits under one tag.

    Attributes:
        catalog: of the table.
        place: of the table.
        partition_by: the columns that a new table is partitioned by.
        tag: of the commit.
        text: what it says of itself.
        schema_mode: what becomes of the table's columns if rows come with others.
    """

    catalog: Catalog
    place: Place
    partition_by: tuple[str, ...]
    tag: Tag
    text: str
    schema_mode: SchemaMode = "strict"

    def committed_by(self, writer: str) -> Commits:
        """Return the same commits, which say who makes them."""
        return replace(self, text=committed_by(self.text, writer))

    @property
    def branches(self) -> Branches:
        """Those on which Spark makes commits."""
        return Branches(self.catalog, self.tag)

    @property
    def shown(self) -> str:
        """The table's name, for people."""
        return str(self.place)

    @property
    def value(self) -> str:
        """What the commit's rows carry."""
        return commit_value(self.tag.app_id, self.tag.number)

    def write_by_spark(self, rows: DataFrame, load: Load, metadata: Metadata, *, in_one: bool) -> None:
        """Load rows into a table that is there by Spark's own writer.

        Args:
            rows: of the slice.
            load: what becomes of the rows in the table.
            metadata: of the table as it was when the number was free.
            in_one: whether an append is one commit, without a branch.
        """
        fitted = self.fitted(rows, load, metadata)
        if metadata.current is None or in_one:
            self._append(fitted, metadata)
        else:
            work = partial(self._load, fitted, load, metadata)
            self.branches.publish(rows.sparkSession, metadata, work)

    def give_up(self, session: SparkSession, first_rows: Callable[[], DataFrame] | None) -> None:
        """Fence the number, unless it is taken; see :meth:`resources.tables.contract.table.Table.give_up`."""
        if first_rows is not None and self.catalog.newest() is None:
            self.committed_by(f"Spark: {MADE}").create(first_rows(), None)
            return
        fencing = self.committed_by("Spark: the number is fenced by a branch")

        def attempt() -> None:
            metadata = self.catalog.newest()
            if metadata is None:
                raise self.gone(None)
            if not self.is_taken(metadata):
                with self.telling_conflicts():
                    fencing._fence(session, metadata)

        outlasting_conflicts(attempt)

    @contextmanager
    def telling_conflicts(self) -> Iterator[None]:
        """Raise WriteConflict for errors within it that tell of another writer's commit."""
        try:
            yield
        except WriteConflict:
            raise
        except Exception as error:
            if is_conflict(error):
                raise conflict_of(self.shown, self.tag.number, error) from error
            raise

    def is_taken(self, metadata: Metadata | None) -> bool:
        """Return whether the number is taken."""
        return metadata is not None and tip_of(metadata, self.tag.app_id).tag >= self.tag.number

    def take_columns(self, rows: DataFrame, load: Load) -> None:
        """Give the table the columns of rows, as the schema mode says, before they come: all that is written is built from columns that are there."""

        def attempt() -> None:
            metadata = self.catalog.newest()
            if metadata is None or self.is_taken(metadata):
                return
            taken = self._taken(load, metadata)
            if taken is None or not (changes := taken.statements(rows.schema, load)):
                return
            session = rows.sparkSession
            name = self.catalog.name(session)
            with self.telling_conflicts():
                for change in changes:
                    session.sql(f"ALTER TABLE {name} {change}")

        outlasting_conflicts(attempt)

    def fitted(self, rows: DataFrame, load: Load, metadata: Metadata) -> DataFrame:
        """Return rows with the columns that the table takes."""
        taken = self._taken(load, metadata)
        made = HISTORY_COLUMNS if isinstance(load, Scd2) else ()
        return rows if taken is None else taken.fitted(rows, made)

    def takes_columns(self, load: Load) -> bool:
        """Return whether the table takes columns of the rows before a load."""
        return self.schema_mode in ("merge", "rescue") and not isinstance(load, ReplaceAll)

    def _taken(self, load: Load, metadata: Metadata) -> TakenColumns | None:
        """The columns that the table takes; None if it keeps its own, or is given new ones with all of its rows."""
        if not self.takes_columns(load):
            return None
        table = self.columns(metadata)
        own = [field for field in table.fields if field.name != COMMIT_COLUMN]
        return TakenColumns(self.schema_mode, type(table)(own), self.shown)

    def create(self, rows: DataFrame, load: Load | None) -> None:
        """Make the table with its first rows, in one commit. Nothing is there that could be replaced."""
        from pyspark.sql import functions as F

        rows = first_versions(rows, load) if isinstance(load, Scd2) else rows
        name = self.catalog.name(rows.sparkSession)
        self._make_namespace(rows.sparkSession)
        writer = with_commit(rows, self.value).writeTo(name).using("iceberg")
        for key, value in {**_NEW_TABLE, **self.catalog.new_table}.items():
            writer = writer.tableProperty(key, value)
        writer = self._told(writer, load)
        if self.partition_by:
            first, *others = [F.col(quoted(column)) for column in self.partition_by]
            writer = writer.partitionedBy(first, *others)
        writer.create()

    def own(self, rows: DataFrame, metadata: Metadata) -> Metadata:
        """Return the table as Strandline's, also if another writer has made it: no row of theirs stays, so that each row has its commit."""
        if owns_commit_column(metadata):
            return metadata
        session, wanted = rows.sparkSession, with_commit(rows, self.value).schema
        name = self.catalog.name(session)
        Layout(name, metadata, self.partition_by).fit(session, wanted)
        wanted_properties = _NEW_TABLE | ({} if metadata.format_version > 1 else _NUMBERED)
        given = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in wanted_properties.items())
        session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({given})").collect()
        owned = self.catalog.newest()
        if owned is None:
            raise self.gone(None)
        return owned

    def _make_namespace(self, session: SparkSession) -> None:
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.catalog.namespace(session)}")

    def placed(self, rows: DataFrame, metadata: Metadata) -> DataFrame:
        """Rows with the table's columns and that of their commit, which are checked to fit."""
        table = self.columns(metadata)
        check_types(rows.schema, table, self.shown)
        return in_order_of(rows, table, commit_of(self.value))

    def _append(self, rows: DataFrame, metadata: Metadata) -> None:
        """Append in one commit, in which files of the same number since the snapshot are a conflict. One without files is no commit of it yet."""
        from pyspark.sql import functions as F

        placed, name = self.placed(rows, metadata), self.catalog.name(rows.sparkSession)
        writer = placed.writeTo(name)
        writer = writer.option("isolation-level", "serializable")
        if metadata.current is not None:
            writer = writer.option("validate-from-snapshot-id", str(metadata.current.id))
        writer = self._told(writer, Append())
        writer.overwrite(F.col(COMMIT_COLUMN) == F.lit(self.value))
        after = self.catalog.newest()
        if after is not None and not self.is_taken(after):
            is_next = metadata.current and after.current and after.current.parent == metadata.current.id
            self._fence(rows.sparkSession, after, metadata if is_next else after)

    def _fence(self, session: SparkSession, metadata: Metadata, base: Metadata | None = None) -> None:
        """Take the number without a row: its file is there in one snapshot and gone in the next, and readers see only the second.

        An append that has begun before finds the file in the history, and any other load finds that what it began on is not what readers see.

        Args:
            session: a session.
            metadata: of the table as it is now.
            base: the table that the commit follows, if it has come here in more than one step.
        """
        table = self.columns(metadata)

        def work(branch: str) -> Iterator[None]:
            from pyspark.sql import functions as F

            commit = commit_of(self.value)
            marker = in_order_of(session.range(1).select(commit.alias(COMMIT_COLUMN)), table, commit)
            marker.writeTo(branch).append()
            yield
            nothing = marker.limit(0).writeTo(branch)
            self._told(nothing, None, base or metadata).overwrite(F.col(COMMIT_COLUMN) == F.lit(self.value))
            yield

        self.branches.publish(session, metadata, work)

    def _load(self, rows: DataFrame, load: Load, metadata: Metadata, branch: str) -> Iterator[None]:
        session, table = rows.sparkSession, self.columns(metadata)
        if isinstance(load, ReplaceAll):
            self._replace_all(rows, metadata, branch)
            yield
            return
        check_types(rows.schema, table, self.shown)
        match load:
            case Append():
                self._add(rows, load, metadata, branch)
            case Replace(where):
                yield from _deleted(session, branch, where)
                self._add(rows, load, metadata, branch, where)
            case _:
                yield from self._merge(rows, load, metadata, branch)
                return
        yield

    def _add(
        self,
        rows: DataFrame,
        load: Load,
        metadata: Metadata,
        branch: str,
        where: Predicate = EVERYTHING,
    ) -> None:
        table = self.columns(metadata)
        writer = in_order_of(rows, table, commit_of(self.value, where)).writeTo(branch)
        self._told(writer, load, metadata).append()

    def _merge(self, rows: DataFrame, load: ByKeys, metadata: Metadata, branch: str) -> Iterator[None]:
        """Merge rows that are kept: Spark looks first which files they touch, and a source may answer otherwise the second time.

        What the load clears is deleted by a commit of its own on the branch, which touches its files: a MERGE that deletes what it does not match
        writes each file of the table again.
        """
        session = rows.sparkSession
        if isinstance(load, Scd2):
            rows = read_once(changed_versions(rows, session.table(branch).drop(COMMIT_COLUMN), load))
        rows = with_commit(rows, self.value)
        if isinstance(load, Upsert) and load.where != NOTHING:
            missing_rows_writer(rows, load, branch).merge()
            yield
        elif isinstance(load, ReplaceKeys) and load.where != NOTHING:
            yield from _deleted(session, branch, load.where)
        merged = load if isinstance(load, Scd2) else replace(load, where=NOTHING)
        with _saying(session, self.summary(load, metadata)):
            merging_writer(rows, merged, branch, self.columns(metadata), (COMMIT_COLUMN,)).merge()
        yield

    def _replace_all(self, rows: DataFrame, metadata: Metadata, branch: str) -> None:
        from pyspark.sql import functions as F

        session = rows.sparkSession
        rows = with_commit(rows, self.value)
        Layout(self.catalog.name(session), metadata, self.partition_by).fit(session, rows.schema)
        writer = self._told(rows.writeTo(branch), ReplaceAll(), metadata)
        writer.overwrite(F.lit(True))

    def columns(self, metadata: Metadata) -> StructType:
        """Return the table's columns, with that of the commit, which must be there."""
        from pyspark.sql.types import StructType

        if not owns_commit_column(metadata):
            if hides_commit_column(metadata):
                raise TargetError(
                    f"table {self.shown}: lacks the column {COMMIT_COLUMN}, by which no number is written twice: another writer has dropped or converted it."
                    " Nothing is lost. Run `state reset --replace`, which loads all rows again, with the column"
                )
            raise RowsRefused(
                f"table {self.shown}: expected a table that Strandline has made, with a column {COMMIT_COLUMN}, found another writer's:"
                " without the column a number could be written twice. Load into another target.table"
            )
        return StructType.fromJson(spark_schema(metadata.schema))

    def summary(self, load: Load | None, base: Metadata | None) -> Mapping[str, str]:
        """Return what the snapshot of a load says of itself; ``base`` is what its branch begins at."""
        return summary_of(self.tag, self.text, load, base.current.id if base and base.current else None)

    def _told(
        self, writer: DataFrameWriterV2, load: Load | None, base: Metadata | None = None
    ) -> DataFrameWriterV2:
        """A writer whose snapshot is the commit; ``base`` is what its branch begins at."""
        for key, value in self.summary(load, base).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer

    def gone(self, now: Metadata | None) -> TargetError:
        """Return the error of a write whose table is not there any more."""
        return table_gone(self.shown, f"that number {self.tag.number} was planned on", now)


def _deleted(session: SparkSession, branch: str, where: Predicate) -> Iterator[None]:
    """Delete rows of a branch in a commit."""
    session.sql(f"DELETE FROM {branch} WHERE {sql(where, SPARK)}")  # noqa: S608 - names are quoted, values are literals
    yield


def _saying(session: SparkSession, summary: Mapping[str, str]) -> AbstractContextManager[None]:
    """Within it, what the session writes says this in its snapshots: statements of SQL take no options."""
    return settings_for_a_while(session, {_SUMMARY + key: value for key, value in summary.items()})
