"""Taking a number of an Iceberg table without a row, so that no writer that may still run can take it (docs/explanation/adr/0019)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.target import COMMIT_COLUMN
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.branches import Branches
from resources.tables.iceberg.columns import commit_of, in_order_of
from resources.tables.iceberg.creation import create_table
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def give_up(
    commit: NumberedCommit,
    session: SparkSession,
    first_rows: Callable[[], DataFrame] | None,
    partition_by: Sequence[str],
) -> None:
    """Fence the number, unless it is taken; see :meth:`resources.tables.contract.table.Table.give_up`."""
    if first_rows is not None and commit.catalog.newest() is None:
        create_table(commit, first_rows(), None, partition_by)
        return
    fencing = commit.with_writer("Spark: the number is fenced by a branch")

    def attempt() -> None:
        metadata = commit.catalog.newest()
        if metadata is None:
            raise commit.gone(None)
        if not commit.is_taken(metadata):
            with commit.telling_conflicts():
                fence(fencing, session, metadata)

    retry_conflicts(attempt)


def fence(
    commit: NumberedCommit, session: SparkSession, metadata: Metadata, base: Metadata | None = None
) -> None:
    """Take the number without a row: its file is there in one snapshot and gone in the next, and readers see only the second.

    An append that has begun before finds the file in the history, and any other load finds that what it began on is not what readers see.

    Args:
        commit: of the number.
        session: a session.
        metadata: of the table as it is now.
        base: the table that the commit follows, if it has come here in more than one step.
    """
    table = commit.columns(metadata)

    def work(branch: str) -> Iterator[None]:
        from pyspark.sql import functions as F

        carried = commit_of(commit.value)
        marker = in_order_of(session.range(1).select(carried.alias(COMMIT_COLUMN)), table, carried)
        marker.writeTo(branch).append()
        yield
        nothing = marker.limit(0).writeTo(branch)
        commit.tagged(nothing, None, base or metadata).overwrite(F.col(COMMIT_COLUMN) == F.lit(commit.value))
        yield

    Branches(commit.catalog, commit.tag).publish(session, metadata, work)
