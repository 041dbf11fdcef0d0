"""The ledger of files per partition: counts of the record, of the table, and of a listed source.

See docs/reference/files.md, The ledger of partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.instants import as_datetime
from partitions.ledger_bounds import LedgerBounds
from partitions.path.copies import SAME_CONTENT
from partitions.path.expected import MissingRange
from partitions.path.ledger import OF_SOURCE, OF_TABLE, Counts, FileCounts, FileLedger, file_ledger
from partitions.path.ledger_partitions import FilePlace, LedgerPartition, PartitionNames
from partitions.path.order import FileKey
from partitions.path.source import SourceFile
from resources.decisions.reasons import LOADED_REASONS, SKIPPED_REASONS
from resources.kinds.path.source_comparison import SourceComparison, compare_with_source
from resources.kinds.path.sweep import unhandled
from resources.platform.stores import Stores
from resources.sources.files.paths import SOURCE_FILE
from resources.watermarks.entry import Entry, utc_now
from resources.watermarks.folder_counts import count_by_place, days_of, folders_of
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.quarantine_list import read_quarantine
from resources.watermarks.record_tables import RecordTables

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class PartitionLedger:
    """The ledger of partitions, with the origin of its counts.

    Attributes:
        ledger: the partitions, with the counts of their files.
        compared_at: when the comparison with the source began, ISO; None: there was none.
        comparison: the result of this comparison; None: there was none.
        rows_unknown: why rows are not counted; None if they are.
    """

    ledger: FileLedger
    compared_at: str | None = None
    comparison: SourceComparison | None = None
    rows_unknown: str | None = None


def partition_ledger(
    stores: Stores,
    dataflow: Dataflow,
    entry: Entry | None,
    now: datetime,
    bounds: LedgerBounds,
    *,
    compare: bool,
) -> PartitionLedger:
    """Return the ledger of partitions. Starts no Spark; lists the source only to compare.

    Args:
        stores: the resources.
        dataflow: the definition.
        entry: the newest entry; None if there is none.
        now: the clock, aware.
        bounds: the partitions to return.
        compare: whether to list the source.

    Raises:
        SourceError: the listing failed.
        CorruptWatermark: the record does not read.
    """
    record = IngestedFiles(stores.log, dataflow.name, entry)
    counts = [recorded_counts(record), _waiting_counts(stores, dataflow, entry, now)]
    compared_at = utc_now() if compare else None
    comparison = compare_with_source(stores, dataflow, entry, record) if compare else None
    if comparison is not None:
        counts.append(comparison.counts)
    rows, why_unknown = _row_counts(stores, dataflow, record)
    unknown = (frozenset() if comparison else OF_SOURCE) | (OF_TABLE if rows is None else frozenset())
    ledger = file_ledger(
        PartitionNames(dataflow.path.template),
        [*counts, rows or {}],
        unknown,
        dataflow.path.expected,
        now,
        bounds,
    )
    return PartitionLedger(ledger, compared_at, comparison, why_unknown)


def missing_partitions(
    stores: Stores, dataflow: Dataflow, entry: Entry | None, now: datetime
) -> Sequence[MissingRange]:
    """Return the past periods in which no file came, by the record, late files and the quarantine.

    Args:
        stores: the resources.
        dataflow: the definition, whose watermark has ``expected``.
        entry: the newest entry.
        now: the clock, aware.

    Raises:
        CorruptWatermark: the record does not read.
    """
    record = IngestedFiles(stores.log, dataflow.name, entry)
    counts = [recorded_counts(record), _waiting_counts(stores, dataflow, entry, now)]
    names, path = PartitionNames(dataflow.path.template), dataflow.path
    return file_ledger(names, counts, OF_SOURCE | OF_TABLE, path.expected, now, LedgerBounds()).missing


def recorded_counts(record: IngestedFiles) -> Counts:
    """Return the counts of the record of ingested files."""
    return count_by_place(RecordTables(record).tables(), LOADED_REASONS, SKIPPED_REASONS, SAME_CONTENT)


def _waiting_counts(stores: Stores, dataflow: Dataflow, entry: Entry | None, now: datetime) -> Counts:
    """Return the counts of late files and of the quarantine."""
    late = unhandled(stores.log, dataflow, entry, now)
    quarantined = [aside.file for aside in read_quarantine(stores.log, entry).waiting]
    counts: dict[FilePlace, FileCounts] = defaultdict(FileCounts)
    for place in _places(late.files):
        counts[place] = counts[place].plus(FileCounts(late=1))
    for place in _places(quarantined):
        counts[place] = counts[place].plus(FileCounts(quarantined=1))
    return counts


def _places(files: Iterable[SourceFile]) -> Iterable[FilePlace]:
    for file in files:
        folder = FileKey.of(file.path).partition
        day = "" if folder else as_datetime(file.modified, UTC).date().isoformat()
        yield FilePlace(folder, day)


def _row_counts(
    stores: Stores, dataflow: Dataflow, record: IngestedFiles
) -> tuple[Counts | None, str | None]:
    """Return the rows of the table by the place of their file; None, and why, if they cannot be counted."""
    table = stores.table(dataflow)
    try:
        if not table.exists():
            return {}, None
        if SOURCE_FILE not in table.contents.columns():
            return None, f"the table has no column {SOURCE_FILE}"
        texts = table.contents.text_counts(SOURCE_FILE)
    except StrandlineError as error:
        return None, error.message
    return _rows_by_place(texts, record), None


def _rows_by_place(texts: pa.Table, record: IngestedFiles) -> Counts:
    """Sum rows by the folder of their file; those of files at the root by the day that the record has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    counts: dict[FilePlace, FileCounts] = defaultdict(FileCounts)
    folders = folders_of(texts["text"])
    grouped = (
        pa.table({"folder": folders, "rows": texts["rows"]}).group_by("folder").aggregate([("rows", "sum")])
    )
    for row in grouped.to_pylist():
        if row["folder"]:
            counts[FilePlace(row["folder"])] = FileCounts(rows=row["rows_sum"])
    at_root = texts.filter(pc.equal(folders, ""))
    if not at_root.num_rows:
        return counts
    unrecorded_rows = pc.sum(at_root["rows"]).as_py()
    for table in RecordTables(record).tables():
        numbers = pc.index_in(table["path"], value_set=at_root["text"].combine_chunks())
        arrived = table["modified"].filter(pc.is_valid(numbers))
        rows = at_root["rows"].take(pc.drop_null(numbers))
        summed = (
            pa.table({"day": days_of(arrived), "rows": rows}).group_by("day").aggregate([("rows", "sum")])
        )
        for row in summed.to_pylist():
            place = FilePlace("", row["day"])
            counts[place] = counts[place].plus(FileCounts(rows=row["rows_sum"]))
            unrecorded_rows -= row["rows_sum"]
    if unrecorded_rows:
        counts[FilePlace("")] = counts[FilePlace("")].plus(FileCounts(rows=unrecorded_rows))
    return counts


def newest_partitions(
    dataflow: Dataflow, record: IngestedFiles, most: int
) -> Sequence[tuple[LedgerPartition, FileCounts]]:
    """Return the last partitions by name with the counts of the record, whose last ranges alone are read."""
    folders: set[str] = set()

    def has_enough(table: pa.Table) -> bool:
        # The first folder of a range may go on in the range before it.
        folders.update(folders_of(table["path"]).unique().to_pylist())
        return len(folders) > most

    counts = count_by_place(
        RecordTables(record).last_tables(has_enough), LOADED_REASONS, SKIPPED_REASONS, SAME_CONTENT
    )
    names = PartitionNames(dataflow.path.template)
    ledger = file_ledger(names, [counts], frozenset(), None, datetime.now(UTC), LedgerBounds())
    return ledger.partitions[-most:]
