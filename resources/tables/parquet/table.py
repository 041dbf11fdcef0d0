"""A Parquet table of the lake, as the contract has it. What each method needs is in the modules beside this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from partitions.errors import RowsRefused, SourceError, TargetError
from partitions.evolution import SchemaMode
from partitions.file_statistics import Match, match_of
from partitions.loads import Load
from partitions.predicate import EVERYTHING, Predicate
from resources.connections.places import Place
from resources.sql import quoted
from resources.tables.contract.adopting import Adopted
from resources.tables.contract.commits import MOST_ROWS, TableCommit, TableHead, Tag, TaggedCommit, Version
from resources.tables.contract.maintenance import CanVacuum, Cared
from resources.tables.contract.table import FollowsUp, Table
from resources.tables.data_files.reading import files_reader
from resources.tables.parquet.columns import spark_schema, types_of
from resources.tables.parquet.commit import Commit
from resources.tables.parquet.commit_list import Snapshot
from resources.tables.parquet.extents import extents_of
from resources.tables.parquet.file_check import Look, look_at
from resources.tables.parquet.files import FileMoved
from resources.tables.parquet.head import adopted, compared, tip_of
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.rows import VersionRows
from resources.tables.parquet.vacuum import vacuum
from resources.tables.parquet.visible_files import visible_files
from resources.tables.removal import remove_files
from resources.tables.rows.replacement import OUTSIDE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

_MOST_TEXTS = 100_000_000
_LOOKS = 3
"""How often rows are looked for where another process moves their files meanwhile."""


class ParquetTable(Table, CanVacuum, FollowsUp):
    """One folder of Parquet files with lists of them; it need not exist."""

    def __init__(
        self, place: Place, partition_by: Sequence[str] = (), *, schema_mode: SchemaMode = "strict"
    ) -> None:
        """Use the table at a place, which the first write makes, partitioned as given."""
        self._place = place
        self._partition_by = tuple(partition_by)
        self._schema_mode = schema_mode
        self._log = CommitLog(place)
        self._placement = Placement.of(place)
        self._look: Look | None = None

    def taking_columns(self, mode: SchemaMode) -> ParquetTable:
        """Return the same table, whose writes change its columns as the mode says."""
        return ParquetTable(self._place, self._partition_by, schema_mode=mode)

    @property
    def place(self) -> Place:
        """Where it lies."""
        return self._place

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's lists with what was recorded of it, and once with the files that are there."""
        snapshot = self._log.snapshot()
        if snapshot is None:
            there = tuple(sorted(visible_files(self._place)))
            return TableHead(None, kept=recorded is None or recorded.version is None, foreign_files=there)
        if self._look is None:
            self._look = look_at(self._log, self._placement)
        return compared(self._log, snapshot, self._look, recorded, app_id)

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now."""
        snapshot = self._log.snapshot()
        return TableHead(None) if snapshot is None else tip_of(snapshot, app_id)

    def adopted(self, app_id: str | None = None) -> Adopted | None:
        """Return the state of the newest commit whose files, and those of all commits before it, are there."""
        return adopted(self._log, look_at(self._log, self._placement), app_id)

    @override
    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Move the newest commit's files to their places, and remove what is staged for numbers that the table holds."""
        snapshot = self._log.snapshot()
        if snapshot is None:
            return
        self._placement.finish(snapshot.newest)
        self._placement.staging.drop_leftovers(snapshot)
        if self._look is not None and self._look.stray:
            self._placement.aside.put(path for path in self._look.stray if path not in snapshot.files)

    def exists(self) -> bool:
        """Return whether there is a list: without one, Parquet files in a folder may be those of a table of another format that is being made."""
        return bool(self._log.versions())

    def has_data(self) -> bool:
        """Return whether the table holds rows or remembers a tag."""
        return self.exists()

    @override
    def counted(self, commit: TaggedCommit, before: int) -> TaggedCommit:
        """Return the commit, whose list has all counts."""
        return commit

    def count_rows(self) -> int:
        """Return the number of rows, as the lists count them."""
        return self._asked(lambda rows: rows.count()) if self.exists() else 0

    def count_bytes(self) -> int:
        """Return the bytes of the data files, as the lists have them."""
        snapshot = self._log.snapshot()
        return sum(file.size for file in snapshot.files.values()) if snapshot else 0

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        described = self.schema()
        return list(types_of(described[1])) if described else []

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON."""
        if not self.exists():
            return None
        version = self.newest_version()
        return version, self._snapshot(version).columns_json

    def identity(self) -> str | None:
        """Return the id that its first list has given."""
        return self._snapshot(self.newest_version()).newest.table if self.exists() else None

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Ask for them, without Spark; of the newest version those of the files that are there."""
        return self._asked(lambda there: there.highest(columns, rows), version, there_only=version is None)

    def texts(self, column: str) -> set[str]:
        """Return all texts of a column in the files that are there."""
        if column not in self.columns():
            return set()
        distinct = self._asked(lambda there: there.distinct([column], _MOST_TEXTS), there_only=True)
        return {row[column] for row in distinct if row[column] is not None}

    def distinct_rows(self, columns: Sequence[str], most: int = MOST_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of some columns."""
        return self._asked(lambda there: there.distinct(columns, most))

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Look for one row."""
        return self._asked(lambda there: there.holds_any(rows), version)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return what the lists say of the files."""
        return self._asked(lambda there: there.maxima(column), version)

    def newest_version(self) -> Version:
        """Return the newest version. Starts no Spark."""
        try:
            versions = self._log.versions()
        except TargetError as error:
            raise SourceError(error.message) from error
        if not versions:
            raise SourceError(
                f"table {self._place}: expected a Parquet table, found none. Load it first, or correct its name; a folder of Parquet files that a"
                " dataflow did not load is a source of type files",
                code="source_missing",
            )
        return versions[-1]

    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows of a version, of the files that may hold some that are asked for."""
        snapshot = self._snapshot(version)
        schema, types = spark_schema(snapshot.columns_json), types_of(snapshot.columns_json)
        by_folder: dict[str, list[str]] = {}
        for listed, (folder, path) in self._resolved(snapshot).items():
            if match_of(rows, extents_of(snapshot.files[listed], types)) is not Match.NONE:
                by_folder.setdefault(folder, []).append(path)
        reads = [
            files_reader(spark, schema)
            .option("basePath", base.spark_url)
            .parquet(*(base.child(path).spark_url for path in paths))
            for base, paths in (
                (self._placement.place_of(folder), paths) for folder, paths in by_folder.items()
            )
        ]
        if not reads:
            return spark.createDataFrame([], schema)
        return reduce(lambda above, below: above.unionByName(below), reads).select(*map(quoted, schema.names))

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit; their files are moved to their places by :meth:`after_append`."""
        self._commit(tag, state).write(rows, load, self._partition_by, base)

    @override
    def give_up(
        self,
        spark: SparkSession,
        tag: Tag,
        state: str,
        first_rows: Callable[[], DataFrame] | None,
    ) -> None:
        """Put a list that changes no row."""
        columns = (lambda: first_rows().schema) if first_rows else None
        self._commit(tag, state).give_up(columns, self._partition_by)

    @override
    def vacuum(self, session: Callable[[], SparkSession]) -> Cared:
        """Delete what only versions older than seven days need."""
        return vacuum(self._log, self._placement, datetime.now(UTC))

    @override
    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove its folder, and what lies beside it: files that are staged, and those that were set aside."""
        self._placement.remove()
        remove_files(self)

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a row was refused."""
        return isinstance(error, RowsRefused) and error.code == OUTSIDE

    def _commit(self, tag: Tag, state: str) -> Commit:
        lost = frozenset(self._look.missing) if self._look is not None else frozenset()
        return Commit(self._log, self._placement, tag, state, lost, self._schema_mode)

    def _snapshot(self, version: Version) -> Snapshot:
        try:
            snapshot = self._log.snapshot(int(version))
        except TargetError as error:
            raise SourceError(error.message) from error
        assert snapshot is not None
        return snapshot

    def _resolved(self, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
        """Where the files of a version lie now."""
        try:
            return self._placement.resolve(snapshot, self._log.snapshot() or snapshot)
        except TargetError as error:
            raise SourceError(error.message) from error

    def _asked(
        self,
        ask: Callable[[VersionRows], T],
        version: Version | None = None,
        *,
        there_only: bool = False,
    ) -> T:
        """Ask the rows of a version (None: the newest), again if files were moved meanwhile; of some without those that others have removed."""
        for tried in range(_LOOKS):
            snapshot = self._snapshot(self.newest_version() if version is None else version)
            if there_only and tried == _LOOKS - 1:
                missing = set(look_at(self._log, self._placement).missing)
                there = {path: file for path, file in snapshot.files.items() if path not in missing}
                snapshot = replace(snapshot, files=there)
            places = {
                path: (self._placement.place_of(folder), below)
                for path, (folder, below) in self._resolved(snapshot).items()
            }
            try:
                return ask(VersionRows(self._place, snapshot, places))
            except FileMoved as error:
                if tried == _LOOKS - 1:
                    raise SourceError(
                        f"table {self._place}: {error.message}. A commit names this file: put it back, or empty the table by `state reset --replace`"
                    ) from error
        raise AssertionError
