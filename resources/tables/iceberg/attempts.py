"""The attempts to write one slice into an Iceberg table: by Strandline's own commit, or by Spark's (docs/adr/0032)."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError, WriteConflict
from partitions.loads import Append, ByKeys, Load, ReplaceAll
from resources.tables.contract.conflict_retries import outlasting_conflicts
from resources.tables.iceberg.columns import OUTSIDE, check_reserved, check_types, is_outside
from resources.tables.iceberg.conflicts import conflict_of, is_conflict
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.own_commit import OwnCommit
from resources.tables.iceberg.writing import MADE, Commits
from resources.tables.row_columns import with_times
from resources.tables.rows.counted import kept_and_counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_slice(commits: Commits, rows: DataFrame, load: Load, *, first: bool) -> None:
    """Load rows, unless the number is taken; see :meth:`resources.tables.contract.table.Table.write`."""
    check_reserved(rows)
    if not first and commits.takes_columns(load):
        commits.take_columns(rows, load)
    writing = _Writing(commits, rows, load, first=first)
    try:
        outlasting_conflicts(writing.attempt)
    finally:
        writing.own.remove_staged()


class _Writing:
    """The attempts to write one slice: what the first of them has looked at or written serves the next."""

    def __init__(self, commits: Commits, rows: DataFrame, load: Load, *, first: bool) -> None:
        self._commits, self._rows, self._load, self._first = commits, rows, load, first
        own = commits.committed_by("Strandline (pyiceberg)")
        self.own = OwnCommit(
            commits.place, commits.catalog, commits.value, own.summary(load, None), commits.is_taken
        )
        self._by_keys = not first and isinstance(load, ByKeys)
        self._is_again = False
        self._count: int | None = None
        self._uuid: str | None = None

    def attempt(self) -> None:
        """Write the slice, unless its number is taken.

        Raises:
            WriteConflict: another writer was first.
        """
        commits = self._commits
        metadata = commits.catalog.newest()
        if commits.is_taken(metadata):
            return
        if (metadata is None and not self._first) or self._uuid not in (None, metadata and metadata.uuid):
            raise commits.gone(metadata)
        self._uuid = metadata.uuid if metadata else None
        if self._by_keys and not self._is_again:
            # Whatever finds out what they change uses them more than once, and a source may answer otherwise the second time.
            self._rows, self._count = kept_and_counted(self._rows)
        try:
            self._write(metadata)
        except WriteConflict:
            raise
        except Exception as error:
            if is_outside(error):
                raise RowsRefused(
                    f"table {commits.shown}: rows are not among those that are replaced", code=OUTSIDE
                ) from error
            # Rows that are kept do not fail. Files that others have removed do, with their snapshot.
            if self._first or not (is_conflict(error) or (self._by_keys and self._has_moved(metadata))):
                raise
            raise conflict_of(commits.shown, commits.tag.number, error) from error
        finally:
            self._is_again = True

    def _write(self, metadata: Metadata | None) -> None:
        commits, load = self._commits, self._load
        if metadata is not None and isinstance(load, ReplaceAll):
            metadata = commits.own(self._rows, metadata)
        if metadata is None or self._first:
            commits.committed_by(f"Spark: {MADE}").create(self._rows, load)
            return
        fitted = commits.fitted(self._rows, load, metadata)
        if isinstance(load, ByKeys):
            check_types(with_times(fitted.schema, load), commits.columns(metadata), commits.shown)
        reason = self.own.land(
            fitted, load, metadata, partial(commits.placed, metadata=metadata), self._count
        )
        if reason is None:
            commits.branches.drop_abandoned(metadata)
            return
        in_one = isinstance(load, Append) and not self._is_again
        commits.committed_by(f"Spark: {reason}").write_by_spark(self._rows, load, metadata, in_one=in_one)

    def _has_moved(self, since: Metadata | None) -> bool:
        """Whether readers see another snapshot by now, or another table."""
        with suppress(TargetError):
            now = self._commits.catalog.newest()
            before, after = (
                metadata and (metadata.uuid, metadata.current and metadata.current.id)
                for metadata in (since, now)
            )
            return before != after
        return False
