"""Strandline's own commit of a Delta table: Spark writes the data files, deltalake adds them to the log (docs/adr/0016).

The log has each version once. Whoever finds one taken looks at the table again, at its tag first. Nothing here changes rows of a file that
stays; :mod:`resources.tables.delta.own_limits` says which tables, rows and loads it is for.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from partitions.errors import RowsRefused, SourceError, StrandlineError, TargetError, in_one_line
from partitions.file_statistics import Match, match_of
from partitions.load import Append, ByKeys, Load, Replace, Scd2
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.sql import quoted
from resources.tables.changed_rows import FILE, changes_of
from resources.tables.contract.commits import OthersFirst, Tag
from resources.tables.data_files.reading import files_reader, is_found
from resources.tables.data_files.written import (
    MOST_COPIED,
    DataFile,
    lacks_committer,
    remove_files,
    write_files,
    written_files,
)
from resources.tables.delta.commit import file_name
from resources.tables.delta.file_reads import PLAIN_PATH, rows_with_names
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import (
    extents_of,
    fits,
    is_plain,
    lays_out,
    may_make,
    may_remove,
    new_schema,
    takes_place,
)
from resources.tables.row_columns import with_times
from resources.tables.rows.replacement import Replacement
from resources.tables.rows.scd2 import IS_CURRENT

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TRIES = 100
"""Versions that other writers may take first, one after another, before a run gives way to them."""
_CHECKPOINT_INTERVAL = 10
"""Commits, as Delta's own writer has it by default."""
_MOST_FILES = 100
"""Of a table in which keys are looked for here: Spark looks whether each of them is there, and Delta's own writer need not."""
_NEW_TABLES = "spark.databricks.delta.properties.defaults."


class _Outcome(Enum):
    """What became of a commit.

    ADDED: the files are in the table, or may be. TAKEN: the number was there already. UNFIT: Delta's own writer must do it.
    """

    ADDED = "added"
    TAKEN = "taken"
    UNFIT = "unfit"


class _Unclear(TargetError):
    """A commit failed, and may be in the log, or come to be there, nevertheless: its files must stay."""


@dataclass(frozen=True)
class Begun:
    """The table that a commit was begun on."""

    id: str
    version: int

    @classmethod
    def of(cls, table: DeltaTable | None) -> Begun | None:
        """Return what a table is now; None if there is none."""
        return None if table is None else cls(str(table.metadata().id), table.version())

    def later(self, table: DeltaTable | None, place: Place) -> DeltaTable:
        """Return what is there by now, which must be this version or a later one of the same table.

        Raises:
            TargetError: it is not.
        """
        now = Begun.of(table)
        if table is None or now is None or now.id != self.id or now.version < self.version:
            raise TargetError(
                f"table {place}: expected version {self.version} or a later one of the table that this write was begun on,"
                f" found {f'version {now.version}' if now else 'none'}: it was removed, made again or restored meanwhile"
            )
        return table


@dataclass(frozen=True)
class Removals:
    """Files that a commit removes.

    Attributes:
        whole: of which it deletes each row.
        part: of which it may delete some rows: the others are copied.
    """

    whole: Sequence[Mapping[str, Any]] = ()
    part: Sequence[Mapping[str, Any]] = ()

    @property
    def all(self) -> tuple[Mapping[str, Any], ...]:
        """Both, as deltalake tells them."""
        return (*self.whole, *self.part)

    @property
    def copied(self) -> frozenset[str]:
        """Paths of the files whose other rows are copied."""
        return frozenset(action["path"] for action in self.part)


@dataclass(frozen=True)
class Change:
    """What a commit does.

    Attributes:
        load: what becomes of the rows that are there.
        begun: the table as it was then; None: there was none, and the commit makes it.
        schema: of the rows; None if there are none.
        partition_by: the table's columns of partitions.
        staged: the folder of the files, below the table's; empty if there are none.
        files: that are added.
        gone: what it removes, as it was found then.
        there: paths of all files of the table then, if rows of it are changed by their keys.
        copied_rows: rows that stay of files that go in part, and are among those that are added.
    """

    load: Load
    begun: Begun | None
    schema: StructType | None = None
    partition_by: Sequence[str] = ()
    staged: str = ""
    files: Sequence[DataFile] = ()
    gone: Removals = Removals()
    there: frozenset[str] = frozenset()
    copied_rows: int = 0

    def removals(self, table: DeltaTable | None, log: DeltaLog) -> Removals | None:
        """Return the files that are removed from a table as it is now; None if Delta's own writer must do it.

        Raises:
            RowsRefused: there is a table, and there must be none.
            TargetError: it is not the table any more that the commit was begun on.
            OthersFirst: rows are changed by their keys, and there may be others with these keys by now.
        """
        if self.begun is None:
            if table is None:
                return Removals()
            raise RowsRefused(
                f"table {log.place}: expected no table, as when the slice was planned, found one that was made since"
            )
        table = self.begun.later(table, log.place)
        if not is_plain(table, self.load) or not (self.schema is None or fits(table, self.schema)):
            return None
        if isinstance(self.load, ByKeys):
            # A copy that was put back may have grown to the same number.
            if table.version() != self.begun.version or self.there != frozenset(_paths(table)):
                raise OthersFirst(
                    f"version {table.version()} is there, and rows of {self.begun.version} are changed"
                )
            return self.gone
        removals = _removals(table, self.load)
        return removals if removals is not None and removals.copied == self.gone.copied else None

    def described(self, removals: Removals) -> dict[str, Any]:
        """Return what the commit says of itself, in the words of Delta's own writer."""
        parameters = {
            "mode": "Append" if self.begun else "ErrorIfExists",
            "partitionBy": json.dumps(list(self.partition_by)),
        }
        counts = {
            "numFiles": len(self.files),
            "numOutputRows": sum(file.rows for file in self.files),
            "numOutputBytes": sum(file.size for file in self.files),
        }
        blind = True
        if self.begun and isinstance(self.load, Replace | ByKeys):
            blind = False
            parameters |= {"mode": "Overwrite", "predicate": _where(self.load)}
            gone = sum(action["num_records"] for action in removals.all)
            counts |= {
                "numRemovedFiles": len(removals.all),
                "numCopiedRows": self.copied_rows,
                "numDeletedRows": gone - self.copied_rows,
            }
        return {
            "operationParameters": parameters,
            "operationMetrics": {name: str(count) for name, count in counts.items()},
            "isBlindAppend": blind,
        }


@dataclass(frozen=True)
class _Work:
    """What a commit writes and removes.

    Attributes:
        rows: to be written.
        schema: of them.
        layout: columns that folders stand for.
        gone: what is removed.
        copied: returns how many of the rows were there before, and stay, as the folder and the files tell that were written; None if none do.
        there: paths of all files of the table, if rows of it are changed by their keys.
    """

    rows: DataFrame
    schema: StructType
    layout: Sequence[str]
    gone: Removals
    copied: Callable[[Place, Sequence[DataFile]], int] | None = None
    there: frozenset[str] = frozenset()


@dataclass(frozen=True)
class OwnCommit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`.

    Attributes:
        log: of the table.
        tag: of the commit.
        text: its user metadata.
    """

    log: DeltaLog
    tag: Tag
    text: str

    def write(
        self,
        rows: DataFrame,
        load: Load,
        partition_by: Sequence[str],
        *,
        first: bool,
    ) -> bool:
        """Load rows; return False, and leave nothing behind, if Delta's own writer must do it.

        Args:
            rows: of the slice.
            load: what becomes of the rows that are there, but one by keys: see :meth:`change`.
            partition_by: columns of a table that is made.
            first: whether the table must be made.

        Raises:
            RowsRefused: as the contract says.
            TargetError: the commit failed otherwise.
        """
        place = self.log.place
        if not takes_place(place):
            return False
        table = self.log.table()
        if self._is_taken(table):
            return True
        if first != (table is None):
            return False
        work = self._adding(rows, load, table, partition_by)
        return work is not None and self._lands(work, load, table)

    def change(self, rows: DataFrame, load: ByKeys, since: Begun, count: int | None) -> bool:
        """Change rows by their keys; return False, and leave nothing behind, if Delta's own writer must do it.

        Args:
            rows: of the slice, which are kept, since they are used more than once.
            load: by keys.
            since: what the table was when this was first tried, as :meth:`may_change` has told.
            count: how many rows the slice has, if that is known.

        Raises:
            OthersFirst: others have committed meanwhile.
            RowsRefused: as the contract says.
            TargetError: another table is there by now, or the commit failed otherwise.
        """
        place, table = self.log.place, self.log.table()
        if self._is_taken(table):
            return True
        table = since.later(table, place)
        try:
            work = self._changing(rows, load, table, count)
            return work is not None and self._lands(work, load, table)
        except Exception as error:
            # Rows that are kept do not fail. Files that others have taken out and deleted do.
            if since.later(self.log.table(), place).version() != table.version():
                raise OthersFirst(f"version {table.version()} is not the newest any more") from error
            raise

    def _lands(self, work: _Work, load: Load, table: DeltaTable | None) -> bool:
        place = self.log.place
        staged = f"{self.tag.number:010d}-{uuid4().hex}"
        try:
            write_files(work.rows, place.child(staged), work.layout)
            files = written_files(place, staged, work.schema, work.rows, work.layout)
            copied = work.copied(place.child(staged), files) if work.copied else 0
        except Exception as error:
            remove_files(place, staged)
            if lacks_committer(error) or isinstance(error, ValueError):
                return False
            if isinstance(error, SourceError):
                raise TargetError(
                    f"table {place}: what was written cannot be read: {error.message}"
                ) from error
            raise
        return self.land(
            Change(
                load, Begun.of(table), work.schema, work.layout, staged, files, work.gone, work.there, copied
            )
        )

    def _adding(
        self, rows: DataFrame, load: Load, table: DeltaTable | None, partition_by: Sequence[str]
    ) -> _Work | None:
        """What is written and removed by an append, or a load by a condition; None if Delta's own writer must do it."""
        schema = rows.schema
        layout = _named_as(partition_by, schema) if table is None else table.metadata().partition_columns
        if not _suits(table, schema, layout, load, rows.sparkSession):
            return None
        removals = Removals() if table is None else _removals(table, load)
        if removals is None or not all(is_found(self.log.place.child(path).url) for path in removals.copied):
            return None
        if table is None or not isinstance(load, Replace):
            return _Work(rows, schema, layout, removals)
        replacement = self._replacement(rows, load, removals)
        return _Work(replacement.rows, schema, layout, removals, replacement.copied)

    def may_change(self, rows: StructType, load: Load) -> Begun | None:
        """Return what the table is now if its rows may be changed by their keys here, as far as it tells; else None.

        Args:
            rows: the columns of the slice.
            load: by keys.
        """
        table = self.log.table() if takes_place(self.log.place) else None
        if table is None or self._files(table, rows, load) is None:
            return None
        return Begun.of(table)

    def _files(self, table: DeltaTable, rows: StructType, load: Load) -> dict[str, Mapping[str, Any]] | None:
        """The files of a table in which keys are looked for here, by name; None if Delta's own writer must look.

        Args:
            table: that is there.
            rows: the columns of the slice.
            load: by keys.
        """
        import pyarrow as pa

        columns = _versioned(rows, load)
        if table.metadata().partition_columns or not is_plain(table, load) or not fits(table, columns):
            return None
        actions = pa.table(table.get_add_actions(flatten=True))
        if actions.num_rows > _MOST_FILES:
            return None
        files = actions.select(["path", "size_bytes", "num_records"]).to_pylist()
        by_name = {file_name(file["path"]): file for file in files}
        tell = all(
            file["num_records"] is not None
            and PLAIN_PATH.fullmatch(file["path"])
            and is_found(self.log.place.child(file["path"]).url)
            for file in files
        )
        return by_name if tell and len(by_name) == len(files) else None

    def _changing(self, rows: DataFrame, load: ByKeys, table: DeltaTable, count: int | None) -> _Work | None:
        """What is written and removed by a load by keys; None if Delta's own writer must do it."""
        from pyspark.sql.types import StructType

        files = self._files(table, rows.schema, load)
        if files is None:
            return None
        session, schema = rows.sparkSession, StructType.fromJson(json.loads(table.schema().to_json()))
        there = rows_with_names(session, self._urls(files.values()), schema, FILE)
        changes = changes_of(rows, load, there, lambda given: given.select(*map(quoted, schema.names)), count)
        if changes is None:
            return None
        part = [files[name] for name in changes.files]
        read = files_reader(session, schema).parquet(*self._urls(part)) if part else None
        change = changes.of(read, sum(file["num_records"] for file in part))
        paths = frozenset(file["path"] for file in files.values())
        return _Work(change.rows, schema, (), Removals(part=part), change.copied, paths)

    def _urls(self, files: Iterable[Mapping[str, Any]]) -> list[str]:
        """Where Spark finds files of the log."""
        return [self.log.place.child(unquote(file["path"])).spark_url for file in files]

    def give_up(self) -> bool:
        """Take the number by a commit that changes no row, in a table that is there; return False if Delta's own writer must do it."""
        if not takes_place(self.log.place):
            return False
        table = self.log.table()
        if self._is_taken(table):
            return True
        if table is None or not is_plain(table, Append()):
            return False
        return self.land(Change(Append(), Begun.of(table)))

    def land(self, change: Change) -> bool:
        """Commit what was written; return False, and leave nothing behind, if Delta's own writer must do it.

        Raises:
            RowsRefused, TargetError: as :meth:`write`.
        """
        try:
            outcome = self._add(change)
        except _Unclear:
            raise
        except (StrandlineError, OthersFirst):
            if change.staged:
                remove_files(self.log.place, change.staged)
            raise
        if change.staged and (outcome is not _Outcome.ADDED or not change.files):
            remove_files(self.log.place, change.staged)
        return outcome is not _Outcome.UNFIT

    def _is_taken(self, table: DeltaTable | None) -> bool:
        highest = table.transaction_version(self.tag.app_id) if table is not None else None
        return highest is not None and highest >= self.tag.number

    def _replacement(self, rows: DataFrame, load: Replace, removals: Removals) -> Replacement:
        if not removals.part:
            return Replacement(rows, load, None)
        # Not through Delta: a file is read as it is, without the state of the whole table.
        there = files_reader(rows.sparkSession, rows.schema).parquet(*self._urls(removals.part))
        return Replacement(rows, load, there, sum(action["num_records"] for action in removals.part))

    def _add(self, change: Change) -> _Outcome:
        """Commit as the version after the newest; if another writer takes that, look again."""
        for _ in range(_TRIES):
            table = self.log.table()
            if self._is_taken(table):
                return _Outcome.TAKEN
            removals = change.removals(table, self.log)
            if removals is None:
                return _Outcome.UNFIT
            try:
                self._commit(table, change, removals)
            except Exception as error:  # deltalake has many; what counts is what the log says now
                try:
                    now = self.log.table()
                    if self._is_taken(now):
                        return _Outcome.ADDED if self._has_landed(change) else _Outcome.TAKEN
                except StrandlineError as unread:
                    raise _Unclear(unread.message) from error
                if (now and now.version()) == (table and table.version()):
                    said = in_one_line(str(error)) or type(error).__name__
                    raise _Unclear(f"table {self.log.place}: its log cannot be written: {said}") from error
                time.sleep(random.uniform(0, 0.1))  # noqa: S311 - so that two writers do not meet again
            else:
                _make_checkpoint(table)
                return _Outcome.ADDED
        raise TargetError(
            f"table {self.log.place}: other writers were first {_TRIES} times in a row. Nothing is lost: run again"
        )

    def _has_landed(self, change: Change) -> bool:
        """Whether a commit whose answer was an error is in the table's log: an answer may be lost, and another run may do the same."""
        names = {file_name(file.path) for file in change.files}
        return any(
            commit.file in names
            for commit in self.log.commits(change.begun.version if change.begun else None)
        )

    def _commit(self, table: DeltaTable | None, change: Change, removals: Removals) -> None:
        from deltalake import CommitProperties, PostCommitHookProperties, Schema
        from deltalake.transaction import Transaction, create_table_with_add_actions

        said = CommitProperties(
            custom_metadata={"userMetadata": self.text, **change.described(removals)},
            max_commit_retries=0,
            app_transactions=[Transaction(self.tag.app_id, self.tag.number, int(time.time() * 1000))],
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
                commit_properties=said,
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
                commit_properties=said,
                post_commithook_properties=hooks,
            )


def _where(load: Replace | ByKeys) -> str:
    """Which rows go, in the words of Delta's history."""
    if isinstance(load, Replace):
        return sql(load.where, SPARK)
    return " AND ".join(f"{quoted(key)} <=> slice.{quoted(key)}" for key in load.keys)


def _versioned(rows: StructType, load: Load) -> StructType:
    """The columns of a slice, with those that its load makes."""
    from pyspark.sql.types import BooleanType, StructType

    if not isinstance(load, Scd2):
        return rows
    return StructType([*with_times(rows, load).fields]).add(IS_CURRENT, BooleanType())


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
    """Columns by the names that the rows have for them, as Spark finds them: in any case."""
    names = {name.lower(): name for name in rows.names}
    return [names.get(column.lower(), column) for column in columns]


def _suits(
    table: DeltaTable | None, schema: StructType, layout: Sequence[str], load: Load, spark: SparkSession
) -> bool:
    """Whether a load of these rows is for this module, as far as the table and its columns tell now."""
    if not lays_out(schema, layout):
        return False
    if table is not None:
        return is_plain(table, load) and fits(table, schema)
    settings: Any = spark.conf.getAll  # a property or a method, as the kind of session has it
    defaults = settings() if callable(settings) else settings
    return may_make(schema, {key: value for key, value in defaults.items() if key.startswith(_NEW_TABLES)})


def _paths(table: DeltaTable) -> list[str]:
    """Of its files."""
    import pyarrow as pa

    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _removals(table: DeltaTable, load: Load) -> Removals | None:
    """The files that a load removes; None if Delta's own writer must do it."""
    if not isinstance(load, Replace):
        return Removals() if isinstance(load, Append) else None
    import pyarrow as pa

    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    matches = [(file, match_of(load.where, extents_of(file, load.where))) for file in files]
    removals = Removals(
        [file for file, match in matches if match is Match.ALL],
        [file for file, match in matches if match is Match.UNKNOWN],
    )
    # The values of partitions stand in no file; and of many rows Delta first looks which files have some that go.
    if removals.part and (
        table.metadata().partition_columns or sum(file["size_bytes"] for file in removals.part) > MOST_COPIED
    ):
        return None
    if any(file["num_records"] is None or not may_remove(file["path"]) for file in removals.all):
        return None
    return removals


def _add_action(file: DataFile) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        file.path, file.size, file.partition, file.modified, data_change=True, stats=file.statistics
    )


def _remove_action(action: Mapping[str, Any]) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(unquote(action["path"]), True, int(time.time() * 1000), action["size_bytes"])
