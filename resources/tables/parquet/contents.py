"""The contents of a Parquet table, from its lists and files.

Only :meth:`ParquetContents.read` starts Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from partitions.errors import SourceError, TargetError
from partitions.file_statistics import FileMatch, match_statistics
from partitions.predicate import EVERYTHING, Predicate
from resources.sql import quoted
from resources.tables.contract.commits import MAX_ROWS, Version
from resources.tables.contract.contents import TableContents
from resources.tables.data_files.reading import files_reader
from resources.tables.parquet.columns import column_types, spark_schema
from resources.tables.parquet.commit_list import TableSnapshot
from resources.tables.parquet.extents import extents_of
from resources.tables.parquet.file_check import check_files
from resources.tables.parquet.files import FileMoved
from resources.tables.parquet.log import CommitLog
from resources.tables.parquet.placement import Placement
from resources.tables.parquet.rows import VersionRows
from resources.tables.text_counts import no_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

_MAX_TEXTS = 100_000_000
_ATTEMPTS = 3
"""Number of attempts while another process moves files."""


@dataclass(frozen=True)
class ParquetContents(TableContents):
    """The contents of one Parquet table; it need not exist.

    Attributes:
        log: log of the table.
        placement: placement of its files.
    """

    log: CommitLog
    placement: Placement

    def has_data(self) -> bool:
        """Return whether the table holds rows or a tag."""
        return bool(self.log.versions())

    def count_rows(self, rows: Predicate = EVERYTHING) -> int:
        """Return the number of rows, from the lists if there is no condition."""
        return self._query(lambda version_rows: version_rows.count(rows)) if self.log.versions() else 0

    def rows_in_log(self) -> int:
        """Return the rows, from the lists."""
        return self.count_rows()

    def count_bytes(self) -> int:
        """Return the bytes of the data files, from the lists."""
        snapshot = self.log.snapshot()
        return sum(file.size for file in snapshot.files.values()) if snapshot else 0

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        version_and_columns = self.schema()
        return list(column_types(version_and_columns[1])) if version_and_columns else []

    def partition_columns(self) -> tuple[str, ...]:
        """Return the partition columns of the newest list."""
        versions = self.log.versions()
        return tuple(self.snapshot(versions[-1]).partition_by) if versions else ()

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version and its columns as Spark's JSON."""
        versions = self.log.versions()
        if not versions:
            return None
        version = versions[-1]
        return version, self.snapshot(version).columns_json

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Return the highest value of each column, without Spark.

        Missing files of the newest version are skipped.
        """
        return self._query(
            lambda version_rows: version_rows.highest(columns, rows), version, existing_only=version is None
        )

    def distinct_texts(self, column: str) -> set[str]:
        """Return the distinct texts of a column in the files that exist."""
        if column not in self.columns():
            return set()
        distinct = self._query(
            lambda version_rows: version_rows.distinct([column], _MAX_TEXTS), existing_only=True
        )
        return {row[column] for row in distinct if row[column] is not None}

    def text_counts(self, column: str, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return each text of a column with its number of rows in the files that exist."""
        if column not in self.columns():
            return no_texts()
        return self._query(lambda version_rows: version_rows.text_counts(column, rows), existing_only=True)

    def distinct_rows(self, columns: Sequence[str], max_rows: int = MAX_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of columns."""
        return self._query(lambda version_rows: version_rows.distinct(columns, max_rows))

    def first_rows(self, limit: int, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return some rows of the newest version."""
        return self._query(lambda version_rows: version_rows.first(limit, rows))

    def arrow_rows(
        self, version: Version, rows: Predicate = EVERYTHING, columns: Sequence[str] | None = None
    ) -> pa.RecordBatchReader:
        """Return exactly the rows of a version that meet a condition; all are read at once."""
        return self._query(lambda version_rows: version_rows.select(rows, columns), version).to_reader()

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Return whether a version has a row that meets a condition."""
        return self._query(lambda version_rows: version_rows.holds_any(rows), version)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return each file's highest value from the lists."""
        return self._query(lambda version_rows: version_rows.file_maxima(column), version)

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
        """Return the rows of a version from the files that may hold requested rows."""
        snapshot = self.snapshot(version)
        types = column_types(snapshot.columns_json)
        paths = [
            path
            for path, file in snapshot.files.items()
            if match_statistics(rows, extents_of(file, types)) is not FileMatch.NONE
        ]
        return read_paths(self, spark, snapshot, paths, snapshot.columns_json)

    def snapshot(self, version: Version) -> TableSnapshot:
        """Return the table after a version; raise SourceError if a list is missing."""
        try:
            snapshot = self.log.snapshot(int(version))
        except TargetError as error:
            raise SourceError(error.message) from error
        assert snapshot is not None
        return snapshot

    def locate_files(self, snapshot: TableSnapshot) -> dict[str, tuple[str, str]]:
        """Return where the files of a version lie now."""
        try:
            return self.placement.resolve(snapshot, self.log.snapshot() or snapshot)
        except TargetError as error:
            raise SourceError(error.message) from error

    def _query(
        self,
        query: Callable[[VersionRows], T],
        version: Version | None = None,
        *,
        existing_only: bool = False,
    ) -> T:
        """Query the rows of a version (None: the newest); repeat if another process moved files meanwhile.

        With ``existing_only`` the last attempt skips files that others removed.
        """
        for attempt in range(_ATTEMPTS):
            snapshot = self.snapshot(self.newest_version() if version is None else version)
            if existing_only and attempt == _ATTEMPTS - 1:
                missing = set(check_files(self.log, self.placement).missing_paths)
                files = {path: file for path, file in snapshot.files.items() if path not in missing}
                snapshot = replace(snapshot, files=files)
            places = {
                path: (self.placement.place_of(folder), path_in_folder)
                for path, (folder, path_in_folder) in self.locate_files(snapshot).items()
            }
            try:
                return query(VersionRows(self.log.place, snapshot, places))
            except FileMoved as error:
                if attempt == _ATTEMPTS - 1:
                    raise SourceError(
                        f"table {self.log.place}: {error.message}. A commit names this file. Restore it, or reload the table: `state reset --replace`"
                    ) from error
        raise AssertionError


def read_paths(
    contents: ParquetContents,
    spark: SparkSession,
    snapshot: TableSnapshot,
    paths: Collection[str],
    columns_json: str,
) -> DataFrame:
    """Return all rows of some files of a version, with the given columns."""
    schema, chosen_paths = spark_schema(columns_json), set(paths)
    by_folder: dict[str, list[str]] = {}
    for listed_path, (folder, path) in contents.locate_files(snapshot).items():
        if listed_path in chosen_paths:
            by_folder.setdefault(folder, []).append(path)
    reads = [
        files_reader(spark, schema)
        .option("basePath", base.spark_url)
        .parquet(*(base.child(path).spark_url for path in paths))
        for base, paths in (
            (contents.placement.place_of(folder), paths) for folder, paths in by_folder.items()
        )
    ]
    if not reads:
        return spark.createDataFrame([], schema)
    return reduce(lambda above, below: above.unionByName(below), reads).select(*map(quoted, schema.names))
