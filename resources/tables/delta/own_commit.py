"""Strandline's own commit of a Delta table: Spark writes the data files, deltalake adds them to the log (docs/adr/0016).

The log has each version once. Whoever finds one taken looks at the table again, at its tag first. Nothing here changes rows of a file that
stays; :mod:`resources.tables.delta.own_limits` says which tables, rows and loads it is for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from partitions.errors import SourceError, StrandlineError, TargetError, WriteConflict, in_one_line
from partitions.loads import Append, ByKeys, Load, Replace
from resources.connections.places import Place
from resources.tables.contract.commits import Tag
from resources.tables.contract.conflict_retries import NeedsEngine, retry_conflicts
from resources.tables.data_files.reading import files_reader, is_spark_readable
from resources.tables.data_files.written import (
    DataFile,
    collect_data_files,
    lacks_committer,
    remove_files,
    write_files,
)
from resources.tables.delta.commit import app_transaction, file_name
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_change import (
    OTHER_COLUMNS,
    OTHERS_FIRST,
    BaseVersion,
    Change,
    Removals,
    removals_of,
)
from resources.tables.delta.own_keys import NO_PLACE, KeyedTable, urls
from resources.tables.delta.own_limits import demand_of, fits, lays_out, may_make, new_schema, takes_place
from resources.tables.rows.replacement import Replacement
from resources.tables.rows.row_counts import cache_and_count
from resources.tables.user_metadata import with_writer

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_CHECKPOINT_INTERVAL = 10
"""Commits, as Delta's own writer has it by default."""
_NEW_TABLES = "spark.databricks.delta.properties.defaults."


class _Unclear(TargetError):
    """A commit failed, and may be in the log, or come to be there, nevertheless: its files must stay."""


@dataclass(frozen=True)
class _Work:
    """What a commit writes and removes.

    Attributes:
        rows: to be written.
        schema: of them.
        layout: columns that folders stand for.
        removals: files that go.
        copied: returns how many of the rows were there before, and stay, as the folder and the files tell that were written; None if none do.
        all_paths: paths of all files of the table, if rows of it are changed by their keys.
    """

    rows: DataFrame
    schema: StructType
    layout: Sequence[str]
    removals: Removals
    count_copied: Callable[[Place, Sequence[DataFile]], int] | None = None
    all_paths: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OwnCommit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`.

    Each method returns why Delta's own writer must do it, and has left nothing behind then; None once the number is in the table.

    Attributes:
        log: of the table.
        tag: of the commit.
        text: its user metadata.
    """

    log: DeltaLog
    tag: Tag
    text: str

    def write(self, rows: DataFrame, load: Load, partition_by: Sequence[str], *, first: bool) -> str | None:
        """Load rows.

        Args:
            rows: of the slice.
            load: what becomes of the rows in the table, but one by keys: see :meth:`change`.
            partition_by: columns of a table that is made.
            first: whether the table must be made.

        Raises:
            RowsRefused: as the contract says.
            WriteConflict: others were faster in every attempt.
            TargetError: the commit failed otherwise.
        """
        try:
            if not takes_place(self.log.place):
                return NO_PLACE
            table = self.log.table()
            if self._is_taken(table):
                return None
            if first != (table is None):
                return "the table was made or removed meanwhile"
            self._land_work(self._added(rows, load, table, partition_by), load, table)
        except NeedsEngine as reason:
            return str(reason)
        return None

    def change(self, rows: DataFrame, load: ByKeys) -> tuple[DataFrame, str | None]:
        """Change rows by their keys; return the rows, too, which are kept if they were used.

        Raises:
            RowsRefused: as the contract says.
            TargetError: another table has come, or the commit failed otherwise.
        """
        try:
            keyed = KeyedTable.newest(self.log, rows.schema, load)
            rows, count = cache_and_count(rows)
            self._change(rows, load, keyed, count)
        except NeedsEngine as reason:
            return rows, str(reason)
        return rows, None

    def give_up(self) -> str | None:
        """Take the number by a commit that changes no row, in a table that is there."""
        if not takes_place(self.log.place):
            return NO_PLACE
        table = self.log.table()
        if self._is_taken(table):
            return None
        if table is None:
            return "there is no table"
        return demand_of(table, Append()) or self.land(Change(Append(), BaseVersion.of(table)))

    def land(self, change: Change) -> str | None:
        """Commit what was written.

        Raises:
            RowsRefused, WriteConflict, TargetError: as :meth:`write`.
        """
        try:
            self._put(change)
        except NeedsEngine as reason:
            return str(reason)
        return None

    def _change(self, rows: DataFrame, load: ByKeys, keyed: KeyedTable, count: int | None) -> None:
        place, table = self.log.place, self.log.table()
        if self._is_taken(table):
            return
        table = keyed.base.check_later(table, place)
        try:
            if table.version() != keyed.base.version:
                keyed = KeyedTable.of(table, place, rows.schema, load)
            change, removals = keyed.changed(rows, load, count)
            work = _Work(change.rows, keyed.schema, (), removals, change.count_copied, keyed.all_paths)
            self._land_work(work, load, table)
        except NeedsEngine:
            raise
        except Exception as error:
            # Rows that are kept do not fail. Files that others have taken out and deleted do.
            if keyed.base.check_later(self.log.table(), place).version() != table.version():
                raise NeedsEngine(OTHERS_FIRST) from error
            raise

    def _land_work(self, work: _Work, load: Load, table: DeltaTable | None) -> None:
        place = self.log.place
        staged = f"{self.tag.number:010d}-{uuid4().hex}"
        try:
            write_files(work.rows, place.child(staged), work.layout)
            files = collect_data_files(place, staged, work.schema, work.rows, work.layout)
            copied = work.count_copied(place.child(staged), files) if work.count_copied else 0
        except Exception as error:
            remove_files(place, staged)
            if lacks_committer(error):
                raise NeedsEngine("Spark was started without the committer for S3") from error
            if isinstance(error, ValueError):
                raise NeedsEngine("Python has no word for a value of a partition") from error
            if isinstance(error, SourceError):
                raise TargetError(
                    f"table {place}: what was written cannot be read: {error.message}"
                ) from error
            raise
        base = BaseVersion.of(table)
        self._put(
            Change(load, base, work.schema, work.layout, staged, files, work.removals, work.all_paths, copied)
        )

    def _added(
        self, rows: DataFrame, load: Load, table: DeltaTable | None, partition_by: Sequence[str]
    ) -> _Work:
        """Return what is written and removed by an append, or a load by a condition."""
        schema = rows.schema
        layout = _named_as(partition_by, schema) if table is None else table.metadata().partition_columns
        _check(table, schema, layout, load, rows.sparkSession)
        removals = Removals() if table is None else removals_of(table, load)
        if not all(is_spark_readable(self.log.place.child(path).url) for path in removals.copied):
            raise NeedsEngine("a file that goes in part has a name that Spark reads otherwise")
        if table is None or not isinstance(load, Replace):
            return _Work(rows, schema, layout, removals)
        replacement = self._replacement(rows, load, removals)
        return _Work(replacement.rows, schema, layout, removals, replacement.count_copied)

    def _replacement(self, rows: DataFrame, load: Replace, removals: Removals) -> Replacement:
        if not removals.part:
            return Replacement(rows, load, None)
        # Not through Delta: a file is read as it is, without the state of the whole table.
        reader = files_reader(rows.sparkSession, rows.schema)
        copied = reader.parquet(*urls(self.log.place, removals.part))
        return Replacement(rows, load, copied, sum(action["num_records"] for action in removals.part))

    def _is_taken(self, table: DeltaTable | None) -> bool:
        highest = table.transaction_version(self.tag.app_id) if table is not None else None
        return highest is not None and highest >= self.tag.number

    def _put(self, change: Change) -> None:
        """Put what was written into the log, unless the number is taken; nothing is left behind if it is not there."""
        try:
            landed = retry_conflicts(lambda: self._put_once(change))
        except _Unclear:
            raise
        except (StrandlineError, NeedsEngine):
            if change.staged:
                remove_files(self.log.place, change.staged)
            raise
        if change.staged and not (landed and change.files):
            remove_files(self.log.place, change.staged)

    def _put_once(self, change: Change) -> bool:
        """Commit as the version after the newest; return whether the files are in the table, or may be: else the number is taken."""
        table = self.log.table()
        if self._is_taken(table):
            return False
        removals = change.removals_now(table, self.log)
        try:
            self._commit(table, change, removals)
        except Exception as error:  # deltalake has many; what counts is what the log says now
            try:
                now = self.log.table()
                if self._is_taken(now):
                    return self._has_landed(change)
            except StrandlineError as unread:
                raise _Unclear(unread.message) from error
            if (now and now.version()) == (table and table.version()):
                error_text = in_one_line(str(error)) or type(error).__name__
                raise _Unclear(f"table {self.log.place}: its log cannot be written: {error_text}") from error
            raise WriteConflict(
                f"table {self.log.place}: another writer was first to put a version. Nothing is lost: run again"
            ) from error
        _make_checkpoint(table)
        return True

    def _has_landed(self, change: Change) -> bool:
        """Whether a commit whose answer was an error is in the table's log: an answer may be lost, and another run may do the same."""
        names = {file_name(file.path) for file in change.files}
        return any(
            commit.file in names for commit in self.log.commits(change.base.version if change.base else None)
        )

    def _commit(self, table: DeltaTable | None, change: Change, removals: Removals) -> None:
        from deltalake import CommitProperties, PostCommitHookProperties, Schema
        from deltalake.transaction import create_table_with_add_actions

        text = with_writer(self.text, "Strandline (deltalake)")
        properties = CommitProperties(
            custom_metadata={"userMetadata": text, **change.described(removals)},
            # Not deltalake's own: the tag must be looked for before each of them.
            max_commit_retries=0,
            app_transactions=[app_transaction(self.tag)],
        )
        # Checkpoints are made as often as Delta makes them, which deltalake does not.
        hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        adds = [_add_action(file) for file in change.files]
        place = self.log.place
        if table is not None:
            table.create_write_transaction(
                [*(_remove_action(action) for action in removals.all), *adds],
                "append",
                table.schema(),
                partition_by=list(change.partition_by) or None,
                commit_properties=properties,
                post_commithook_properties=hooks,
            )
        elif change.schema is not None:
            create_table_with_add_actions(
                place.url,
                Schema.from_json(new_schema(change.schema)),
                adds,
                "error",
                list(change.partition_by),
                storage_options=place.storage_options or None,
                commit_properties=properties,
                post_commithook_properties=hooks,
            )


def _make_checkpoint(table: DeltaTable | None) -> None:
    """Have readers begin with a checkpoint, as often as Delta does; the commit stands whether this succeeds or not.

    Args:
        table: as it was right before the commit; None if the commit has made it, which needs none.
    """
    if table is None:
        return
    with suppress(Exception):
        properties = table.metadata().configuration
        interval = int(properties.get("delta.checkpointInterval") or _CHECKPOINT_INTERVAL)
        if (table.version() + 1) % interval == 0:
            table.update_incremental()
            table.create_checkpoint()
            if str(properties.get("delta.enableExpiredLogCleanup")).lower() != "false":
                table.cleanup_metadata()


def _named_as(columns: Sequence[str], rows: StructType) -> list[str]:
    """Return columns by the names that the rows have for them, as Spark finds them: in any case."""
    names = {name.lower(): name for name in rows.names}
    return [names.get(column.lower(), column) for column in columns]


def _check(
    table: DeltaTable | None, schema: StructType, layout: Sequence[str], load: Load, spark: SparkSession
) -> None:
    """Raise NeedsEngine if a load of these rows is not for this module, as far as the table and its columns tell now."""
    if not lays_out(schema, layout):
        raise NeedsEngine("the table is partitioned by bytes")
    if table is not None:
        if demand := demand_of(table, load):
            raise NeedsEngine(demand)
        if not fits(table, schema):
            raise NeedsEngine(OTHER_COLUMNS)
        return
    settings: Any = spark.conf.getAll  # a property or a method, as the kind of session has it
    defaults = settings() if callable(settings) else settings
    if not may_make(schema, {key: value for key, value in defaults.items() if key.startswith(_NEW_TABLES)}):
        raise NeedsEngine("a new table with these columns, or the session's properties, is not plain")


def _add_action(file: DataFile) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        file.path, file.size, file.partition, file.modified, data_change=True, stats=file.statistics
    )


def _remove_action(action: Mapping[str, Any]) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(unquote(action["path"]), True, int(time.time() * 1000), action["size_bytes"])
