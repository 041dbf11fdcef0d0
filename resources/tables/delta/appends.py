"""The files that each version of a Delta table appends, and their rows (docs/reference/streams.md).

Compaction changes no row and appends nothing. A version that removes or changes rows is no append.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import NeedsDecision
from resources.tables.contract.appends import (
    VERSION,
    AppendedFile,
    AppendedVersions,
    ReadPosition,
    TableAppends,
    VersionAppends,
)
from resources.tables.contract.commits import Version
from resources.tables.delta.commit import file_name
from resources.tables.delta.file_reads import read_named_files
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.rows import source_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "_strandline_file"


@dataclass(frozen=True)
class DeltaAppends(TableAppends):
    """The appends of one Delta table.

    Attributes:
        log: log of the table.
    """

    log: DeltaLog

    def since(self, position: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return the appends of each version in a range. Starts no Spark."""
        log = self.log
        table = source_table(log)
        read_version = position.version if position is not None else None
        # start at the version that was read last, to check that it is still the same
        versions = log.versions(None if read_version is None else read_version - 1)
        if position is not None and versions[:1] == [read_version]:
            _check_position(log, position)
            versions = versions[1:]
        appended = [
            _version_appends(log, version) for version in versions if until is None or version <= until
        ]
        if appended and read_version is None and versions[0] > 0:
            appended[0] = _all_files_of(log, versions[0])
        elif appended and read_version is not None and versions[0] != read_version + 1:
            raise NeedsDecision(
                f"table {log.place}: expected a log that starts at version {read_version + 1} or before, found one that starts at version {versions[0]}: the versions between were"
                " cleaned before they were read",
                code="versions_gone",
            )
        return AppendedVersions(str(table.metadata().id), table.version(), tuple(appended))

    def version_of(self, position: ReadPosition) -> Version:
        """Return the version number of a position."""
        return position.version

    def position_of(self, version: Version) -> ReadPosition:
        """Return the position after a version, without an id."""
        return ReadPosition(int(version))

    def rows(self, spark: SparkSession, appended: Sequence[VersionAppends]) -> DataFrame:
        """Return the rows that versions append, from their files if Spark can read these without Delta."""
        from pyspark.sql import functions as F

        log = self.log
        versions_with_files = [part for part in appended if part.files]
        if not versions_with_files:
            newest = spark.read.format("delta").load(log.place.spark_url)
            return newest.limit(0).withColumn(VERSION, _long_literal(0))
        values_by_file = {
            file.path: file.values for part in versions_with_files for file in part.listed_files
        }
        file_rows = read_named_files(log, spark, versions_with_files[-1].version, values_by_file, _FILE)
        if file_rows is None:
            frames = [_read_through_delta(log, spark, part) for part in versions_with_files]
            return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), frames)
        if len(versions_with_files) == 1:
            return file_rows.withColumn(VERSION, _long_literal(versions_with_files[0].version)).drop(_FILE)
        file_versions = [
            (file_name(file.path), part.version) for part in versions_with_files for file in part.listed_files
        ]
        version_rows = spark.createDataFrame(file_versions, f"{_FILE} string, {VERSION} long")
        return file_rows.join(F.broadcast(version_rows), _FILE).drop(_FILE)


def _check_position(log: DeltaLog, position: ReadPosition) -> None:
    commit_id = log.read(position.version).id
    if position.id not in (None, commit_id):
        raise NeedsDecision(
            f"table {log.place}: expected version {position.version} as it was read, commit {position.id}; found commit {commit_id}: the table was"
            " recreated, or an older copy replaced it and has grown since",
            code="source_replaced",
        )


def _read_through_delta(log: DeltaLog, spark: SparkSession, part: VersionAppends) -> DataFrame:
    from pyspark.sql import functions as F

    names = [file_name(file.path) for file in part.listed_files]
    read = spark.read.format("delta").option("versionAsOf", str(part.version)).load(log.place.spark_url)
    return read.where(F.col("_metadata.file_name").isin(names)).withColumn(
        VERSION, _long_literal(part.version)
    )


def _long_literal(version: int) -> Any:
    from pyspark.sql import functions as F

    return F.lit(version).cast("long")


def _version_appends(log: DeltaLog, version: int) -> VersionAppends:
    added_files: list[AppendedFile] = []
    changes: str | None = None
    commit, actions = log.read_with(version, b'{"add"', b'{"remove"')
    if commit.strandline_metadata.get("deletes"):  # what it adds are copies of rows that stay
        return _describe_appends(commit.id, version, ())
    for action in actions:
        if (add := action.get("add")) is not None and add.get("dataChange", True):
            added_files.append(_appended_file(add))
        elif (removal := action.get("remove")) is not None and removal.get("dataChange", True):
            changes = f"version {version} removes or changes rows"
    return _describe_appends(commit.id, version, added_files, changes)


def _all_files_of(log: DeltaLog, version: int) -> VersionAppends:
    """Return all files of the oldest version in the log as appends of that version."""
    import pyarrow as pa

    table = log.table(version)
    actions: Any = pa.table(table.get_add_actions()) if table is not None else None
    rows = actions.to_pylist() if actions is not None else []
    files = [
        AppendedFile(
            row["path"],
            row["size_bytes"],
            {
                name: None if value is None else str(value)
                for name, value in (row.get("partition") or row.get("partition_values") or {}).items()
            },
        )
        for row in rows
    ]
    return _describe_appends(log.read(version).id, version, files, holds_all_files=True)


def _describe_appends(
    id_: str,
    version: int,
    files: Sequence[AppendedFile],
    changes: str | None = None,
    *,
    holds_all_files: bool = False,
) -> VersionAppends:
    size = sum(file.bytes for file in files)
    return VersionAppends(version, len(files), size, id_, changes, holds_all_files, tuple(files))


def _appended_file(add: Mapping[str, Any]) -> AppendedFile:
    return AppendedFile(add["path"], int(add.get("size") or 0), add.get("partitionValues") or {})
