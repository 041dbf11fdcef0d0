"""Making an Iceberg table Strandline's: a new one with its first rows, or another writer's, whose rows are all replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.loads import Load, Scd2
from partitions.target import COMMIT_COLUMN
from resources.sql import literal, quoted
from resources.tables.iceberg.columns import with_commit
from resources.tables.iceberg.commit import OWNS_COLUMN
from resources.tables.iceberg.layout import Layout
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.iceberg.rows import owns_commit_column
from resources.tables.rows.scd2 import scd2_initial_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def create_table(
    commit: NumberedCommit, rows: DataFrame, load: Load | None, partition_by: Sequence[str]
) -> None:
    """Make the table with its first rows, in one commit of Spark's. Nothing is there that could be replaced."""
    from pyspark.sql import functions as F

    rows = scd2_initial_rows(rows, load) if isinstance(load, Scd2) else rows
    session, catalog = rows.sparkSession, commit.catalog
    name = catalog.name(session)
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog.namespace(session)}")
    writer = with_commit(rows, commit.value).writeTo(name).using("iceberg")
    for key, value in {**_NEW_TABLE, **catalog.new_table}.items():
        writer = writer.tableProperty(key, value)
    writer = commit.with_writer("Spark: the table is created").tagged(writer, load)
    if partition_by:
        first, *others = [F.col(quoted(column)) for column in partition_by]
        writer = writer.partitionedBy(first, *others)
    writer.create()


def take_over(
    commit: NumberedCommit, rows: DataFrame, metadata: Metadata, partition_by: tuple[str, ...]
) -> Metadata:
    """Return the table as Strandline's, also if another writer has made it: no row of theirs stays, so that each row has its commit."""
    if owns_commit_column(metadata):
        return metadata
    session, schema = rows.sparkSession, with_commit(rows, commit.value).schema
    name = commit.catalog.name(session)
    Layout(name, metadata, partition_by).fit(session, schema)
    properties = _NEW_TABLE | ({} if metadata.format_version > 1 else _NUMBERED)
    settings = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({settings})").collect()
    owned = commit.catalog.newest()
    if owned is None:
        raise commit.gone(None)
    return owned
