"""What a Parquet table holds, by its lists and its files. Only :meth:`ParquetContents.read` starts Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from partitions.errors import SourceError, TargetError
from partitions.file_statistics import Match, match_of
from partitions.predicate import EVERYTHING, Predicate
from resources.sql import quoted
from resources.tables.contract.commits import MOST_ROWS, Version
from resources.tables.contract.contents import TableContents
from resources.tables.data_files.reading import files_reader
from resources.tables.parquet.columns import spark_schema, types_of
from resources.tables.parquet.commit_list import Snapshot
from resources.tables.parquet.extents import extents_of
from resources.tables.parquet.file_check import look_at
from resources.tables.parquet.files import FileMoved
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.rows import VersionRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

_MOST_TEXTS = 100_000_000
_LOOKS = 3
"""How often rows are looked for where another process moves their files meanwhile."""


@dataclass(frozen=True)
class ParquetContents(TableContents):
    """The contents of one Parquet table; it need not exist.

    Attributes:
        log: of the table.
        placement: of its files.
    """

    log: CommitLog
    placement: Placement

    def has_data(self) -> bool:
        """Return whether the table holds rows or remembers a tag."""
        return bool(self.log.versions())

    def count_rows(self) -> int:
        """Return the number of rows, as the lists count them."""
        return self._asked(lambda rows: rows.count()) if self.log.versions() else 0

    def count_bytes(self) -> int:
        """Return the bytes of the data files, as the lists have them."""
        snapshot = self.log.snapshot()
        return sum(file.size for file in snapshot.files.values()) if snapshot else 0

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        described = self.schema()
        return list(types_of(described[1])) if described else []

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON."""
        versions = self.log.versions()
        if not versions:
            return None
        version = versions[-1]
        return version, self._snapshot(version).columns_json

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Ask for them, without Spark; of the newest version those of the files that are there."""
        return self._asked(
            lambda extents: extents.highest(columns, rows), version, there_only=version is None
        )

    def texts(self, column: str) -> set[str]:
        """Return all texts of a column in the files that are there."""
        if column not in self.columns():
            return set()
        distinct = self._asked(lambda extents: extents.distinct([column], _MOST_TEXTS), there_only=True)
        return {row[column] for row in distinct if row[column] is not None}

    def distinct_rows(self, columns: Sequence[str], most: int = MOST_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of some columns."""
        return self._asked(lambda extents: extents.distinct(columns, most))

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Look for one row."""
        return self._asked(lambda extents: extents.holds_any(rows), version)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return what the lists say of the files."""
        return self._asked(lambda extents: extents.maxima(column), version)

    def newest_version(self) -> Version:
        """Return the newest version. Starts no Spark."""
        try:
            versions = self.log.versions()
        except TargetError as error:
            raise SourceError(error.message) from error
        if not versions:
            raise SourceError(
                f"table {self.log.place}: expected a Parquet table, found none. Load it first, or correct its name; a folder of Parquet files that a"
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
                (self.placement.place_of(folder), paths) for folder, paths in by_folder.items()
            )
        ]
        if not reads:
            return spark.createDataFrame([], schema)
        return reduce(lambda above, below: above.unionByName(below), reads).select(*map(quoted, schema.names))

    def _snapshot(self, version: Version) -> Snapshot:
        try:
            snapshot = self.log.snapshot(int(version))
        except TargetError as error:
            raise SourceError(error.message) from error
        assert snapshot is not None
        return snapshot

    def _resolved(self, snapshot: Snapshot) -> dict[str, tuple[str, str]]:
        """Where the files of a version lie now."""
        try:
            return self.placement.resolve(snapshot, self.log.snapshot() or snapshot)
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
                missing = set(look_at(self.log, self.placement).missing)
                files = {path: file for path, file in snapshot.files.items() if path not in missing}
                snapshot = replace(snapshot, files=files)
            places = {
                path: (self.placement.place_of(folder), below)
                for path, (folder, below) in self._resolved(snapshot).items()
            }
            try:
                return ask(VersionRows(self.log.place, snapshot, places))
            except FileMoved as error:
                if tried == _LOOKS - 1:
                    raise SourceError(
                        f"table {self.log.place}: {error.message}. A commit names this file: put it back, or empty the table by `state reset --replace`"
                    ) from error
        raise AssertionError
