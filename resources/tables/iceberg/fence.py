"""Take a number of an Iceberg table without a row, so that no other writer can.

See docs/explanation/adr/0019.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.target import COMMIT_COLUMN
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.branches import Branches
from resources.tables.iceberg.columns import commit_column, in_table_order
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
    fencing_commit = commit.with_writer("Spark: the number is fenced by a branch")

    def attempt() -> None:
        metadata = commit.catalog.newest()
        if metadata is None:
            raise commit.missing_table_error(None)
        if not commit.is_taken(metadata):
            with commit.raising_conflicts():
                fence(fencing_commit, session, metadata)

    retry_conflicts(attempt)


def fence(
    commit: NumberedCommit, session: SparkSession, metadata: Metadata, base: Metadata | None = None
) -> None:
    """Take the number without a row: add a file in one snapshot and remove it in the next.

    Readers see only the second snapshot. An append that started before finds the file in the history. Any
    other load finds that readers see another snapshot than the one it started from.

    Args:
        commit: commit of the number.
        session: session.
        metadata: current metadata of the table.
        base: metadata that the commit follows, if more than one step led to the current one.
    """
    table = commit.columns(metadata)

    def work(branch: str) -> Iterator[None]:
        from pyspark.sql import functions as F

        number_column = commit_column(commit.value)
        marker = in_table_order(
            session.range(1).select(number_column.alias(COMMIT_COLUMN)), table, number_column
        )
        marker.writeTo(branch).append()
        yield
        nothing = marker.limit(0).writeTo(branch)
        commit.tag_writer(nothing, None, base or metadata).overwrite(
            F.col(COMMIT_COLUMN) == F.lit(commit.value)
        )
        yield

    Branches(commit.catalog, commit.tag).publish(session, metadata, work)
