"""Commit data files that Spark wrote to a Delta table's log with deltalake.

See docs/explanation/adr/0016.

The log has each version once. If a version is taken, read the table again, its tag first. No file that
stays is changed; :mod:`resources.tables.delta.own_limits` says which tables, rows and loads qualify.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from partitions.errors import StrandlineError, TargetError, WriteConflict, shorten_to_line
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
    removing_failed_files,
    write_files,
)
from resources.tables.delta.commit import app_transaction, file_name
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.log_actions import add_action, remove_action
from resources.tables.delta.own_change import (
    CONCURRENT_COMMIT,
    OTHER_COLUMNS,
    BaseVersion,
    PlannedChange,
    Removals,
    find_removals,
)
from resources.tables.delta.own_keys import UNSUPPORTED_LOCATION, KeyedTable, spark_urls
from resources.tables.delta.own_limits import (
    can_create,
    can_partition_by,
    has_same_columns,
    is_supported_location,
    nullable_schema,
    unmet_demand,
)
from resources.tables.rows.replacement import Replacement
from resources.tables.rows.row_counts import cache_and_count
from resources.tables.user_metadata import with_writer

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_CHECKPOINT_INTERVAL = 10
"""Number of commits between checkpoints, Delta's default."""
_DEFAULTS_PREFIX = "spark.databricks.delta.properties.defaults."


class _UnknownOutcome(TargetError):
    """A commit failed but may still be, or get, into the log, so its files must stay."""


@dataclass(frozen=True)
class _PlannedWrite:
    """The rows to write and the files to remove.

    Attributes:
        rows: rows to write.
        schema: schema of the rows.
        partition_columns: partition columns.
        removals: files to remove.
        count_copied: counts the copied rows among the written files; None if no rows are copied.
        all_paths: paths of all files of the table, for a keyed load.
        deleted_rows: rows that deletes of an upsert remove.
    """

    rows: DataFrame
    schema: StructType
    partition_columns: Sequence[str]
    removals: Removals
    count_copied: Callable[[Place, Sequence[DataFile]], int] | None = None
    all_paths: frozenset[str] = frozenset()
    deleted_rows: int = 0


@dataclass(frozen=True)
class DeltaOwnCommit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`.

    Each method returns None once the number is in the table; otherwise the reason why Delta's own writer
    must commit, with nothing left behind.

    Attributes:
        log: log of the table.
        tag: tag of the commit.
        text: user metadata of the commit.
    """

    log: DeltaLog
    tag: Tag
    text: str

    def write(
        self, rows: DataFrame, load: Load, partition_by: Sequence[str], *, creates_table: bool
    ) -> str | None:
        """Load rows in one commit by a load without keys; :meth:`change` does keyed loads.

        Args:
            rows: rows of the slice.
            load: load without keys.
            partition_by: partition columns of a new table.
            creates_table: whether the commit must create the table.

        Raises:
            RowsRefused: as the contract says.
            WriteConflict: another writer came first in every attempt.
            TargetError: the commit failed otherwise.
        """
        try:
            if not is_supported_location(self.log.place):
                return UNSUPPORTED_LOCATION
            table = self.log.table()
            if self._is_taken(table):
                return None
            if creates_table != (table is None):
                return "the table was created or removed meanwhile"
            self._write_and_commit(self._plan_write(rows, load, table, partition_by), load, table)
        except NeedsEngine as reason:
            return str(reason)
        return None

    def change(self, rows: DataFrame, load: ByKeys) -> tuple[DataFrame, str | None]:
        """Change rows by key; return the rows, cached if they were read, and None or the reason.

        Raises:
            RowsRefused: as the contract says.
            TargetError: the table was replaced, or the commit failed otherwise.
        """
        try:
            keyed_table = KeyedTable.newest(self.log, rows.schema, load)
            rows, count = cache_and_count(rows)
            self._change(rows, load, keyed_table, count)
        except NeedsEngine as reason:
            return rows, str(reason)
        return rows, None

    def give_up(self) -> str | None:
        """Take the number in an existing table by a commit that changes no row.

        Raises:
            WriteConflict, TargetError: as :meth:`write`.
        """
        if not is_supported_location(self.log.place):
            return UNSUPPORTED_LOCATION
        table = self.log.table()
        if self._is_taken(table):
            return None
        if table is None:
            return "there is no table"
        return unmet_demand(table, Append()) or self.commit_change(
            PlannedChange(Append(), BaseVersion.of(table))
        )

    def commit_change(self, change: PlannedChange) -> str | None:
        """Commit a planned change whose files are written.

        Raises:
            RowsRefused, WriteConflict, TargetError: as :meth:`write`.
        """
        try:
            self._commit_or_clean_up(change)
        except NeedsEngine as reason:
            return str(reason)
        return None

    def _change(self, rows: DataFrame, load: ByKeys, keyed_table: KeyedTable, count: int | None) -> None:
        place, table = self.log.place, self.log.table()
        if self._is_taken(table):
            return
        table = keyed_table.base.check_later(table, place)
        try:
            if table.version() != keyed_table.base.version:
                keyed_table = KeyedTable.of(table, place, rows.schema, load)
            rewritten, removals = keyed_table.rewrite(rows, load, count)
            work = _PlannedWrite(
                rewritten.rows,
                keyed_table.schema,
                (),
                removals,
                rewritten.count_copied,
                keyed_table.all_paths,
                rewritten.deleted_rows,
            )
            self._write_and_commit(work, load, table)
        except NeedsEngine:
            raise
        except Exception as error:
            # The cached rows cannot fail, but files that others removed and deleted can.
            if keyed_table.base.check_later(self.log.table(), place).version() != table.version():
                raise NeedsEngine(CONCURRENT_COMMIT) from error
            raise

    def _write_and_commit(self, work: _PlannedWrite, load: Load, table: DeltaTable | None) -> None:
        place = self.log.place
        folder_name = f"{self.tag.number:010d}-{uuid4().hex}"
        with removing_failed_files(place, place, folder_name):
            try:
                write_files(work.rows, place.child(folder_name), work.partition_columns)
                files = collect_data_files(place, folder_name, work.schema, work.rows, work.partition_columns)
                copied_rows = work.count_copied(place.child(folder_name), files) if work.count_copied else 0
            except ValueError as error:
                if lacks_committer(error):
                    raise
                raise NeedsEngine("Python cannot represent a partition value") from error
        base = BaseVersion.of(table)
        self._commit_or_clean_up(
            PlannedChange(
                load,
                base,
                work.schema,
                work.partition_columns,
                folder_name,
                files,
                work.removals,
                work.all_paths,
                copied_rows,
                work.deleted_rows,
            )
        )

    def _plan_write(
        self, rows: DataFrame, load: Load, table: DeltaTable | None, partition_by: Sequence[str]
    ) -> _PlannedWrite:
        """Plan the files that an append or a load by a condition writes and removes."""
        schema = rows.schema
        partition_columns = (
            _spelled_as_in(partition_by, schema) if table is None else table.metadata().partition_columns
        )
        _check_own_commit(table, schema, partition_columns, load, rows.sparkSession)
        removals = Removals() if table is None else find_removals(table, load)
        if not all(is_spark_readable(self.log.place.child(path).url) for path in removals.copied_paths):
            raise NeedsEngine("a rewritten file has a name that Spark reads differently")
        if table is None or not isinstance(load, Replace):
            return _PlannedWrite(rows, schema, partition_columns, removals)
        replacement = self._replacement(rows, load, removals)
        return _PlannedWrite(replacement.rows, schema, partition_columns, removals, replacement.count_copied)

    def _replacement(self, rows: DataFrame, load: Replace, removals: Removals) -> Replacement:
        if not removals.partial_files:
            return Replacement(rows, load, None)
        # Read the files without Delta, which would load the state of the whole table.
        reader = files_reader(rows.sparkSession, rows.schema)
        partly_replaced = reader.parquet(*spark_urls(self.log.place, removals.partial_files))
        return Replacement(
            rows, load, partly_replaced, sum(action["num_records"] for action in removals.partial_files)
        )

    def _is_taken(self, table: DeltaTable | None) -> bool:
        highest = table.transaction_version(self.tag.app_id) if table is not None else None
        return highest is not None and highest >= self.tag.number

    def _commit_or_clean_up(self, change: PlannedChange) -> None:
        """Commit the written files unless the number is taken; delete files that are not in the log."""
        try:
            is_in_table = retry_conflicts(lambda: self._try_commit(change))
        except _UnknownOutcome:
            raise
        except (StrandlineError, NeedsEngine):
            if change.staged:
                remove_files(self.log.place, change.staged)
            raise
        if change.staged and not (is_in_table and change.files):
            remove_files(self.log.place, change.staged)

    def _try_commit(self, change: PlannedChange) -> bool:
        """Commit as the version after the newest; return whether the files are, or may be, in the table.

        False means that the number is taken.
        """
        table = self.log.table()
        if self._is_taken(table):
            return False
        removals = change.current_removals(table, self.log)
        try:
            self._commit(table, change, removals)
        except Exception as error:  # deltalake raises many kinds; the log says whether the commit is there
            try:
                newest_table = self.log.table()
                if self._is_taken(newest_table):
                    return self._is_in_log(change)
            except StrandlineError as read_error:
                raise _UnknownOutcome(read_error.message) from error
            if (newest_table and newest_table.version()) == (table and table.version()):
                error_text = shorten_to_line(str(error)) or type(error).__name__
                raise _UnknownOutcome(
                    f"table {self.log.place}: its log cannot be written: {error_text}"
                ) from error
            raise WriteConflict(
                f"table {self.log.place}: another writer committed first. No data is lost: run again"
            ) from error
        _make_checkpoint(table)
        return True

    def _is_in_log(self, change: PlannedChange) -> bool:
        """Return whether a commit that ended in an error is in the log: its answer may have been lost."""
        names = {file_name(file.path) for file in change.files}
        return any(
            commit.file in names for commit in self.log.commits(change.base.version if change.base else None)
        )

    def _commit(self, table: DeltaTable | None, change: PlannedChange, removals: Removals) -> None:
        from deltalake import CommitProperties, PostCommitHookProperties, Schema
        from deltalake.transaction import create_table_with_add_actions

        text = with_writer(self.text, "Strandline (deltalake)")
        commit_properties = CommitProperties(
            custom_metadata={"userMetadata": text, **change.commit_info(removals)},
            # We retry ourselves, because the tag must be checked before each attempt.
            max_commit_retries=0,
            app_transactions=[app_transaction(self.tag)],
        )
        # We write checkpoints as often as Delta does; deltalake does not.
        hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        adds = [add_action(file) for file in change.files]
        place = self.log.place
        if table is not None:
            table.create_write_transaction(
                [*(remove_action(action) for action in removals.all_files), *adds],
                "append",
                table.schema(),
                partition_by=list(change.partition_by) or None,
                commit_properties=commit_properties,
                post_commithook_properties=hooks,
            )
        elif change.schema is not None:
            create_table_with_add_actions(
                place.url,
                Schema.from_json(nullable_schema(change.schema)),
                adds,
                "error",
                list(change.partition_by),
                storage_options=place.storage_options or None,
                commit_properties=commit_properties,
                post_commithook_properties=hooks,
            )


def _make_checkpoint(table: DeltaTable | None) -> None:
    """Write a checkpoint as often as Delta does. The commit stands even if this fails.

    Args:
        table: table right before the commit; None if the commit created it, which needs no checkpoint.
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


def _spelled_as_in(columns: Sequence[str], rows: StructType) -> list[str]:
    """Return columns as the rows spell them; case does not matter."""
    names = {name.lower(): name for name in rows.names}
    return [names.get(column.lower(), column) for column in columns]


def _check_own_commit(
    table: DeltaTable | None,
    schema: StructType,
    partition_columns: Sequence[str],
    load: Load,
    spark: SparkSession,
) -> None:
    """Raise NeedsEngine if our own commit cannot load these rows into the table."""
    if not can_partition_by(schema, partition_columns):
        raise NeedsEngine("the table is partitioned by bytes")
    if table is not None:
        if unmet := unmet_demand(table, load):
            raise NeedsEngine(unmet)
        if not has_same_columns(table, schema):
            raise NeedsEngine(OTHER_COLUMNS)
        return
    settings: Any = spark.conf.getAll  # a property or a method, depending on the kind of session
    defaults = settings() if callable(settings) else settings
    if not can_create(
        schema, {key: value for key, value in defaults.items() if key.startswith(_DEFAULTS_PREFIX)}
    ):
        raise NeedsEngine("a new table with these columns or the session's properties needs table features")
