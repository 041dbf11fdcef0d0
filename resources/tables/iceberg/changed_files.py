"""Read the rows of files that commits of an Iceberg table add, remove, or whose deletes they change."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from resources.connections.places import Place
from resources.tables.contract.commit_log import VERSION, LoggedCommit
from resources.tables.contract.scratch import ScratchFolder
from resources.tables.iceberg.file_reads import file_name, read_plain_files
from resources.tables.iceberg.file_sets import EQUALITY, FileSets, LiveFile
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.staged_metadata import read_staged
from resources.tables.rows.net_rows import SIGN, tagged_columns, with_known_columns, with_tags

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_FILE = "_strandline_file"


class IcebergFileRead(NamedTuple):
    """A file whose rows came (sign 1) or went (sign -1) with a version."""

    version: int
    sign: int
    file: LiveFile


def changed_files(
    sets: FileSets, commits: Sequence[LoggedCommit], *, inserts_only: bool
) -> list[IcebergFileRead]:
    """Return the files to read for the rows that commits change.

    Args:
        sets: reader of the table's files.
        commits: consecutive commits.
        inserts_only: whether commits that may change or remove rows are left out.

    Raises:
        NeedsDecision: code ``versions_gone``: a snapshot was expired.
    """
    reads: list[IcebergFileRead] = []
    for commit in commits:
        if not commit.files or (inserts_only and commit.changes):
            continue
        before = None if commit.before is None or commit.holds_all_files else int(commit.before.id or 0)
        added = _added_files(sets, commit, before)
        went, came = sets.difference(before, int(commit.id)) if added is None else ([], added)
        reads += [IcebergFileRead(commit.version, -1, file) for file in went]
        reads += [IcebergFileRead(commit.version, 1, file) for file in came]
    return reads


def _added_files(sets: FileSets, commit: LoggedCommit, before: int | None) -> list[LiveFile] | None:
    """Return the files of a commit that appends, if the snapshot before it is expired; else None.

    Their sequence number, which the catalog gave, is the snapshot's own. None if their number differs from
    that of the snapshot's summary.
    """
    if before is None or before in sets.metadata.snapshots or commit.kind != "appends":
        return None
    files = [file for file in sets.files(int(commit.id)) if file.sequence == commit.version]
    return files if len(files) == commit.files else None


def live_rows(file: LiveFile) -> int | None:
    """Return the number of rows of a file that are not deleted; None if only a scan can count them."""
    if not file.deletes:
        return int(file.file["record_count"])
    delete = file.deletes[0].file
    # the rows that several delete files name may be the same ones
    is_exact = len(file.deletes) == 1 and delete["content"] != EQUALITY and delete.get("referenced_data_file")
    return int(file.file["record_count"]) - int(delete["record_count"]) if is_exact else None


def columns_of(metadata: Metadata, snapshot: int, hidden: Collection[str] = ()) -> StructType:
    """Return the columns of a snapshot without some."""
    from pyspark.sql.types import StructType

    columns = StructType.fromJson(spark_schema(metadata.schema_of(snapshot)))
    return StructType([field for field in columns.fields if field.name not in hidden])


def read_rows(
    spark: SparkSession,
    place: Place,
    sets: FileSets,
    snapshot: int,
    reads: Sequence[IcebergFileRead],
    scratch: ScratchFolder,
) -> DataFrame:
    """Return the rows of files with ``VERSION`` and ``SIGN``, in the columns of a snapshot."""
    frames = []
    for group in _readable_groups(reads):
        files = [read.file for read in group]
        rows = read_plain_files(spark, place, sets.metadata, snapshot, files, _FILE)
        names = [file_name(file) if rows is not None else file.path for file in files]
        if rows is None:
            rows = read_staged(spark, sets, snapshot, files, _FILE, scratch)
        tags = [(name, read.version, read.sign) for name, read in zip(names, group, strict=True)]
        frames.append(with_tags(rows, _FILE, tags))
    columns = columns_of(sets.metadata, snapshot)
    if not frames:
        return spark.createDataFrame([], tagged_columns(columns, VERSION, SIGN))
    rows = reduce(lambda above, below: above.unionAll(below), frames)
    return with_known_columns(rows, columns, VERSION, SIGN)


def _readable_groups(reads: Sequence[IcebergFileRead]) -> Iterator[list[IcebergFileRead]]:
    """Group files that one read can tell apart.

    Files without deletes are read together, each once. Files with deletes are read by version, before it
    and after it, so that no delete applies to another state.
    """
    layers: list[list[IcebergFileRead]] = []
    by_tag: dict[tuple[int, int], list[IcebergFileRead]] = {}
    uses: dict[str, int] = {}
    for read in reads:
        if read.file.deletes:
            by_tag.setdefault((read.version, read.sign), []).append(read)
            continue
        layer = uses.get(read.file.path, 0)
        uses[read.file.path] = layer + 1
        if layer == len(layers):
            layers.append([])
        layers[layer].append(read)
    yield from (*layers, *by_tag.values())
