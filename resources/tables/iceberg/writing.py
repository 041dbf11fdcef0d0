"""Strandline's commits of an Iceberg table: each is valid only on the snapshot on which its number was free (docs/adr/0018).

An append is one commit: it overwrites the rows of its own number, of which there must be none, in no snapshot since. Every other load is made
on a branch that begins at that snapshot; the branch then becomes what readers see, if they still see that snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import RowsRefused, TargetError, in_one_line
from partitions.evolution import SchemaMode
from partitions.load import Append, ByKeys, Load, Replace, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import EVERYTHING, NOTHING, Predicate
from partitions.target import COMMIT_COLUMN, HISTORY_COLUMNS
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.spark.frames import read_once
from resources.spark.settings import settings_for_a_while
from resources.sql import literal, quoted
from resources.tables.contract.commits import OthersFirst, Tag
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.columns import (
    OUTSIDE,
    check_reserved,
    check_types,
    commit_of,
    in_order_of,
    is_outside,
    with_commit,
)
from resources.tables.iceberg.commit import (
    OWNS_COLUMN,
    commit_value,
    summary_of,
)
from resources.tables.iceberg.evolution import TakenColumns
from resources.tables.iceberg.head import tip_of
from resources.tables.iceberg.layout import Layout
from resources.tables.iceberg.metadata import MAIN, Metadata, spark_schema
from resources.tables.iceberg.own_commit import OwnCommit, gone
from resources.tables.iceberg.refs import RefChange
from resources.tables.iceberg.rows import hides_commit_column, owns_commit_column
from resources.tables.row_columns import with_times
from resources.tables.rows.counted import kept_and_counted
from resources.tables.rows.merge_statement import merging_writer, missing_rows_writer
from resources.tables.rows.scd2 import changed_versions, first_versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession
    from pyspark.sql.types import StructType

_TRIES = 20
"""Commits of other writers that may come first, one after another, before a run gives way to them."""

_SHOWN = 200
"""Letters of Iceberg's words for a conflict."""

_BRANCH = "strandline_"
"""Before the names of branches on which commits are made."""

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

_CONFLICTS = (
    "ValidationException",
    "CommitFailedException",
    "Found conflicting files",
    "Cannot determine history",
    "stale table metadata",
    "some, but not all, rows match",
    "Requirement failed",
    "FIELD_ALREADY_EXISTS",
    "FIELDS_ALREADY_EXISTS",
)
"""What Iceberg says if the table is not what a commit was planned on."""

_SUMMARY = "spark.sql.iceberg.snapshot-property."


class _BranchLost(Exception):
    """A branch is not what was written to it: the writer was believed dead, or another engine has dropped it."""


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

    @property
    def shown(self) -> str:
        """The table's name, for people."""
        return str(self.place)

    @property
    def value(self) -> str:
        """What the commit's rows carry."""
        return commit_value(self.tag.app_id, self.tag.number)

    def write(self, rows: DataFrame, load: Load, *, first: bool) -> None:
        """Load rows, unless the number is taken; see :meth:`resources.tables.contract.table.Table.write`."""
        check_reserved(rows)
        if not first and self._takes_columns(load):
            self._take_columns(rows, load)
        last: Exception | None = None
        begun: str | None = None
        by_keys, count = not first and isinstance(load, ByKeys), None
        for attempt in range(_TRIES):
            metadata = self.catalog.newest()
            if self._is_taken(metadata):
                return
            if (metadata is None and not first) or begun not in (None, metadata and metadata.uuid):
                raise self._gone(metadata)
            begun = metadata.uuid if metadata else None
            if by_keys and attempt == 0:
                # Whatever finds out what they change uses them more than once, and a source may answer otherwise the second time.
                rows, count = kept_and_counted(rows)
            try:
                if metadata is not None and isinstance(load, ReplaceAll):
                    metadata = self._own(rows, metadata)
                if metadata is None or first:
                    self._create(rows, load)
                elif self._lands_as_own(rows, load, metadata, count):
                    return
                elif metadata.current is None or (isinstance(load, Append) and attempt == 0):
                    self._append(self._fitted(rows, load, metadata), metadata)
                else:
                    work = partial(self._load, self._fitted(rows, load, metadata), load, metadata)
                    self._publish(rows.sparkSession, metadata, work)
            except Exception as error:
                if is_outside(error):
                    raise RowsRefused(
                        f"table {self.shown}: rows are not among those that are replaced", code=OUTSIDE
                    ) from error
                # Rows that are kept do not fail. Files that others have removed do, with their snapshot.
                if first or not (_is_conflict(error) or (by_keys and self._has_moved(metadata))):
                    raise
                last = error
            else:
                return
        raise self._gave_way(last)

    def _has_moved(self, since: Metadata | None) -> bool:
        """Whether readers see another snapshot by now, or another table."""
        with suppress(TargetError):
            now = self.catalog.newest()
            seen, sees = (each and (each.uuid, each.current and each.current.id) for each in (since, now))
            return seen != sees
        return False

    def give_up(self, session: SparkSession, first_rows: Callable[[], DataFrame] | None) -> None:
        """Fence the number, unless it is taken; see :meth:`resources.tables.contract.table.Table.give_up`."""
        if first_rows is not None and self.catalog.newest() is None:
            self._create(first_rows(), None)
            return
        last: Exception | None = None
        for _ in range(_TRIES):
            metadata = self.catalog.newest()
            if metadata is None:
                raise self._gone(None)
            if self._is_taken(metadata):
                return
            try:
                self._fence(session, metadata)
            except Exception as error:
                if not _is_conflict(error):
                    raise
                last = error
            else:
                return
        raise self._gave_way(last)

    def _is_taken(self, metadata: Metadata | None) -> bool:
        return metadata is not None and tip_of(metadata, self.tag.app_id).tag >= self.tag.number

    def _take_columns(self, rows: DataFrame, load: Load) -> None:
        """Give the table the columns of rows, as the schema mode says, before they come: all that is written is built from columns that are there."""
        last: Exception | None = None
        for _ in range(_TRIES):
            metadata = self.catalog.newest()
            if metadata is None or self._is_taken(metadata):
                return
            taken = self._taken(load, metadata)
            if taken is None or not (changes := taken.statements(rows.schema, load)):
                return
            session = rows.sparkSession
            name = self.catalog.name(session)
            try:
                for change in changes:
                    session.sql(f"ALTER TABLE {name} {change}")
            except Exception as error:
                if not _is_conflict(error):
                    raise
                last = error
            else:
                return
        raise self._gave_way(last)

    def _fitted(self, rows: DataFrame, load: Load, metadata: Metadata) -> DataFrame:
        taken = self._taken(load, metadata)
        made = HISTORY_COLUMNS if isinstance(load, Scd2) else ()
        return rows if taken is None else taken.fitted(rows, made)

    def _takes_columns(self, load: Load) -> bool:
        return self.schema_mode in ("merge", "rescue") and not isinstance(load, ReplaceAll)

    def _taken(self, load: Load, metadata: Metadata) -> TakenColumns | None:
        """The columns that the table takes; None if it keeps its own, or is given new ones with all of its rows."""
        if not self._takes_columns(load):
            return None
        table = self._columns(metadata)
        own = [field for field in table.fields if field.name != COMMIT_COLUMN]
        return TakenColumns(self.schema_mode, type(table)(own), self.shown)

    def _create(self, rows: DataFrame, load: Load | None) -> None:
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

    def _own(self, rows: DataFrame, metadata: Metadata) -> Metadata:
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
            raise self._gone(None)
        return owned

    def _make_namespace(self, session: SparkSession) -> None:
        session.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.catalog.namespace(session)}")

    def _lands_as_own(self, rows: DataFrame, load: Load, metadata: Metadata, count: int | None) -> bool:
        """Load without Spark's commit, and return whether that was done; whether the number was taken meanwhile or not, there is nothing more to do then."""
        own = OwnCommit(
            self.place,
            self.catalog,
            self.value,
            self._summary(load, None),
            self._is_taken,
            partial(self._placed, metadata=metadata),
        )
        fitted = self._fitted(rows, load, metadata)
        if isinstance(load, ByKeys):
            check_types(with_times(fitted.schema, load), self._columns(metadata), self.shown)
        landed = own.lands(fitted, load, metadata, count)
        if landed and (left := self._left_branches(metadata)):
            with suppress(TargetError):  # the next commit drops them
                self.catalog.change_refs(RefChange(dropped=left))
        return landed

    def _placed(self, rows: DataFrame, metadata: Metadata) -> DataFrame:
        """Rows with the table's columns and that of their commit, which are checked to fit."""
        table = self._columns(metadata)
        check_types(rows.schema, table, self.shown)
        return in_order_of(rows, table, commit_of(self.value))

    def _append(self, rows: DataFrame, metadata: Metadata) -> None:
        """Append in one commit, in which files of the same number since the snapshot are a conflict. One without files is no commit of it yet."""
        from pyspark.sql import functions as F

        placed, name = self._placed(rows, metadata), self.catalog.name(rows.sparkSession)
        writer = placed.writeTo(name)
        writer = writer.option("isolation-level", "serializable")
        if metadata.current is not None:
            writer = writer.option("validate-from-snapshot-id", str(metadata.current.id))
        writer = self._told(writer, Append())
        writer.overwrite(F.col(COMMIT_COLUMN) == F.lit(self.value))
        after = self.catalog.newest()
        if after is not None and not self._is_taken(after):
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
        table = self._columns(metadata)

        def work(branch: str) -> Iterator[None]:
            from pyspark.sql import functions as F

            commit = commit_of(self.value)
            marker = in_order_of(session.range(1).select(commit.alias(COMMIT_COLUMN)), table, commit)
            marker.writeTo(branch).append()
            yield
            nothing = marker.limit(0).writeTo(branch)
            self._told(nothing, None, base or metadata).overwrite(F.col(COMMIT_COLUMN) == F.lit(self.value))
            yield

        self._publish(session, metadata, work)

    def _publish(
        self, session: SparkSession, metadata: Metadata, work: Callable[[str], Iterator[None]]
    ) -> None:
        """Do work on a branch that begins at the newest snapshot, and show it to readers if they still see that snapshot.

        Args:
            session: a session.
            metadata: of the table.
            work: yields after each of its commits to the branch.
        """
        name, snapshot = self.catalog.name(session), metadata.current
        branch = f"{_BRANCH}{self.tag.app_id[:12]}_{self.tag.number}_{uuid4().hex[:8]}"
        assert snapshot is not None
        if not self.catalog.change_refs(RefChange({}, {branch: snapshot.id}, self._left_branches(metadata))):
            raise _BranchLost(f"branch {branch} could not be made")
        try:
            tip = snapshot.id
            for _ in work(f"{name}.{quoted(f'branch_{branch}')}"):
                tip = self._tip_after(tip, branch)
            self._show(branch, snapshot.id, tip)
        except BaseException:
            with suppress(Exception):  # the next commit drops it
                self.catalog.change_refs(RefChange(dropped=(branch,)))
            raise

    def _show(self, branch: str, base: int, tip: int) -> None:
        """Have readers see the newest snapshot of a branch, which goes.

        Raises:
            OthersFirst: they see another one than the branch began at.
        """
        if not self.catalog.change_refs(RefChange(branches={MAIN: tip}, dropped=(branch,), seen=base)):
            raise OthersFirst(f"readers see another snapshot than {base}, where the branch begins")

    def _tip_after(self, tip: int, branch: str) -> int:
        """Return the snapshot of a branch after one more commit to it, which is on the one before, or that one if it changed nothing.

        Iceberg makes a branch that was dropped meanwhile again, from what readers see now: it would be theirs already, whatever came since.

        Raises:
            _BranchLost: it is on another one; or there is no such branch.
        """
        metadata = self.catalog.newest()
        now = (
            metadata.snapshots.get(metadata.refs.get(branch, {}).get("snapshot-id", -1)) if metadata else None
        )
        if now is None or tip not in (now.id, now.parent):
            raise _BranchLost(f"branch {branch} was dropped while it was written to")
        return now.id

    def _left_branches(self, metadata: Metadata) -> tuple[str, ...]:
        """What runs that died have left. A writer that still runs on such a branch loses it, as it would lose its number."""
        return tuple(ref for ref in metadata.refs if ref.startswith(f"{_BRANCH}{self.tag.app_id[:12]}_"))

    def _load(self, rows: DataFrame, load: Load, metadata: Metadata, branch: str) -> Iterator[None]:
        session, table = rows.sparkSession, self._columns(metadata)
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
        table = self._columns(metadata)
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
        with _saying(session, self._summary(load, metadata)):
            merging_writer(rows, merged, branch, self._columns(metadata), (COMMIT_COLUMN,)).merge()
        yield

    def _replace_all(self, rows: DataFrame, metadata: Metadata, branch: str) -> None:
        from pyspark.sql import functions as F

        session = rows.sparkSession
        rows = with_commit(rows, self.value)
        Layout(self.catalog.name(session), metadata, self.partition_by).fit(session, rows.schema)
        writer = self._told(rows.writeTo(branch), ReplaceAll(), metadata)
        writer.overwrite(F.lit(True))

    def _columns(self, metadata: Metadata) -> StructType:
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

    def _summary(self, load: Load | None, base: Metadata | None) -> Mapping[str, str]:
        return summary_of(self.tag, self.text, load, base.current.id if base and base.current else None)

    def _told(
        self, writer: DataFrameWriterV2, load: Load | None, base: Metadata | None = None
    ) -> DataFrameWriterV2:
        """A writer whose snapshot is the commit; ``base`` is what its branch begins at."""
        for key, value in self._summary(load, base).items():
            writer = writer.option(f"snapshot-property.{key}", value)
        return writer

    def _gone(self, now: Metadata | None) -> TargetError:
        return gone(self.shown, f"that number {self.tag.number} was planned on", now)

    def _gave_way(self, last: Exception | None) -> TargetError:
        said = f", the last time as {in_one_line(str(last))[:_SHOWN]}" if last else ""
        return TargetError(
            f"table {self.shown}: other writers committed {_TRIES} times while number {self.tag.number} was written{said}. Nothing is lost: the next run"
            " finishes it; let other writers pause"
        )


def _deleted(session: SparkSession, branch: str, where: Predicate) -> Iterator[None]:
    """Delete rows of a branch in a commit."""
    session.sql(f"DELETE FROM {branch} WHERE {sql(where, SPARK)}")  # noqa: S608 - names are quoted, values are literals
    yield


def _saying(session: SparkSession, summary: Mapping[str, str]) -> AbstractContextManager[None]:
    """Within it, what the session writes says this in its snapshots: statements of SQL take no options."""
    return settings_for_a_while(session, {_SUMMARY + key: value for key, value in summary.items()})


def _is_conflict(error: Exception) -> bool:
    if isinstance(error, (_BranchLost, OthersFirst)):
        return True
    text = in_one_line(str(error))
    return any(words in text for words in _CONFLICTS)
