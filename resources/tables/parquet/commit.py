"""The commit of one number of a Parquet table: Spark writes the files where no reader looks, then the list of them is put (docs/reference/parquet.md)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import ProviderError, RowsRefused, SourceError, TargetError
from partitions.evolution import SchemaMode
from partitions.file_statistics import Match, match_of
from partitions.loads import Append, Load, Replace, ReplaceAll
from resources.connections.places import Place
from resources.tables.contract.commits import Tag, Version
from resources.tables.data_files.reading import read_files
from resources.tables.data_files.written import DataFile, collect_data_files, lacks_committer, write_files
from resources.tables.parquet.columns import (
    check_layout,
    fitted,
    named_as,
    schema_of,
    spark_schema,
    taken,
    types_of,
)
from resources.tables.parquet.commit_list import (
    LISTS_BETWEEN,
    After,
    CommitList,
    ListedFile,
    Snapshot,
    after,
)
from resources.tables.parquet.extents import extents_of
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.plain_reader_files import has_visible_files, visible_files
from resources.tables.parquet.staging import StagedFolder
from resources.tables.row_columns import with_columns_of
from resources.tables.rows.replacement import Replacement
from resources.watermarks.entry import utc_now

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_TRIES = 100
"""Numbers that other writers may take first, one after another, before a run gives way to them."""


@dataclass(frozen=True)
class Change:
    """What a commit does.

    Attributes:
        load: what becomes of the rows that are there.
        begun: the table as it was then; None: there was none, and the commit makes it.
        columns_json: the columns of a table that is made, or that takes others; None: it keeps its own.
        partition_by: its columns of partitions.
        folder: where its files are staged; empty if it adds none.
        files: that are added.
        copied: paths of files whose rows that stay are among those that are added.
        copied_rows: how many these are.
        others: paths of files in the table's folder that no list names, and that go with all rows.
    """

    load: Load
    begun: Snapshot | None
    columns_json: str | None = None
    partition_by: tuple[str, ...] = ()
    folder: str = ""
    files: tuple[ListedFile, ...] = ()
    copied: frozenset[str] = frozenset()
    copied_rows: int = 0
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Commit:
    """The commit of one number; see :meth:`resources.tables.contract.table.Table.write`.

    Attributes:
        log: of the table.
        placement: of its files.
        tag: of the commit.
        state: sentinel JSON text of the watermark after it.
        lost: paths of files that are gone: a commit that loads takes them out of the table.
        schema_mode: what becomes of the table's columns if rows come with others.
    """

    log: CommitLog
    placement: Placement
    tag: Tag
    state: str
    lost: frozenset[str] = frozenset()
    schema_mode: SchemaMode = "strict"

    @property
    def _place(self) -> Place:
        return self.log.place

    def write(self, rows: DataFrame, load: Load, partition_by: Sequence[str], base: Version | None) -> None:
        """Load rows.

        Raises:
            RowsRefused, TargetError: as the contract says.
        """
        begun = self.log.snapshot()
        if self._is_taken(begun):
            return
        self._check_base(begun, load, base)
        made = begun is None or isinstance(load, ReplaceAll)
        if made:
            layout = named_as(partition_by, rows.columns)
            columns_json = schema_of(rows.schema, self._place)
            check_layout(rows.schema, layout, self._place)
        else:
            assert begun is not None
            self.placement.finish(begun.newest)
            layout = begun.partition_by
            rows, columns_json = self._fitted(rows, begun)
        whole, part = self._removals(begun, load)
        staging, folder = self.placement.staging, StagedFolder.of(self.tag)
        try:
            replacement = None
            if isinstance(load, Replace) and begun is not None:
                replacement = self._replacement(rows, load, part)
            self._write_files(replacement.rows if replacement else rows, folder, layout)
            written = self._written(folder, spark_schema(columns_json), rows, layout)
            copied_rows = replacement.count_copied(staging.place_of(folder), written) if replacement else 0
            files = tuple(_listed(file, folder, index) for index, file in enumerate(written))
        except Exception:
            staging.drop(folder.name)
            raise
        others = tuple(visible_files(self._place)) if isinstance(load, ReplaceAll) else ()
        if not files:
            staging.drop(folder.name)
            if whole or others:
                folder = StagedFolder.of(self.tag)
                staging.begin(folder)
        names_columns = begun is None or made or columns_json != begun.columns_json
        self.land(
            Change(
                load,
                begun,
                columns_json if names_columns else None,
                layout if names_columns else (),
                folder.name if files or whole or others else "",
                files,
                frozenset(file.path for file in part),
                copied_rows,
                tuple(path for path in others if begun is None or path not in begun.files),
            )
        )

    def give_up(self, columns: Callable[[], StructType] | None, partition_by: Sequence[str]) -> None:
        """Take the number by a commit that changes no row, and that makes a table with these columns if there is none."""
        begun = self.log.snapshot()
        if self._is_taken(begun):
            return
        if begun is not None:
            self.land(Change(Append(), begun))
            return
        if columns is None:
            raise TargetError(f"table {self._place}: expected a table, found none: it was removed meanwhile")
        self._check_base(None, Append(), None)
        rows = columns()
        layout = named_as(partition_by, rows.names)
        check_layout(rows, layout, self._place)
        self.land(Change(Append(), None, schema_of(rows, self._place), layout))

    def land(self, change: Change) -> None:
        """Put the list as the next number after the newest; if another writer takes that, look again.

        Raises:
            RowsRefused, TargetError: as :meth:`write`.
        """
        for _ in range(_TRIES):
            now = self.log.snapshot()
            if self._is_taken(now):
                self._drop(change)
                return
            try:
                made = self._list(change, now)
                if now is not None:  # before the next list there must be nothing left to move
                    self.placement.finish(now.newest)
            except (RowsRefused, TargetError):
                self._drop(change)
                raise
            try:
                if self.log.put(made):
                    return
            except ProviderError as error:
                # The list may be there, or come later: its files stay.
                if self._has_landed(change):
                    return
                raise TargetError(
                    f"table {self._place}: its commit cannot be written: {error.message}"
                ) from error
            if self._has_landed(change):  # an answer was lost, and the request was made again
                return
            time.sleep(random.uniform(0, 0.1))  # noqa: S311 - so that two writers do not meet again
        self._drop(change)
        raise TargetError(
            f"table {self._place}: other writers were first {_TRIES} times in a row. Nothing is lost: run again"
        )

    def _is_taken(self, snapshot: Snapshot | None) -> bool:
        return snapshot is not None and snapshot.tags.get(self.tag.app_id, 0) >= self.tag.number

    def _has_landed(self, change: Change) -> bool:
        begun = change.begun.newest.version if change.begun else 0
        return any(
            commit.owner == self.tag.owner and commit.staged == change.folder
            for commit in self.log.read_all(self.log.versions(begun))
        )

    def _drop(self, change: Change) -> None:
        if change.folder:
            self.placement.staging.drop(change.folder)

    def _check_base(self, begun: Snapshot | None, load: Load, base: Version | None) -> None:
        """Raise if the table is not the one that the slice was planned on.

        Raises:
            RowsRefused: there is a table, or there are files, and nobody has decided about them.
            TargetError: the table was removed meanwhile.
        """
        if begun is not None:
            if base is None:
                raise RowsRefused(
                    f"table {self._place}: expected no table, as when the slice was planned; one does already exist: it was made since"
                )
            return
        if base is not None:
            raise TargetError(
                f"table {self._place}: expected version {base} or a later one, found none: it was removed meanwhile"
            )
        if not isinstance(load, ReplaceAll) and has_visible_files(self._place):
            raise RowsRefused(
                f"table {self._place}: Parquet files that Strandline did not write already exist there, and readers would take them for rows of"
                " this table. Move them away, or use another target.table"
            )

    def _fitted(self, rows: DataFrame, begun: Snapshot) -> tuple[DataFrame, str]:
        """Return rows with the columns of the table, and these columns, as the schema mode changes them."""
        if self.schema_mode not in ("merge", "rescue"):
            return fitted(rows, begun.columns_json, self._place), begun.columns_json
        columns_json = taken(
            rows.schema, begun.columns_json, begun.partition_by, self.schema_mode, self._place
        )
        return with_columns_of(rows, spark_schema(columns_json)), columns_json

    def _write_files(self, rows: DataFrame, folder: StagedFolder, layout: Sequence[str]) -> None:
        staged = self.placement.staging.place_of(folder)
        try:
            write_files(rows, staged, layout)
        except Exception as error:
            if not lacks_committer(error):
                raise
            # Nobody sees a staged file before the list is put, so that Spark's own committer is as good, if slower.
            write_files(rows, staged, layout, copies=True)

    def _replacement(self, rows: DataFrame, load: Replace, part: Sequence[ListedFile]) -> Replacement:
        there = read_files(rows, self._place, [file.path for file in part]) if part else None
        return Replacement(rows, load, there, sum(file.rows for file in part))

    def _written(
        self, folder: StagedFolder, schema: StructType, rows: DataFrame, layout: Sequence[str]
    ) -> list[DataFile]:
        try:
            return collect_data_files(self.placement.staging.place, folder.name, schema, rows, layout)
        except ValueError as error:
            raise RowsRefused(
                f"table {self._place}: a column of partition_by has a value that no folder can be named by: {error}"
            ) from error
        except SourceError as error:
            raise TargetError(
                f"table {self._place}: what was written cannot be read: {error.message}"
            ) from error

    def _removals(
        self, table: Snapshot | None, load: Load
    ) -> tuple[tuple[ListedFile, ...], tuple[ListedFile, ...]]:
        """The files that a load takes out as a whole, those that are gone among them, and those of which it may delete some rows."""
        if table is None:
            return (), ()
        there = {path: file for path, file in table.files.items() if path not in self.lost}
        gone = tuple(file for path, file in table.files.items() if path in self.lost)
        whole, part = _removals(replace(table, files=there), load)
        return (*whole, *gone), part

    def _list(self, change: Change, now: Snapshot | None) -> CommitList:
        """The list after the table as it is now.

        Raises:
            RowsRefused, TargetError: it is not the table any more that the commit was begun on.
        """
        table = self._table_id(change, now)
        whole, part = ((), ()) if self.tag.gives_up else self._removals(now, change.load)
        if frozenset(file.path for file in part) != change.copied:
            raise TargetError(
                f"table {self._place}: another dataflow has changed files that this write copies rows of. Nothing is lost: run again"
            )
        gone = sum(file.rows for file in (*whole, *part))
        everything_goes = isinstance(change.load, ReplaceAll)
        made = CommitList(
            version=now.newest.version + 1 if now else 1,
            table=table,
            owner=self.tag.owner,
            app_id=self.tag.app_id,
            number=self.tag.number,
            gives_up=self.tag.gives_up,
            after=After(version=self.tag.after.version, id=self.tag.after.id) if self.tag.after else None,
            rewound=self.tag.rewound,
            state=self.state,
            time=utc_now(),
            follows=now.newest.version if now else None,
            rows=sum(file.rows for file in change.files) - change.copied_rows,
            written_bytes=sum(file.size for file in change.files),
            removed=None if everything_goes and now is not None else gone - change.copied_rows,
            copied=change.copied_rows,
            columns_json=change.columns_json,
            partition_by=change.partition_by,
            staged=change.folder,
            added=change.files,
            set_aside=(*(file.path for file in (*whole, *part)), *change.others),
        )
        if made.version % LISTS_BETWEEN == 1:
            return made.model_copy(update=after(now, made).whole())
        return made

    def _table_id(self, change: Change, now: Snapshot | None) -> str:
        if change.begun is None:
            if now is not None:
                raise RowsRefused(
                    f"table {self._place}: expected no table, as when the slice was planned; one does already exist: it was made since"
                )
            return uuid4().hex
        begun = change.begun.newest
        if now is None or now.newest.table != begun.table or now.newest.version < begun.version:
            raise TargetError(
                f"table {self._place}: expected version {begun.version} or a later one of the table that this write was begun on,"
                f" found {f'version {now.newest.version}' if now else 'none'}: it was removed, made again or restored meanwhile"
            )
        if not isinstance(change.load, ReplaceAll) and now.columns_json != change.begun.columns_json:
            raise TargetError(
                f"table {self._place}: another dataflow has changed its columns meanwhile. Nothing is lost: run again"
            )
        return begun.table


def _removals(table: Snapshot, load: Load) -> tuple[tuple[ListedFile, ...], tuple[ListedFile, ...]]:
    """The files of which a load deletes all rows, and those of which it may delete some."""
    if isinstance(load, Append):
        return (), ()
    if isinstance(load, ReplaceAll):
        return tuple(table.files.values()), ()
    if not isinstance(load, Replace):
        raise RowsRefused("a Parquet table takes no load by keys. Use format: delta")
    types = types_of(table.columns_json)
    matches = [(file, match_of(load.where, extents_of(file, types))) for file in table.files.values()]
    return (
        tuple(file for file, match in matches if match is Match.ALL),
        tuple(file for file, match in matches if match is Match.UNKNOWN),
    )


def _listed(file: DataFile, folder: StagedFolder, index: int) -> ListedFile:
    staged = file.path.partition("/")[2]
    parent, slash, _ = staged.rpartition("/")
    partition: Mapping[str, str | None] = dict(file.partition)
    return ListedFile(
        path=f"{parent}{slash}{folder.final_name(index)}",
        staged=staged,
        size=file.size,
        rows=file.rows,
        partition=partition,
        statistics=file.statistics,
    )
