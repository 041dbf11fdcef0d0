"""Commit a Parquet table: write hidden files, then the list that names them.

See docs/reference/parquet.md.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import ProviderError, RowsRefused, SourceError, TargetError
from partitions.evolution import SchemaMode
from partitions.loads import Append, Load, Replace, ReplaceAll
from resources.connections.places import Place
from resources.tables.contract.commits import Tag, Version
from resources.tables.data_files.reading import read_files
from resources.tables.data_files.written import DataFile, collect_data_files, lacks_committer, write_files
from resources.tables.parquet.columns import (
    check_partition_columns,
    evolve_columns_json,
    fit_rows,
    schema_of,
    spark_schema,
    spelled_as_in,
)
from resources.tables.parquet.commit_list import (
    LISTS_PER_FULL_LIST,
    CommitList,
    ListedFile,
    PrecedingCommit,
    TableSnapshot,
    apply_commit,
)
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.plain_reader_files import has_visible_files, visible_files
from resources.tables.parquet.removals import find_removals
from resources.tables.parquet.staging import StagedFolder
from resources.tables.row_columns import with_columns_of
from resources.tables.rows.replacement import Replacement
from resources.watermarks.entry import utc_now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_MAX_ATTEMPTS = 100
"""Number of attempts while other writers take the next number."""


@dataclass(frozen=True)
class PlannedCommit:
    """The files that a commit adds and removes.

    Attributes:
        load: load of the slice.
        base: table that the commit was planned on; None: there was none, and the commit creates it.
        columns_json: columns of a new or changed table; None: the table keeps its columns.
        partition_by: partition columns.
        folder: staging folder of its files; empty if it moves none.
        files: added files.
        copied: paths of partly removed files, whose remaining rows the added files contain.
        copied_rows: number of these rows.
        unlisted_paths: paths of files in the table's folder that no list names, and that a load of all
            rows removes.
    """

    load: Load
    base: TableSnapshot | None
    columns_json: str | None = None
    partition_by: tuple[str, ...] = ()
    folder: str = ""
    files: tuple[ListedFile, ...] = ()
    copied: frozenset[str] = frozenset()
    copied_rows: int = 0
    unlisted_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class ParquetCommit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`.

    Attributes:
        log: log of the table.
        placement: placement of its files.
        tag: tag of the commit.
        state: sentinel JSON text of the watermark after the commit.
        lost_paths: paths of missing files, which a commit that loads rows removes from the table.
        schema_mode: how writes change the table's columns.
    """

    log: CommitLog
    placement: Placement
    tag: Tag
    state: str
    lost_paths: frozenset[str] = frozenset()
    schema_mode: SchemaMode = "strict"

    @property
    def _place(self) -> Place:
        return self.log.place

    def write(self, rows: DataFrame, load: Load, partition_by: Sequence[str], base: Version | None) -> None:
        """Load rows in one commit, unless the number is taken.

        Raises:
            RowsRefused, TargetError: as the contract says.
        """
        base_snapshot = self.log.snapshot()
        if self._is_taken(base_snapshot):
            return
        self._check_base(base_snapshot, load, base)
        if base_snapshot is None or isinstance(load, ReplaceAll):
            takes_columns, columns_json = True, schema_of(rows.schema, self._place)
            partition_columns = spelled_as_in(partition_by, rows.columns)
            check_partition_columns(rows.schema, partition_columns, self._place)
        else:
            self.placement.finish(base_snapshot.newest)
            rows, columns_json = self._fit_rows(rows, base_snapshot)
            takes_columns = columns_json != base_snapshot.columns_json
            partition_columns = base_snapshot.partition_by
        whole_files, partial_files = self._current_removals(base_snapshot, load)
        staging, folder = self.placement.staging, StagedFolder.of(self.tag)
        try:
            replacement = None
            if isinstance(load, Replace) and base_snapshot is not None:
                replacement = self._replacement(rows, load, partial_files)
            self._write_files(replacement.rows if replacement else rows, folder, partition_columns)
            written = self._collect_written(folder, spark_schema(columns_json), rows, partition_columns)
            copied_rows = replacement.count_copied(staging.place_of(folder), written) if replacement else 0
            files = tuple(_listed_file(file, folder, index) for index, file in enumerate(written))
        except Exception:
            staging.drop(folder.name)
            raise
        unlisted_files = tuple(visible_files(self._place)) if isinstance(load, ReplaceAll) else ()
        if not files:
            staging.drop(folder.name)
            if whole_files or unlisted_files:
                folder = StagedFolder.of(self.tag)
                staging.begin(folder)
        self.commit_planned(
            PlannedCommit(
                load,
                base_snapshot,
                columns_json if takes_columns else None,
                partition_columns if takes_columns else (),
                folder.name if files or whole_files or unlisted_files else "",
                files,
                frozenset(file.path for file in partial_files),
                copied_rows,
                tuple(
                    path
                    for path in unlisted_files
                    if base_snapshot is None or path not in base_snapshot.files
                ),
            )
        )

    def give_up(self, columns: Callable[[], StructType] | None, partition_by: Sequence[str]) -> None:
        """Take the number by a commit that changes no row.

        If there is no table, the commit creates one with these columns.

        Raises:
            RowsRefused, TargetError: as the contract says; or there is no table, and no columns for one.
        """
        base_snapshot = self.log.snapshot()
        if self._is_taken(base_snapshot):
            return
        if base_snapshot is not None:
            self.commit_planned(PlannedCommit(Append(), base_snapshot))
            return
        if columns is None:
            raise TargetError(
                f"table {self._place}: expected a table, found none: it was removed meanwhile. Run again"
            )
        self._check_base(None, Append(), None)
        rows = columns()
        partition_columns = spelled_as_in(partition_by, rows.names)
        check_partition_columns(rows, partition_columns, self._place)
        self.commit_planned(PlannedCommit(Append(), None, schema_of(rows, self._place), partition_columns))

    def commit_planned(self, change: PlannedCommit) -> None:
        """Write the list as the next number; if another writer takes that number, check the table again.

        Raises:
            RowsRefused, TargetError: as :meth:`write`.
        """
        for _ in range(_MAX_ATTEMPTS):
            newest = self.log.snapshot()
            if self._is_taken(newest):
                self._drop_staged(change)
                return
            try:
                commit_list = self._build_list(change, newest)
                if newest is not None:  # all earlier files must be moved before the next list is written
                    self.placement.finish(newest.newest)
            except (RowsRefused, TargetError):
                self._drop_staged(change)
                raise
            try:
                if self.log.put(commit_list):
                    return
            except ProviderError as error:
                # The list may be there, or appear later, so its files stay.
                if self._is_in_log(change):
                    return
                raise TargetError(
                    f"table {self._place}: its commit cannot be written: {error.message}"
                ) from error
            if self._is_in_log(change):  # the answer was lost, and the client repeated the request
                return
            time.sleep(random.uniform(0, 0.1))  # noqa: S311 - keeps two writers out of step
        self._drop_staged(change)
        raise TargetError(
            f"table {self._place}: other writers committed first {_MAX_ATTEMPTS} times in a row. No data "
            "is lost: run again"
        )

    def _is_taken(self, snapshot: TableSnapshot | None) -> bool:
        return snapshot is not None and snapshot.tags.get(self.tag.app_id, 0) >= self.tag.number

    def _is_in_log(self, change: PlannedCommit) -> bool:
        base_version = change.base.newest.version if change.base else 0
        return any(
            commit.owner == self.tag.owner and commit.staged == change.folder
            for commit in self.log.read_all(self.log.versions(base_version))
        )

    def _drop_staged(self, change: PlannedCommit) -> None:
        if change.folder:
            self.placement.staging.drop(change.folder)

    def _check_base(self, base_snapshot: TableSnapshot | None, load: Load, base: Version | None) -> None:
        """Raise if the table is not the one that the slice was planned on.

        Raises:
            RowsRefused: a table or files exist that no one has decided about.
            TargetError: the table was removed meanwhile.
        """
        if base_snapshot is not None:
            if base is None:
                raise RowsRefused(
                    f"table {self._place}: expected no table; another writer created one after this slice was planned. Run again"
                )
            return
        if base is not None:
            raise TargetError(
                f"table {self._place}: expected version {base} or a later one, found none: the table was "
                "removed meanwhile"
            )
        if not isinstance(load, ReplaceAll) and has_visible_files(self._place):
            raise RowsRefused(
                f"table {self._place}: expected only Parquet files that Strandline wrote, found others, "
                "which readers would take for rows of this table. Move them away, or use another "
                "target.table"
            )

    def _fit_rows(self, rows: DataFrame, base_snapshot: TableSnapshot) -> tuple[DataFrame, str]:
        """Return rows with the table's columns, and these columns after the schema mode's changes."""
        if self.schema_mode not in ("merge", "rescue"):
            return fit_rows(rows, base_snapshot.columns_json, self._place), base_snapshot.columns_json
        columns_json = evolve_columns_json(
            rows.schema, base_snapshot.columns_json, base_snapshot.partition_by, self.schema_mode, self._place
        )
        return with_columns_of(rows, spark_schema(columns_json)), columns_json

    def _write_files(self, rows: DataFrame, folder: StagedFolder, partition_columns: Sequence[str]) -> None:
        staging_place = self.placement.staging.place_of(folder)
        try:
            write_files(rows, staging_place, partition_columns)
        except Exception as error:
            if not lacks_committer(error):
                raise
            # No one sees a staged file before its list is written, so Spark's own committer is as safe, only slower.
            write_files(rows, staging_place, partition_columns, copies=True)

    def _replacement(
        self, rows: DataFrame, load: Replace, partial_files: Sequence[ListedFile]
    ) -> Replacement:
        replaced_rows = (
            read_files(rows, self._place, [file.path for file in partial_files]) if partial_files else None
        )
        return Replacement(rows, load, replaced_rows, sum(file.rows for file in partial_files))

    def _collect_written(
        self, folder: StagedFolder, schema: StructType, rows: DataFrame, partition_columns: Sequence[str]
    ) -> list[DataFile]:
        try:
            return collect_data_files(
                self.placement.staging.place, folder.name, schema, rows, partition_columns
            )
        except ValueError as error:
            raise RowsRefused(
                f"table {self._place}: a column of partition_by has a value that cannot name a folder: {error}"
            ) from error
        except SourceError as error:
            raise TargetError(
                f"table {self._place}: the files just written cannot be read: {error.message}"
            ) from error

    def _current_removals(
        self, table: TableSnapshot | None, load: Load
    ) -> tuple[tuple[ListedFile, ...], tuple[ListedFile, ...]]:
        """Return the files that a load removes wholly, and the files that it removes in part.

        Missing files count as wholly removed.
        """
        if table is None:
            return (), ()
        present_files = {path: file for path, file in table.files.items() if path not in self.lost_paths}
        lost_files = tuple(file for path, file in table.files.items() if path in self.lost_paths)
        whole_files, partial_files = find_removals(replace(table, files=present_files), load)
        return (*whole_files, *lost_files), partial_files

    def _build_list(self, change: PlannedCommit, newest: TableSnapshot | None) -> CommitList:
        """Return the list that follows the current table.

        Raises:
            RowsRefused, TargetError: the table is no longer the one that the commit was planned on.
        """
        table = self._table_id(change, newest)
        whole_files, partial_files = (
            ((), ()) if self.tag.gives_up else self._current_removals(newest, change.load)
        )
        if frozenset(file.path for file in partial_files) != change.copied:
            raise TargetError(
                f"table {self._place}: another dataflow changed files whose rows this write copies. No "
                "data is lost: run again"
            )
        removed_rows = sum(file.rows for file in (*whole_files, *partial_files))
        replaces_all = isinstance(change.load, ReplaceAll)
        commit_list = CommitList(
            version=newest.newest.version + 1 if newest else 1,
            table=table,
            owner=self.tag.owner,
            app_id=self.tag.app_id,
            number=self.tag.number,
            gives_up=self.tag.gives_up,
            after=PrecedingCommit(version=self.tag.after.version, id=self.tag.after.id)
            if self.tag.after
            else None,
            rewound=self.tag.rewound,
            deletes=self.tag.deletes,
            writer=asdict(self.tag.writer) if self.tag.writer else None,
            state=self.state,
            time=utc_now(),
            follows=newest.newest.version if newest else None,
            rows=sum(file.rows for file in change.files) - change.copied_rows,
            written_bytes=sum(file.size for file in change.files),
            removed=None if replaces_all and newest is not None else removed_rows - change.copied_rows,
            copied=change.copied_rows,
            columns_json=change.columns_json,
            partition_by=change.partition_by,
            staged=change.folder,
            added=change.files,
            set_aside=(*(file.path for file in (*whole_files, *partial_files)), *change.unlisted_paths),
        )
        if commit_list.version % LISTS_PER_FULL_LIST == 1:
            return commit_list.model_copy(update=apply_commit(newest, commit_list).full_list_fields())
        return commit_list

    def _table_id(self, change: PlannedCommit, newest: TableSnapshot | None) -> str:
        if change.base is None:
            if newest is not None:
                raise RowsRefused(
                    f"table {self._place}: expected no table; another writer created one after this slice was planned. Run again"
                )
            return uuid4().hex
        base = change.base.newest
        if newest is None or newest.newest.table != base.table or newest.newest.version < base.version:
            raise TargetError(
                f"table {self._place}: expected version {base.version} or a later one of the table that this write started from,"
                f" found {f'version {newest.newest.version}' if newest else 'none'}: it was removed, recreated or restored meanwhile"
            )
        if not isinstance(change.load, ReplaceAll) and newest.columns_json != change.base.columns_json:
            raise TargetError(
                f"table {self._place}: another dataflow changed its columns meanwhile. No data is lost: "
                "run again"
            )
        return base.table


def _listed_file(file: DataFile, folder: StagedFolder, index: int) -> ListedFile:
    staged_path = file.path.partition("/")[2]
    parent, slash, _ = staged_path.rpartition("/")
    partition: Mapping[str, str | None] = dict(file.partition)
    return ListedFile(
        path=f"{parent}{slash}{folder.final_name(index)}",
        staged=staged_path,
        size=file.size,
        rows=file.rows,
        partition=partition,
        statistics=file.statistics,
    )
