"""An Iceberg table of the lake, as the contract has it. What each method needs is in the modules beside this one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused, SourceError, TargetError, WriteConflict, in_one_line
from partitions.evolution import SchemaMode
from partitions.load import Load, ReplaceAll, within
from partitions.predicate import EVERYTHING, Among, Predicate, all_of
from partitions.target import COMMIT_COLUMN, DATAFLOW_COLUMN
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.places import Place
from resources.spark.process import said
from resources.tables.contract.adopting import Adopted
from resources.tables.contract.appends import Appended, Appends, Mark
from resources.tables.contract.commits import MOST_ROWS, TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.maintenance import Cared
from resources.tables.contract.spans import FileSpan
from resources.tables.folder_values import kept_by_iceberg
from resources.tables.iceberg.appends import appends, rows_of_appends
from resources.tables.iceberg.catalog import Catalog, FolderCatalog
from resources.tables.iceberg.columns import OUTSIDE
from resources.tables.iceberg.commit import commits_of
from resources.tables.iceberg.head import compared, tip_of
from resources.tables.iceberg.history import adopted
from resources.tables.iceberg.jdbc_catalog import JdbcCatalog
from resources.tables.iceberg.maintenance import Care
from resources.tables.iceberg.metadata import Metadata, Snapshot, spark_schema
from resources.tables.iceberg.refs import RefChange
from resources.tables.iceberg.rest_catalog import RestCatalog
from resources.tables.iceberg.rows import (
    count_of_commit,
    count_rows,
    distinct_rows,
    file_maxima,
    file_spans,
    hides_commit_column,
    highest_values,
    holds_any,
)
from resources.tables.iceberg.writing import Commits
from resources.tables.removal import remove_files
from resources.tables.user_metadata import commit_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TAG = "strandline_"
"""Before the dataflow's name, in the tag that keeps the snapshot of its newest entry."""

_MOST_TEXTS = 100_000_000
"""Of a column: more than the files that a dataflow has ever loaded."""


class IcebergTable:
    """One Iceberg table; it need not exist."""

    def __init__(
        self,
        place: Place,
        partition_by: Sequence[str] = (),
        *,
        dataflow: str | None = None,
        schema_mode: SchemaMode = "strict",
    ) -> None:
        """Use the table at a place, which the first write makes, partitioned as given; for all, or for one of the dataflows that share it."""
        self._place = place
        self._partition_by = tuple(partition_by)
        self._dataflow = dataflow
        self._schema_mode = schema_mode
        self._catalog = _catalog_of(place)

    def share_of(self, dataflow: str) -> IcebergTable:
        """Return the table as one of the dataflows that share it sees it."""
        return IcebergTable(self._place, self._partition_by, dataflow=dataflow, schema_mode=self._schema_mode)

    def taking_columns(self, mode: SchemaMode) -> IcebergTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return IcebergTable(self._place, self._partition_by, dataflow=self._dataflow, schema_mode=mode)

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self._place

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's snapshots with what was recorded of it."""
        return compared(self._catalog.newest(), recorded, app_id, self._dataflow)

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now."""
        return tip_of(self._catalog.newest(), app_id)

    def adopted(self, app_id: str | None = None) -> Adopted | None:
        """Return the state that the commits tell which the table's rows go back to."""
        return adopted(self._place, self._catalog.newest(), app_id, self._dataflow)

    def exists(self) -> bool:
        """Return whether there is an Iceberg table."""
        return self._catalog.newest() is not None

    def has_data(self) -> bool:
        """Return whether the table holds rows or remembers a tag."""
        metadata = self._catalog.newest()
        if metadata is None:
            return False
        if (own := self._own_rows(metadata)) != EVERYTHING:
            commits = commits_of(metadata.lineage())
            remembers = any(commit.ours.get("dataflow") == self._dataflow for commit in commits)
            return remembers or holds_any(metadata, metadata.current, own)
        remembers = any("strandline.app-id" in snapshot.summary for snapshot in metadata.lineage())
        return remembers or count_rows(metadata) > 0

    def counted(self, commit: TaggedCommit, before: int) -> TaggedCommit:
        """Return the commit with all of its counts: rows say which commit wrote them, also beside rows that it only moved."""
        if not commit.uncounted:
            return commit
        metadata = self._catalog.newest()
        snapshot = metadata.snapshot(str(commit.version)) if metadata else None
        if metadata is None or snapshot is None:
            return replace(commit, uncounted=False)
        made = next(
            (made for made in commits_of(metadata.lineage()) if made.snapshot.id == snapshot.id), None
        )
        if made is not None and snapshot.rows is None:
            # What others have deleted by values only Spark reads, and there is none here.
            return replace(commit, removed=made.removed_by_files, uncounted=False)
        app_id = snapshot.summary["strandline.app-id"]
        rows = count_of_commit(metadata, snapshot, app_id, commit.number)
        if made is not None and made.before is not None:
            removed = count_rows(metadata, made.before) + rows - count_rows(metadata, snapshot)
        else:
            removed = before + rows - count_rows(metadata, snapshot, self._own_rows(metadata))
        removed = max(0, removed)
        return replace(commit, rows=rows, removed=removed, uncounted=False)

    def count_rows(self) -> int:
        """Return the number of rows, from the newest snapshot's summary; a table that is shared is scanned for the dataflow's."""
        metadata = self._catalog.newest()
        return count_rows(metadata, rows=self._own_rows(metadata)) if metadata else 0

    def count_bytes(self) -> int | None:
        """Return the bytes of the data files, as the newest snapshot's summary has them."""
        metadata = self._catalog.newest()
        if metadata is None or metadata.current is None:
            return 0
        told = metadata.current.summary.get("total-files-size")
        return None if told is None else int(told)

    def columns(self) -> list[str]:
        """Return the names of the columns, without Strandline's own."""
        metadata = self._catalog.newest()
        return [field["name"] for field in _spark_fields(metadata)] if metadata else []

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON."""
        metadata = self._catalog.newest()
        if metadata is None:
            return None
        return metadata.version_id, json.dumps({"type": "struct", "fields": _spark_fields(metadata)})

    def identity(self) -> str | None:
        """Return its uuid."""
        metadata = self._catalog.newest()
        return metadata.uuid if metadata else None

    def next_columns(self) -> str | None:
        """Return the columns of the newest metadata, without Strandline's own."""
        metadata = self._catalog.newest()
        if metadata is None:
            return None
        fields = [
            field for field in spark_schema(metadata.schema)["fields"] if field["name"] != COMMIT_COLUMN
        ]
        return json.dumps({"type": "struct", "fields": fields})

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Ask for them, without Spark."""
        metadata = self._readable()
        asked = all_of((self._own_rows(metadata), EVERYTHING if rows is None else rows))
        return highest_values(metadata, self._snapshot(metadata, version), columns, asked)

    def texts(self, column: str) -> set[str]:
        """Return all texts of a column."""
        if column not in self.columns():
            return set()
        distinct: Iterator[dict[str, Any]]
        if self._dataflow is None or self._own_rows(self._catalog.newest()) == EVERYTHING:
            distinct = self.distinct_rows([column], _MOST_TEXTS)
        else:
            both = self.distinct_rows([column, DATAFLOW_COLUMN], _MOST_TEXTS)
            distinct = (row for row in both if row[DATAFLOW_COLUMN] == self._dataflow)
        return {row[column] for row in distinct if row[column] is not None}

    def distinct_rows(self, columns: Sequence[str], most: int = MOST_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of some columns."""
        return distinct_rows(self._readable(), columns, most)

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Ask for one row."""
        metadata = self._readable()
        return holds_any(metadata, self._snapshot(metadata, version), rows)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return what the table's manifests say of its files."""
        metadata = self._readable()
        return file_maxima(metadata, self._snapshot(metadata, version), column)

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return what the table's manifests say of its files."""
        metadata = self._readable()
        return file_spans(metadata, self._snapshot(metadata, version), group, column)

    def newest_version(self) -> Version:
        """Return the newest version. Starts no Spark."""
        return self._readable().version_id

    def read(
        self,
        spark: SparkSession,
        version: Version,
        rows: Predicate = EVERYTHING,  # noqa: ARG002 - all of them are a right answer
    ) -> DataFrame:
        """Return all rows of a version, without Strandline's column."""
        name, snapshot = self._catalog.name(spark), str(version).partition("-")[2]
        reader = spark.read.option("versionAsOf", snapshot) if snapshot.isdigit() else spark.read
        found = reader.table(name)
        metadata = self._catalog.newest()
        return found.drop(COMMIT_COLUMN) if metadata and hides_commit_column(metadata) else found

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit, which is refused if its number was taken since it was planned, or if other rows were.

        A table that several dataflows share is there for all of them, whichever has made it.
        """
        first = base is None and (self._dataflow is None or not self.exists())
        try:
            if self._dataflow is not None:
                load = within(load, self._own_rows(self._catalog.newest()))
            with kept_by_iceberg(rows, self._layout(load, first=first), self._place) as kept:
                self._commits(tag, state).write(kept, load, first=first)
        except RowsRefused:
            raise
        except Exception as error:
            if first and self._dataflow is not None and self.exists():
                raise WriteConflict(
                    f"table {self._place}: another dataflow has made it just now. Nothing is lost: the next run tries again"
                ) from error
            raise

    def _layout(self, load: Load, *, first: bool) -> Sequence[str]:
        """The columns that folders are called after when rows are written."""
        if first or isinstance(load, ReplaceAll):
            return self._partition_by
        metadata = self._catalog.newest()
        return (metadata.partition_by if metadata else None) or ()

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Take the number with a commit that changes no row."""
        self._commits(tag, state).give_up(spark, first_rows)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused."""
        return isinstance(error, RowsRefused) and error.code == OUTSIDE

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Keep the snapshot of the newest entry from being expired, by a tag."""
        metadata = self._catalog.newest()
        snapshot = metadata.snapshot(str(commit.version)) if metadata else None
        if snapshot is not None:
            self._catalog.change_refs(RefChange(tags={f"{TAG}{dataflow}": snapshot.id}))

    def optimize(self, session: Callable[[], SparkSession], cluster_by: Sequence[str]) -> Cared:
        """Join small files."""
        return Care(self._catalog, self._place).optimize(session, cluster_by)

    def vacuum(self, session: Callable[[], SparkSession]) -> Cared:
        """Expire snapshots that are older than the table's retention, and delete what only they have."""
        return Care(self._catalog, self._place).vacuum(session)

    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Have its catalog forget it, then remove its folder."""
        spark = session()
        try:
            spark.sql(f"DROP TABLE IF EXISTS {self._catalog.name(spark)}").collect()
        except Exception as error:
            raise TargetError(f"table {self._place} cannot be removed: {in_one_line(said(error))}") from error
        remove_files(self)

    def appends(self, since: Mark | None, until: int | None = None) -> Appends:
        """Return what the snapshots that follow each other append."""
        return appends(self._readable(), since, until)

    def version_of(self, mark: Mark) -> Version:
        """Return the snapshot's number and id."""
        return f"{mark.version}-{mark.id}"

    def mark_of(self, version: Version) -> Mark:
        """Return the snapshot's number and id."""
        number, _, snapshot = str(version).partition("-")
        return Mark(int(number), snapshot)

    def rows_of_appends(self, spark: SparkSession, appended: Sequence[Appended]) -> DataFrame:
        """Return the rows of these snapshots, without Strandline's column."""
        return rows_of_appends(self._catalog, self._readable(), spark, appended)

    def _own_rows(self, metadata: Metadata | None) -> Predicate:
        """The rows that the dataflow deletes, updates and counts: all, unless the table is shared by now."""
        if self._dataflow is None or metadata is None:
            return EVERYTHING
        shared = any(field["name"] == DATAFLOW_COLUMN for field in _spark_fields(metadata))
        return Among(DATAFLOW_COLUMN, (self._dataflow,)) if shared else EVERYTHING

    def _commits(self, tag: Tag, state: str) -> Commits:
        text = commit_text(self._place, tag, state, self._dataflow)
        return Commits(self._catalog, self._place, self._partition_by, tag, text, self._schema_mode)

    def _readable(self) -> Metadata:
        try:
            metadata = self._catalog.newest()
        except TargetError as error:
            raise SourceError(error.message) from error
        if metadata is None:
            raise SourceError(
                f"table {self._place}: expected a table, found none. Load it first, or correct its name",
                code="source_missing",
            )
        return metadata

    def _snapshot(self, metadata: Metadata, version: Version | None) -> Snapshot | None:
        """The snapshot of a version; None if the table had none then."""
        if version is None:
            return metadata.current
        snapshot = metadata.snapshot(str(version))
        if snapshot is None and str(version).partition("-")[2].isdigit():
            raise SourceError(
                f"table {self._place}: expected version {version}, found none: its snapshot was expired"
            )
        return snapshot


def _catalog_of(place: Place) -> Catalog:
    match place.catalog:
        case None:
            return FolderCatalog(place)
        case RestCatalogServer() as server:
            return RestCatalog(place, server)
        case database:
            return JdbcCatalog(place, database)


def _spark_fields(metadata: Metadata) -> list[dict[str, Any]]:
    hidden = COMMIT_COLUMN if hides_commit_column(metadata) else None
    return [field for field in spark_schema(metadata.version_schema)["fields"] if field["name"] != hidden]
