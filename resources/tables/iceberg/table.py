"""An Iceberg table as the contract defines it. The modules beside this one do the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError, WriteConflict, shorten_to_line
from partitions.evolution import SchemaMode
from partitions.loads import Load, ReplaceAll, restrict_load
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.places import Place
from resources.spark.process import error_line
from resources.tables.contract.adopting import AdoptableState
from resources.tables.contract.commits import TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.relocation import Relocation, TableMoved
from resources.tables.contract.table import Table
from resources.tables.folder_values import check_iceberg_values
from resources.tables.iceberg.attempts import write_slice
from resources.tables.iceberg.catalog import Catalog, FolderCatalog
from resources.tables.iceberg.columns import OUTSIDE
from resources.tables.iceberg.commit import group_commits
from resources.tables.iceberg.commit_column import count_of_commit, owns_commit_column
from resources.tables.iceberg.commit_log import IcebergCommits
from resources.tables.iceberg.contents import IcebergContents
from resources.tables.iceberg.fence import give_up
from resources.tables.iceberg.head import compare_head, find_writer, read_tip
from resources.tables.iceberg.history import adoptable_state
from resources.tables.iceberg.jdbc_catalog import JdbcCatalog
from resources.tables.iceberg.maintenance import IcebergMaintenance
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.iceberg.refs import RefChange
from resources.tables.iceberg.relocation import MovedTable
from resources.tables.iceberg.rest_catalog import RestCatalog
from resources.tables.iceberg.rows import count_rows
from resources.tables.iceberg.share import IcebergShare
from resources.tables.removal import remove_files
from resources.tables.user_metadata import commit_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TAG_PREFIX = "strandline_"
"""Prefix of the tag that keeps the snapshot of a dataflow's newest entry."""


class IcebergTable(Table):
    """One Iceberg table; it need not exist."""

    def __init__(
        self,
        place: Place,
        partition_by: Sequence[str] = (),
        *,
        dataflow: str | None = None,
        schema_mode: SchemaMode = "strict",
    ) -> None:
        """Use the table at a place.

        Args:
            place: place of the table.
            partition_by: partition columns that the first write creates.
            dataflow: dataflow that shares the table; None: no one shares it.
            schema_mode: how writes change the table's columns.
        """
        self._place = place
        self._catalog = _catalog_of(place)
        self._share = IcebergShare(dataflow)
        self._dataflow = dataflow
        self._partition_by = tuple(partition_by)
        self._schema_mode = schema_mode

    def share_of(self, dataflow: str) -> IcebergTable:
        """Return the table as one of its dataflows sees it."""
        return IcebergTable(self._place, self._partition_by, dataflow=dataflow, schema_mode=self._schema_mode)

    def with_schema_mode(self, mode: SchemaMode) -> IcebergTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return IcebergTable(self._place, self._partition_by, dataflow=self._dataflow, schema_mode=mode)

    @property
    def place(self) -> Place:
        """Place of the table."""
        return self._place

    @property
    def contents(self) -> IcebergContents:
        """Contents of the table."""
        return IcebergContents(self._place, self._catalog, self._share)

    @property
    def maintenance(self) -> IcebergMaintenance:
        """Maintenance of the table."""
        return IcebergMaintenance(self._catalog, self._place)

    @property
    def commits(self) -> IcebergCommits:
        """Commits of the table."""
        return IcebergCommits(self._place, self._catalog)

    def exists(self) -> bool:
        """Return whether the catalog has the table, or one was moved to its place."""
        try:
            return self._catalog.newest() is not None
        except TableMoved:
            return True

    def identity(self) -> str | None:
        """Return the table's uuid."""
        metadata = self._catalog.newest()
        return metadata.uuid if metadata else None

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's snapshots with the recorded commit."""
        metadata = self._catalog.newest()
        head = compare_head(metadata, recorded, app_id, self._dataflow)
        writer, lacks_column = find_writer(metadata, app_id), _lacks_commit_column(metadata)
        return replace(head, writer=writer, lacks_commit_column=lacks_column)

    def tip(self, app_id: str | None) -> TableHead:
        """Return the newest commit and the highest tag."""
        metadata = self._catalog.newest()
        return replace(read_tip(metadata, app_id), lacks_commit_column=_lacks_commit_column(metadata))

    def adoptable_state(self, app_id: str | None = None) -> AdoptableState | None:
        """Return the state that the table's commits record."""
        return adoptable_state(self._place, self._catalog.newest(), app_id, self._dataflow)

    def complete_counts(self, commit: TaggedCommit, rows_before: int) -> TaggedCommit:
        """Return the commit with all of its counts, from the commit column of its rows."""
        if not commit.uncounted:
            return commit
        metadata = self._catalog.newest()
        snapshot = metadata.snapshot(str(commit.version)) if metadata else None
        if metadata is None or snapshot is None:
            return replace(commit, uncounted=False)
        commit_of_snapshot = next(
            (commit_ for commit_ in group_commits(metadata.lineage()) if commit_.snapshot.id == snapshot.id),
            None,
        )
        if commit_of_snapshot is not None and snapshot.rows is None:
            # Only Spark can read rows under equality deletes, and no session is available here.
            return replace(commit, removed=commit_of_snapshot.removed_by_files, uncounted=False)
        app_id = snapshot.summary["strandline.app-id"]
        rows = count_of_commit(metadata, snapshot, app_id, commit.number)
        if commit_of_snapshot is not None and commit_of_snapshot.before is not None:
            removed_rows = (
                count_rows(metadata, commit_of_snapshot.before) + rows - count_rows(metadata, snapshot)
            )
        else:
            removed_rows = rows_before + rows - count_rows(metadata, snapshot, self._share.rows(metadata))
        removed_rows = max(0, removed_rows)
        return replace(commit, rows=rows, removed=removed_rows, uncounted=False)

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit, unless the number is taken.

        Any of the dataflows that share a table may create it.
        """
        creates_table = base is None and (self._dataflow is None or not self.exists())
        try:
            if self._dataflow is not None:
                load = restrict_load(load, self._share.rows(self._catalog.newest()))
            metadata = None if creates_table or isinstance(load, ReplaceAll) else self._catalog.newest()
            # Folders are named after the values of these columns.
            partition_columns = (
                self._partition_by if metadata is None else metadata.partition_spec.partition_by or ()
            )
            with check_iceberg_values(rows, partition_columns, self._place) as kept_rows:
                write_slice(
                    self._commit(tag, state),
                    kept_rows,
                    load,
                    self._partition_by,
                    self._schema_mode,
                    creates_table=creates_table,
                )
        except RowsRefused:
            raise
        except Exception as error:
            if creates_table and self._dataflow is not None and self.exists():
                raise WriteConflict(
                    f"table {self._place}: another dataflow has just created it. No data is lost: the "
                    "next run tries again"
                ) from error
            raise

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Take the number with a commit that changes no row."""
        give_up(self._commit(tag, state), spark, first_rows, self._partition_by)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused because it lies outside the replaced rows."""
        return isinstance(error, RowsRefused) and error.code == OUTSIDE

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Move the dataflow's tag to the snapshot of the newest entry, so that the snapshot is kept."""
        metadata = self._catalog.newest()
        snapshot = metadata.snapshot(str(commit.version)) if metadata else None
        if snapshot is not None:
            with suppress(WriteConflict):  # the next run repeats it
                self._catalog.change_refs(RefChange(tags={f"{TAG_PREFIX}{dataflow}": snapshot.id}))

    def plan_relocation(self) -> Relocation | None:
        """Return the relocation that :meth:`relocate` would make; None if the table was not moved."""
        moved = self._catalog.find_moved()
        return MovedTable(self._place, *moved).plan() if moved else None

    def relocate(self) -> Relocation | None:
        """Write the new addresses after a move."""
        moved = self._catalog.find_moved()
        if moved is None:
            return None
        table = MovedTable(self._place, *moved)
        relocation, raw = table.plan(), table.new_metadata()
        table.write(raw)
        self._catalog.publish_moved(table.metadata, raw)
        return relocation

    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Drop the table from its catalog, then remove its folder."""
        spark = session()
        try:
            spark.sql(f"DROP TABLE IF EXISTS {self._catalog.name(spark)}").collect()
        except Exception as error:
            raise TargetError(
                f"table {self._place} cannot be removed: {shorten_to_line(error_line(error))}"
            ) from error
        remove_files(self)

    def _commit(self, tag: Tag, state: str) -> NumberedCommit:
        text = commit_text(self._place, tag, state, self._dataflow)
        return NumberedCommit(self._catalog, self._place, tag, text)


def _lacks_commit_column(metadata: Metadata | None) -> bool:
    return metadata is not None and not owns_commit_column(metadata)


def _catalog_of(place: Place) -> Catalog:
    match place.catalog:
        case None:
            return FolderCatalog(place)
        case RestCatalogServer() as server:
            return RestCatalog(place, server)
        case database:
            return JdbcCatalog(place, database)
