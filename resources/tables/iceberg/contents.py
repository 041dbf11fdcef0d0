"""The contents of an Iceberg table: columns, counts, values and rows of a version.

Only :meth:`IcebergContents.read` starts Spark.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.errors import SourceError, TargetError
from partitions.predicate import EVERYTHING, Predicate, all_of
from partitions.target import COMMIT_COLUMN, DATAFLOW_COLUMN
from resources.connections.places import Place
from resources.spark.frames import without_rows
from resources.tables.contract.commits import MAX_ROWS, Version
from resources.tables.contract.contents import TableContents, TellsNextColumns
from resources.tables.contract.spans import FileSpan, TellsSpans
from resources.tables.iceberg.catalog import Catalog
from resources.tables.iceberg.commit import group_commits
from resources.tables.iceberg.commit_column import hidden_columns, hides_commit_column
from resources.tables.iceberg.metadata import Metadata, Snapshot, names_snapshot, spark_schema
from resources.tables.iceberg.rows import (
    count_rows,
    distinct_rows,
    file_maxima,
    file_spans,
    first_rows,
    highest_values,
    holds_any,
    select_rows,
    text_counts,
)
from resources.tables.iceberg.share import IcebergShare
from resources.tables.text_counts import no_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_MAX_TEXTS = 100_000_000
"""Limit on the distinct texts of a column: more than any dataflow has loaded files."""


@dataclass(frozen=True)
class IcebergContents(TableContents, TellsSpans, TellsNextColumns):
    """The contents of one Iceberg table; it need not exist.

    Attributes:
        place: place of the table.
        catalog: catalog of the table.
        share: the dataflow's share of the rows.
    """

    place: Place
    catalog: Catalog
    share: IcebergShare

    def has_data(self) -> bool:
        """Return whether the table holds rows or a tag."""
        metadata = self.catalog.newest()
        if metadata is None:
            return False
        if (own_rows := self.share.rows(metadata)) != EVERYTHING:
            commits = group_commits(metadata.lineage())
            remembers = any(
                commit.strandline_metadata.get("dataflow") == self.share.dataflow for commit in commits
            )
            return remembers or holds_any(metadata, metadata.current, own_rows)
        remembers = any("strandline.app-id" in snapshot.summary for snapshot in metadata.lineage())
        return remembers or count_rows(metadata) > 0

    def count_rows(self, rows: Predicate = EVERYTHING) -> int:
        """Return the number of rows, from the newest snapshot's summary.

        A shared table is scanned for the dataflow's rows.
        """
        metadata = self.catalog.newest()
        return count_rows(metadata, rows=all_of((self.share.rows(metadata), rows))) if metadata else 0

    def rows_in_log(self) -> int | None:
        """Return the rows, from the newest snapshot's summary; None for a shared table."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return 0
        return metadata.current.rows if self.share.rows(metadata) == EVERYTHING else None

    def count_bytes(self) -> int | None:
        """Return the bytes of the data files, from the newest snapshot's summary."""
        metadata = self.catalog.newest()
        if metadata is None or metadata.current is None:
            return 0
        total_bytes = metadata.current.summary.get("total-files-size")
        return None if total_bytes is None else int(total_bytes)

    def columns(self) -> list[str]:
        """Return the names of the columns, without Strandline's own."""
        metadata = self.catalog.newest()
        return [field["name"] for field in _spark_fields(metadata)] if metadata else []

    def partition_columns(self) -> tuple[str, ...] | None:
        """Return the columns of the table's partition spec; None if it has another transform."""
        metadata = self.catalog.newest()
        return metadata.partition_spec.partition_by if metadata else ()

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version and its columns as Spark's JSON."""
        metadata = self.catalog.newest()
        if metadata is None:
            return None
        return metadata.version_id, json.dumps({"type": "struct", "fields": _spark_fields(metadata)})

    def next_columns(self) -> str | None:
        """Return the columns of the newest metadata, without Strandline's own."""
        metadata = self.catalog.newest()
        if metadata is None:
            return None
        fields = [
            field for field in spark_schema(metadata.schema)["fields"] if field["name"] != COMMIT_COLUMN
        ]
        return json.dumps({"type": "struct", "fields": fields})

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Return the highest value of each column, without Spark."""
        metadata = open_source_metadata(self.place, self.catalog)
        condition = all_of((self.share.rows(metadata), EVERYTHING if rows is None else rows))
        return highest_values(metadata, _snapshot(metadata, version), columns, condition)

    def distinct_texts(self, column: str) -> set[str]:
        """Return the distinct texts of a column."""
        if column not in self.columns():
            return set()
        distinct: Iterator[dict[str, Any]]
        if self.share.dataflow is None or self.share.rows(self.catalog.newest()) == EVERYTHING:
            distinct = self.distinct_rows([column], _MAX_TEXTS)
        else:
            texts_and_dataflows = self.distinct_rows([column, DATAFLOW_COLUMN], _MAX_TEXTS)
            distinct = (row for row in texts_and_dataflows if row[DATAFLOW_COLUMN] == self.share.dataflow)
        return {row[column] for row in distinct if row[column] is not None}

    def text_counts(self, column: str, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return each text of a column with its number of rows."""
        metadata = self.catalog.newest()
        if metadata is None or column not in self.columns():
            return no_texts()
        return text_counts(metadata, column, all_of((self.share.rows(metadata), rows)))

    def distinct_rows(self, columns: Sequence[str], max_rows: int = MAX_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of columns."""
        return distinct_rows(open_source_metadata(self.place, self.catalog), columns, max_rows)

    def first_rows(self, limit: int, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return some rows of the newest version, without Strandline's column."""
        metadata = open_source_metadata(self.place, self.catalog)
        return first_rows(metadata, [field["name"] for field in _spark_fields(metadata)], limit, rows)

    def arrow_rows(
        self, version: Version, rows: Predicate = EVERYTHING, columns: Sequence[str] | None = None
    ) -> pa.RecordBatchReader:
        """Return exactly the rows of a version that meet a condition, without Strandline's column."""
        metadata = open_source_metadata(self.place, self.catalog)
        hidden = hidden_columns(metadata)
        return select_rows(metadata, _snapshot(metadata, version), rows, columns, hidden)

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Return whether a version has a row that meets a condition."""
        metadata = open_source_metadata(self.place, self.catalog)
        return holds_any(metadata, _snapshot(metadata, version), rows)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return each file's highest value from the manifests."""
        metadata = open_source_metadata(self.place, self.catalog)
        return file_maxima(metadata, _snapshot(metadata, version), column)

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return each file's span from the manifests."""
        metadata = open_source_metadata(self.place, self.catalog)
        return file_spans(metadata, _snapshot(metadata, version), group, column)

    def newest_version(self) -> Version:
        """Return the newest version. Starts no Spark."""
        return open_source_metadata(self.place, self.catalog).version_id

    @override
    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return all rows of a version, without Strandline's column; none if the table had no snapshot."""
        name = self.catalog.name(spark)
        if names_snapshot(str(version)):
            table_rows = spark.read.option("versionAsOf", str(version).partition("-")[2]).table(name)
        else:
            table_rows = without_rows(spark.read.table(name))  # it may have a snapshot by now
        metadata = self.catalog.newest()
        return table_rows.drop(COMMIT_COLUMN) if metadata and hides_commit_column(metadata) else table_rows


def open_source_metadata(place: Place, catalog: Catalog) -> Metadata:
    """Return the newest metadata of a table that a source reads.

    Raises:
        SourceError: code ``source_missing``: there is no table; or it cannot be read.
    """
    try:
        metadata = catalog.newest()
    except TargetError as error:
        raise SourceError(error.message) from error
    if metadata is None:
        raise SourceError(
            f"table {place}: expected a table, found none. Load it first, or correct its name",
            code="source_missing",
        )
    return metadata


def _snapshot(metadata: Metadata, version: Version | None) -> Snapshot | None:
    """Return the snapshot of a version; None if the table had none then. Raise if it was expired.

    Raises:
        SourceError: the snapshot was expired.
    """
    if version is None:
        return metadata.current
    snapshot = metadata.snapshot(str(version))
    if snapshot is None and names_snapshot(str(version)):
        raise SourceError(
            f"table {metadata.table_location}: expected version {version}, found none: its snapshot was expired"
        )
    return snapshot


def _spark_fields(metadata: Metadata) -> list[dict[str, Any]]:
    hidden = hidden_columns(metadata)
    return [field for field in spark_schema(metadata.version_schema)["fields"] if field["name"] not in hidden]
