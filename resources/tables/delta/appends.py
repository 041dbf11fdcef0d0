"""The files that each version of a Delta table appends, from its log; and their rows (docs/streams.md).

Compaction, which changes no row, appends nothing. A version that removes or changes rows is no append.
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
from resources.tables.delta.file_reads import direct_rows
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.rows import source_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "_strandline_file"


@dataclass(frozen=True)
class DeltaAppends(TableAppends):
    """The appends of one Delta table.

    Attributes:
        log: of the table.
    """

    log: DeltaLog

    def since(self, mark: ReadPosition | None, until: int | None = None) -> AppendedVersions:
        """Return what each version appends. Starts no Spark."""
        log = self.log
        table = source_table(log)
        read_version = mark.version if mark is not None else None
        # the version that was read last is looked at once more, if the log still has it
        versions = log.versions(None if read_version is None else read_version - 1)
        if mark is not None and versions[:1] == [read_version]:
            _check_mark(log, mark)
            versions = versions[1:]
        appended = [_version(log, version) for version in versions if until is None or version <= until]
        if appended and read_version is None and versions[0] > 0:
            appended[0] = _snapshot(log, versions[0])
        elif appended and read_version is not None and versions[0] != read_version + 1:
            raise NeedsDecision(
                f"table {log.place}: expected its log from version {read_version + 1} on, found it from version {versions[0]} on: the versions between were"
                " cleaned before they were read",
                code="versions_gone",
            )
        return AppendedVersions(str(table.metadata().id), table.version(), tuple(appended))

    def version_of(self, mark: ReadPosition) -> Version:
        """Return its number."""
        return mark.version

    def position_of(self, version: Version) -> ReadPosition:
        """Return its number; of its id a version says nothing."""
        return ReadPosition(int(version))

    def rows(self, spark: SparkSession, appended: Sequence[VersionAppends]) -> DataFrame:
        """Return the rows of these versions, from their files."""
        from pyspark.sql import functions as F

        log = self.log
        parts = [part for part in appended if part.files]
        if not parts:
            newest = spark.read.format("delta").load(log.place.spark_url)
            return newest.limit(0).withColumn(VERSION, _number(0))
        values_by_file = {file.path: file.values for part in parts for file in part.listed_files}
        read = direct_rows(log, spark, parts[-1].version, values_by_file, _FILE)
        if read is None:
            frames = [_through_delta(log, spark, part) for part in parts]
            return reduce(lambda above, below: above.unionByName(below, allowMissingColumns=True), frames)
        if len(parts) == 1:
            return read.withColumn(VERSION, _number(parts[0].version)).drop(_FILE)
        file_versions = [(file_name(file.path), part.version) for part in parts for file in part.listed_files]
        versions = spark.createDataFrame(file_versions, f"{_FILE} string, {VERSION} long")
        return read.join(F.broadcast(versions), _FILE).drop(_FILE)


def _check_mark(log: DeltaLog, since: ReadPosition) -> None:
    found = log.read(since.version).id
    if since.id not in (None, found):
        raise NeedsDecision(
            f"table {log.place}: expected version {since.version} as it was read, commit {since.id}; found commit {found}: the table was made"
            " anew, or an older copy of it was put in its place, and it has grown since",
            code="source_replaced",
        )


def _through_delta(log: DeltaLog, spark: SparkSession, part: VersionAppends) -> DataFrame:
    from pyspark.sql import functions as F

    names = [file_name(file.path) for file in part.listed_files]
    read = spark.read.format("delta").option("versionAsOf", str(part.version)).load(log.place.spark_url)
    return read.where(F.col("_metadata.file_name").isin(names)).withColumn(VERSION, _number(part.version))


def _number(version: int) -> Any:
    from pyspark.sql import functions as F

    return F.lit(version).cast("long")


def _version(log: DeltaLog, version: int) -> VersionAppends:
    added: list[AppendedFile] = []
    changes: str | None = None
    commit, actions = log.read_with(version, b'{"add"', b'{"remove"')
    for action in actions:
        if (add := action.get("add")) is not None and add.get("dataChange", True):
            added.append(_file(add))
        elif (removed := action.get("remove")) is not None and removed.get("dataChange", True):
            changes = f"version {version} removes or changes rows"
    return _appended(commit.id, version, added, changes)


def _snapshot(log: DeltaLog, version: int) -> VersionAppends:
    """All files of a version, the oldest that the log still tells."""
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
    return _appended(log.read(version).id, version, files, holds_all_files=True)


def _appended(
    id_: str, version: int, files: Sequence[AppendedFile], changes: str | None = None, *, whole: bool = False
) -> VersionAppends:
    size = sum(file.bytes for file in files)
    return VersionAppends(version, len(files), size, id_, changes, whole, tuple(files))


def _file(add: Mapping[str, Any]) -> AppendedFile:
    return AppendedFile(add["path"], int(add.get("size") or 0), add.get("partitionValues") or {})
