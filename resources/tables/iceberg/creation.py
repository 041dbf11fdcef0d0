"""Create an Iceberg table with its first rows, or take over another writer's table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.loads import Load
from partitions.target import COMMIT_COLUMN
from resources.sql import literal, quoted
from resources.tables.iceberg.columns import with_commit_column
from resources.tables.iceberg.commit import OWNS_COLUMN
from resources.tables.iceberg.commit_column import owns_commit_column
from resources.tables.iceberg.layout import Layout
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.rows.keyed_rows import initial_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NEW_TABLE_PROPERTIES = {
    OWNS_COLUMN: COMMIT_COLUMN,
    # By default bounds are cut after 16 characters, which would not tell numbers apart.
    f"write.metadata.metrics.column.{COMMIT_COLUMN}": "full",
    # By default each commit leaves a file that lists all snapshots.
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
}
_NUMBERED_SNAPSHOTS = {"format-version": "2"}
"""Format 2 numbers snapshots. Without numbers the older of two versions is unknown once one is expired."""


def create_table(
    commit: NumberedCommit, rows: DataFrame, load: Load | None, partition_by: Sequence[str]
) -> None:
    """Create the table with its first rows in one commit of Spark; fail if it exists."""
    from pyspark.sql import functions as F

    rows = rows if load is None else initial_rows(rows, load)
    session, catalog = rows.sparkSession, commit.catalog
    name = catalog.name(session)
    session.sql(f"CREATE NAMESPACE IF NOT EXISTS {catalog.namespace(session)}")
    writer = with_commit_column(rows, commit.value).writeTo(name).using("iceberg")
    for key, value in {**_NEW_TABLE_PROPERTIES, **catalog.new_table_properties}.items():
        writer = writer.tableProperty(key, value)
    writer = commit.with_writer("Spark: the table is created").tag_writer(writer, load)
    if partition_by:
        first_column, *other_columns = [F.col(quoted(_as_parsed(column))) for column in partition_by]
        writer = writer.partitionedBy(first_column, *other_columns)
    writer.create()


def _as_parsed(column: str) -> str:
    """Return a partition column's name as Spark parses it once more: it quotes only a name with a dot."""
    return column if "." in column else quoted(column)


def take_over(
    commit: NumberedCommit, rows: DataFrame, metadata: Metadata, partition_by: tuple[str, ...]
) -> Metadata:
    """Prepare another writer's table for Strandline's commits; return the metadata of the table.

    All of its rows are replaced, so that every row names its commit.
    """
    if owns_commit_column(metadata):
        return metadata
    session, schema = rows.sparkSession, with_commit_column(rows, commit.value).schema
    name = commit.catalog.name(session)
    Layout(name, metadata, partition_by).fit(session, schema)
    properties = _NEW_TABLE_PROPERTIES | ({} if metadata.format_version > 1 else _NUMBERED_SNAPSHOTS)
    settings = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
    session.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({settings})").collect()
    own_table = commit.catalog.newest()
    if own_table is None:
        raise commit.missing_table_error(None)
    return own_table
