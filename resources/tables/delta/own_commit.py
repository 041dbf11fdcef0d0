"""Strandline's own commit of a Delta table: Spark writes the data files, deltalake adds them to the log (docs/adr/0016).

A commit takes one version or none: the log has a version once. Whoever finds it taken looks at the table again, at the tag first. Nothing here
changes a table that a file's rows would have to be read for; :mod:`resources.tables.delta.own_limits` says which tables and rows it is for.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from uuid import uuid4

from partitions.errors import RowsRefused, TargetError, in_one_line
from partitions.extents import Match, match_of
from partitions.load import Append, Load, Replace
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.tables.delta.data_files import DataFile, written_files
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import extents_of, fits, is_plain, may_make, new_schema
from resources.tables.table import Tag

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction, RemoveAction
    from pyspark.sql import DataFrame, Observation, SparkSession
    from pyspark.sql.types import StructType

_TRIES = 100
"""Versions that other writers may take first, one after another, before a run gives way to them."""
_NEW_TABLES = "spark.databricks.delta.properties.defaults."
OUTSIDE = "rows_outside"
"""Code of the error for rows that are not among those that their load replaces."""


class _Outcome(Enum):
    """What became of an attempt to commit.

    ADDED: the files are in the table, or may be. TAKEN: the number was there already. UNFIT: Delta's own writer must do it.
    """

    ADDED = "added"
    TAKEN = "taken"
    UNFIT = "unfit"


@dataclass(frozen=True)
class OwnCommit:
    """The commit of one number; see :meth:`resources.tables.table.Table.write`.

    Attributes:
        log: of the table.
        tag: of the commit.
        text: its user metadata.
    """

    log: DeltaLog
    tag: Tag
    text: str

    def write(self, rows: DataFrame, load: Load, partition_by: Sequence[str], *, first: bool) -> bool:
        """Load rows; return False, and leave nothing behind, if Delta's own writer must do it.

        Args:
            rows: of the slice.
            load: what becomes of the rows that are there.
            partition_by: columns of a table that is made.
            first: whether the table must be made.

        Raises:
            RowsRefused: as the contract says.
            TargetError: the commit failed otherwise.
        """
        table = self.log.table()
        if self._is_taken(table):
            return True
        folder, schema = self.log.place.local, rows.schema
        if folder is None or first != (table is None) or not _suits(table, schema, load, rows.sparkSession):
            return False
        layout = list(partition_by) if table is None else table.metadata().partition_columns
        name, outcome, files = f"{self.tag.number:010d}-{uuid4().hex}", _Outcome.UNFIT, []
        try:
            _write_files(rows, Append() if first else load, folder / name, layout)
            files = written_files(folder, name, schema)
            outcome = self._add(_Change(files, load, schema, layout, first))
        finally:
            if outcome is not _Outcome.ADDED or not files:
                shutil.rmtree(folder / name, ignore_errors=True)
        return outcome is not _Outcome.UNFIT

    def give_up(self) -> bool:
        """Take the number by a commit that changes no row, in a table that is there; return False if Delta's own writer must do it."""
        table = self.log.table()
        if self._is_taken(table):
            return True
        if self.log.place.local is None or table is None or not is_plain(table, Append()):
            return False
        return self._add(_Change([], Append(), None, [], first=False)) is not _Outcome.UNFIT

    def _is_taken(self, table: DeltaTable | None) -> bool:
        highest = table.transaction_version(self.tag.app_id) if table is not None else None
        return highest is not None and highest >= self.tag.number

    def _add(self, change: _Change) -> _Outcome:
        """Commit as the version after the newest; if another writer takes that, look again."""
        for _ in range(_TRIES):
            table = self.log.table()
            if self._is_taken(table):
                return _Outcome.TAKEN
            removed = change.removals(table, self.log)
            if removed is None:
                return _Outcome.UNFIT
            try:
                self._commit(table, change, removed)
            except Exception as error:  # deltalake has many; what counts is what the log says now
                now = self.log.table()
                if self._is_taken(now):
                    return _Outcome.ADDED
                if (now and now.version()) == (table and table.version()):
                    said = in_one_line(str(error)) or type(error).__name__
                    raise TargetError(f"table {self.log.place}: its log cannot be written: {said}") from error
                time.sleep(random.uniform(0, 0.1))  # noqa: S311 - so that two writers do not meet again
            else:
                return _Outcome.ADDED
        raise TargetError(
            f"table {self.log.place}: other writers were first {_TRIES} times in a row. Nothing is lost: run again"
        )

    def _commit(
        self, table: DeltaTable | None, change: _Change, removed: Sequence[Mapping[str, Any]]
    ) -> None:
        from deltalake import CommitProperties, Schema
        from deltalake.transaction import Transaction, create_table_with_add_actions

        said = CommitProperties(
            custom_metadata={"userMetadata": self.text, **change.described(removed)},
            max_commit_retries=0,
            app_transactions=[Transaction(self.tag.app_id, self.tag.number, int(time.time() * 1000))],
        )
        adds = [_add_action(file) for file in change.files]
        place = self.log.place
        if table is not None:
            removes = [_remove_action(action) for action in removed]
            table.create_write_transaction(
                [*removes, *adds],
                "append",
                table.schema(),
                partition_by=change.partition_by or None,
                commit_properties=said,
            )
        elif change.schema is not None:
            create_table_with_add_actions(
                place.url,
                Schema.from_json(new_schema(change.schema)),
                adds,
                "error",
                change.partition_by,
                storage_options=place.storage_options or None,
                commit_properties=said,
            )


@dataclass(frozen=True)
class _Change:
    """What a commit does.

    Attributes:
        files: that it adds.
        load: what becomes of the rows that are there.
        schema: of the rows; None if there are none.
        partition_by: the table's columns of partitions.
        first: whether it makes the table.
    """

    files: Sequence[DataFile]
    load: Load
    schema: StructType | None
    partition_by: list[str]
    first: bool

    def removals(self, table: DeltaTable | None, log: DeltaLog) -> list[Mapping[str, Any]] | None:
        """Return the files that are removed from a table as it is now; None if Delta's own writer must do it.

        Raises:
            RowsRefused: there is a table, and there must be none.
            TargetError: there is none, and there must be one.
        """
        if table is None:
            if self.first:
                return []
            raise TargetError(
                f"table {log.place}: expected the table, found none: it was removed while it was written"
            )
        if self.first:
            raise RowsRefused(
                f"table {log.place}: expected no table, as when the slice was planned, found one that was made since"
            )
        if not is_plain(table, self.load) or not (self.schema is None or fits(table, self.schema)):
            return None
        return _removals(table, self.load)

    def described(self, removed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return what the commit says of itself, in the words of Delta's own writer."""
        parameters = {
            "mode": "ErrorIfExists" if self.first else "Append",
            "partitionBy": json.dumps(self.partition_by),
        }
        counts = {
            "numFiles": len(self.files),
            "numOutputRows": sum(file.rows for file in self.files),
            "numOutputBytes": sum(file.size for file in self.files),
        }
        replaces = isinstance(self.load, Replace) and not self.first
        if isinstance(self.load, Replace) and not self.first:
            parameters |= {"mode": "Overwrite", "predicate": sql(self.load.where, SPARK)}
            deleted = sum(action["num_records"] for action in removed)
            counts |= {"numRemovedFiles": len(removed), "numDeletedRows": deleted}
        return {
            "operationParameters": parameters,
            "operationMetrics": {name: str(count) for name, count in counts.items()},
            "isBlindAppend": not replaces,
        }


def _suits(table: DeltaTable | None, schema: StructType, load: Load, spark: SparkSession) -> bool:
    if table is not None:
        return is_plain(table, load) and fits(table, schema) and _removals(table, load) is not None
    settings: Any = spark.conf.getAll  # a property or a method, as the kind of session has it
    defaults = settings() if callable(settings) else settings
    return may_make(schema, {key: value for key, value in defaults.items() if key.startswith(_NEW_TABLES)})


def _write_files(rows: DataFrame, load: Load, folder: Path, partition_by: Sequence[str]) -> None:
    """Write Parquet files.

    Raises:
        RowsRefused: rows are not among those that the load replaces.
    """
    outside: Observation | None = None
    if isinstance(load, Replace):
        rows, outside = _count_outside(rows, load)
    writer = rows.write.format("parquet").mode("error")
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.save(str(folder))
    if outside and (count := outside.get["outside"]):
        raise RowsRefused(f"{count:,} rows are not among those that the slice replaces", code=OUTSIDE)


def _removals(table: DeltaTable, load: Load) -> list[Mapping[str, Any]] | None:
    """The files of which a load deletes each row; None if it deletes some rows of a file, or may."""
    if not isinstance(load, Replace):
        return [] if isinstance(load, Append) else None
    import pyarrow as pa

    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    matches = [(file, match_of(load.where, extents_of(file, load))) for file in files]
    if any(match is Match.UNKNOWN for _, match in matches):
        return None
    removed = [file for file, match in matches if match is Match.ALL]
    return None if any(file["num_records"] is None for file in removed) else removed


def _count_outside(rows: DataFrame, load: Replace) -> tuple[DataFrame, Observation]:
    """The rows, and the count of those that the load does not replace, which is there once they are written."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    inside = F.coalesce(F.expr(sql(load.where, SPARK)), F.lit(False))
    counted = Observation()
    return rows.observe(counted, F.count_if(~inside).alias("outside")), counted


def _add_action(file: DataFile) -> AddAction:
    from deltalake.transaction import AddAction

    return AddAction(
        file.path, file.size, file.partition, file.modified, data_change=True, stats=file.statistics
    )


def _remove_action(action: Mapping[str, Any]) -> RemoveAction:
    from deltalake.transaction import RemoveAction

    return RemoveAction(unquote(action["path"]), True, int(time.time() * 1000), action["size_bytes"])
