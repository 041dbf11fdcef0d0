"""What one own commit of a Delta table adds and removes, and whether the table as it is now still takes it (docs/adr/0016)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused, TargetError
from partitions.file_statistics import Match, match_of
from partitions.loads import Append, ByKeys, Load, Replace
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.sql import quoted
from resources.tables.contract.conflict_retries import NeedsEngine
from resources.tables.data_files.written import MOST_REWRITTEN_BYTES, DataFile
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import demand_of, extents_of, fits, may_remove

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql.types import StructType

OTHERS_FIRST = "other writers committed while the rows were written"
OTHER_COLUMNS = "the rows have other columns or types than the table"
"""Reasons why Delta's own writer commits."""


@dataclass(frozen=True)
class BaseVersion:
    """The table that a commit was begun on."""

    id: str
    version: int

    @classmethod
    def of(cls, table: DeltaTable | None) -> BaseVersion | None:
        """Return the id and version of a table; None if there is none."""
        return None if table is None else cls(str(table.metadata().id), table.version())

    def check_later(self, table: DeltaTable | None, place: Place) -> DeltaTable:
        """Return the table as it is now, which must be this version or a later one of the same table.

        Raises:
            TargetError: it is not.
        """
        now = BaseVersion.of(table)
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
        load: what becomes of the rows in the table.
        base: the table as it was then; None: there was none, and the commit makes it.
        schema: of the rows; None if there are none.
        partition_by: the table's columns of partitions.
        staged: the folder of the files, below the table's; empty if there are none.
        files: that are added.
        removals: what it removes, as it was planned.
        all_paths: paths of all files of the table then, if rows of it are changed by their keys.
        copied_rows: rows that stay of files that go in part, and are among those that are added.
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

    def removals_now(self, table: DeltaTable | None, log: DeltaLog) -> Removals:
        """Return the files that are removed from a table as it is now.

        Raises:
            RowsRefused: there is a table, and there must be none.
            TargetError: it is not the table any more that the commit was begun on.
            NeedsEngine: it asks for more by now; or rows are changed by their keys, and there may be others with these keys.
        """
        if self.base is None:
            if table is None:
                return Removals()
            raise RowsRefused(
                f"table {log.place}: expected no table, as when the slice was planned, found one that was made since"
            )
        table = self.base.check_later(table, log.place)
        if demand := demand_of(table, self.load):
            raise NeedsEngine(demand)
        if self.schema is not None and not fits(table, self.schema):
            raise NeedsEngine(OTHER_COLUMNS)
        if isinstance(self.load, ByKeys):
            # A copy that was put back may have grown to the same number.
            if table.version() != self.base.version or self.all_paths != frozenset(_paths(table)):
                raise NeedsEngine(OTHERS_FIRST)
            return self.removals
        removals = removals_of(table, self.load)
        if removals.copied != self.removals.copied:
            raise NeedsEngine(OTHERS_FIRST)
        return removals

    def described(self, removals: Removals) -> dict[str, Any]:
        """Return what the commit says of itself, in the words of Delta's own writer."""
        parameters = {
            "mode": "Append" if self.base else "ErrorIfExists",
            "partitionBy": json.dumps(list(self.partition_by)),
        }
        counts = {
            "numFiles": len(self.files),
            "numOutputRows": sum(file.rows for file in self.files),
            "numOutputBytes": sum(file.size for file in self.files),
        }
        blind = True
        if self.base and isinstance(self.load, Replace | ByKeys):
            blind = False
            parameters |= {"mode": "Overwrite", "predicate": _where(self.load)}
            removed = sum(action["num_records"] for action in removals.all)
            counts |= {
                "numRemovedFiles": len(removals.all),
                "numCopiedRows": self.copied_rows,
                "numDeletedRows": removed - self.copied_rows,
            }
        return {
            "operationParameters": parameters,
            "operationMetrics": {name: str(count) for name, count in counts.items()},
            "isBlindAppend": blind,
        }


def removals_of(table: DeltaTable, load: Load) -> Removals:
    """Return the files that an append or a load by a condition removes.

    Raises:
        NeedsEngine: the log does not tell them, or too much would be copied.
    """
    if isinstance(load, Append):
        return Removals()
    if not isinstance(load, Replace):
        raise NeedsEngine("the whole table is replaced")
    import pyarrow as pa

    files = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    matches = [(file, match_of(load.where, extents_of(file, load.where))) for file in files]
    removals = Removals(
        [file for file, match in matches if match is Match.ALL],
        [file for file, match in matches if match is Match.UNKNOWN],
    )
    if removals.part and table.metadata().partition_columns:
        raise NeedsEngine("files of partitions go in part")  # the values of partitions stand in no file
    if sum(file["size_bytes"] for file in removals.part) > MOST_REWRITTEN_BYTES:
        # Of many rows Delta first looks which files have some that go.
        raise NeedsEngine(f"more than {MOST_REWRITTEN_BYTES // 2**20} MiB of files may go in part")
    if any(file["num_records"] is None or not may_remove(file["path"]) for file in removals.all):
        raise NeedsEngine(
            "a file that goes has no row count in the log, or a path that deltalake writes otherwise"
        )
    return removals


def _paths(table: DeltaTable) -> list[str]:
    import pyarrow as pa

    paths: list[str] = pa.table(table.get_add_actions(flatten=True)).column("path").to_pylist()
    return paths


def _where(load: Replace | ByKeys) -> str:
    """Return which rows go, in the words of Delta's history."""
    if isinstance(load, Replace):
        return sql(load.where, SPARK)
    return " AND ".join(f"{quoted(key)} <=> slice.{quoted(key)}" for key in load.keys)
