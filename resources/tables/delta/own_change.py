"""Plan one own commit of a Delta table, and check that the table still accepts it.

See docs/explanation/adr/0016.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused, TargetError
from partitions.file_statistics import FileMatch, match_statistics
from partitions.loads import Append, ByKeys, Load, Replace
from resources.connections.places import Place
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sql import quoted
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.written import MAX_REWRITTEN_BYTES, DataFile
from resources.tables.delta.commit import DELETED_BY_KEY
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import can_remove, extents_of, has_same_columns, unmet_demand

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql.types import StructType

CONCURRENT_COMMIT = "other writers committed while the rows were written"
OTHER_COLUMNS = "the rows have other columns or types than the table"
"""Reasons why Delta's own writer commits instead of us."""


@dataclass(frozen=True)
class BaseVersion:
    """The version of a table that a commit starts from."""

    id: str
    version: int

    @classmethod
    def of(cls, table: DeltaTable | None) -> BaseVersion | None:
        """Return the id and version of a table; None if there is none."""
        return None if table is None else cls(str(table.metadata().id), table.version())

    def check_later(self, table: DeltaTable | None, place: Place) -> DeltaTable:
        """Return the current table, which must be the same table at this or a later version.

        Raises:
            TargetError: it is not.
        """
        newest = BaseVersion.of(table)
        if table is None or newest is None or newest.id != self.id or newest.version < self.version:
            raise TargetError(
                f"table {place}: expected version {self.version} or a later one of the table that this write started from,"
                f" found {f'version {newest.version}' if newest else 'none'}: it was removed, recreated or restored meanwhile"
            )
        return table


@dataclass(frozen=True)
class Removals:
    """The files that a commit removes.

    Attributes:
        whole_files: files whose rows are all deleted.
        partial_files: files of which some rows may be deleted and the others are copied.
    """

    whole_files: Sequence[Mapping[str, Any]] = ()
    partial_files: Sequence[Mapping[str, Any]] = ()

    @property
    def all_files(self) -> tuple[Mapping[str, Any], ...]:
        """Removed files of both kinds, as deltalake lists them."""
        return (*self.whole_files, *self.partial_files)

    @property
    def copied_paths(self) -> frozenset[str]:
        """Paths of the files whose remaining rows are copied."""
        return frozenset(action["path"] for action in self.partial_files)


@dataclass(frozen=True)
class PlannedChange:
    """The files that a commit adds and removes.

    Attributes:
        load: load of the slice.
        base: version that the commit was planned on; None: there was no table, and the commit creates it.
        schema: schema of the rows; None if there are none.
        partition_by: partition columns of the table.
        staged: folder of the new files, below the table; empty if there are none.
        files: added files.
        removals: removed files, as planned.
        all_paths: paths of all files of the table at ``base``, for a keyed load.
        copied_rows: rows of partly removed files that the added files contain.
        deleted_rows: rows that deletes of an upsert remove.
    """

    load: Load
    base: BaseVersion | None
    schema: StructType | None = None
    partition_by: Sequence[str] = ()
    staged: str = ""
    files: Sequence[DataFile] = ()
    removals: Removals = Removals()
    all_paths: frozenset[str] = frozenset()
    copied_rows: int = 0
    deleted_rows: int = 0

    def current_removals(self, table: DeltaTable | None, log: DeltaLog) -> Removals:
        """Return the files that the commit removes from the current table.

        Raises:
            RowsRefused: a table exists, but the commit must create it.
            TargetError: the table is no longer the one that the commit was planned on.
            NeedsEngine: the table now needs more of a writer, or another commit may have added rows with
                the keys.
        """
        if self.base is None:
            if table is None:
                return Removals()
            raise RowsRefused(
                f"table {log.place}: expected no table; another writer created one after this slice was "
                "planned. Run again"
            )
        table = self.base.check_later(table, log.place)
        if unmet := unmet_demand(table, self.load):
            raise NeedsEngine(unmet)
        if self.schema is not None and not has_same_columns(table, self.schema):
            raise NeedsEngine(OTHER_COLUMNS)
        if isinstance(self.load, ByKeys):
            # The table may be an older copy that grew to the same version.
            if table.version() != self.base.version or self.all_paths != frozenset(_paths(table)):
                raise NeedsEngine(CONCURRENT_COMMIT)
            return self.removals
        removals = find_removals(table, self.load)
        if removals.copied_paths != self.removals.copied_paths:
            raise NeedsEngine(CONCURRENT_COMMIT)
        return removals

    def commit_info(self, removals: Removals) -> dict[str, Any]:
        """Return the commit's description of itself, in the terms of Delta's own writer."""
        parameters = {
            "mode": "Append" if self.base else "ErrorIfExists",
            "partitionBy": json.dumps(list(self.partition_by)),
        }
        counts = {
            "numFiles": len(self.files),
            "numOutputRows": sum(file.rows for file in self.files),
            "numOutputBytes": sum(file.size for file in self.files),
        }
        is_blind_append = True
        if self.base and isinstance(self.load, Replace | ByKeys):
            is_blind_append = False
            parameters |= {"mode": "Overwrite", "predicate": _deletion_predicate(self.load)}
            removed_rows = sum(action["num_records"] for action in removals.all_files)
            counts |= {
                "numRemovedFiles": len(removals.all_files),
                "numCopiedRows": self.copied_rows,
                "numDeletedRows": removed_rows - self.copied_rows,
                **({DELETED_BY_KEY: self.deleted_rows} if self.deleted_rows else {}),
            }
        return {
            "operationParameters": parameters,
            "operationMetrics": {name: str(count) for name, count in counts.items()},
            "isBlindAppend": is_blind_append,
        }


def find_removals(table: DeltaTable, load: Load) -> Removals:
    """Return the files that an append or a load by a condition removes.

    Raises:
        NeedsEngine: the load replaces the whole table, the log does not list the files completely, or too
            much would be copied.
    """
    if isinstance(load, Append):
        return Removals()
    if not isinstance(load, Replace):
        raise NeedsEngine("the whole table is replaced")
    import pyarrow as pa

    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    matches = [(file, match_statistics(load.where, extents_of(file, load.where))) for file in files]
    removals = Removals(
        [file for file, match in matches if match is FileMatch.ALL],
        [file for file, match in matches if match is FileMatch.UNKNOWN],
    )
    if removals.partial_files and table.metadata().partition_columns:
        raise NeedsEngine(
            "files of a partitioned table are rewritten in part"
        )  # files do not contain partition values
    if sum(file["size_bytes"] for file in removals.partial_files) > MAX_REWRITTEN_BYTES:
        # For large files Delta first finds those with rows to delete.
        raise NeedsEngine(f"more than {MAX_REWRITTEN_BYTES // 2**20} MiB of files may be rewritten")
    if any(file["num_records"] is None or not can_remove(file["path"]) for file in removals.all_files):
        raise NeedsEngine(
            "a removed file has no row count in the log, or a path that deltalake spells differently"
        )
    return removals


def _paths(table: DeltaTable) -> list[str]:
    import pyarrow as pa

    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _deletion_predicate(load: Replace | ByKeys) -> str:
    """Return which rows are deleted, in the terms of Delta's history."""
    if isinstance(load, Replace):
        return predicate_sql(load.where, SPARK)
    return " AND ".join(f"{quoted(key)} <=> slice.{quoted(key)}" for key in load.keys)
