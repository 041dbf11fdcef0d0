"""Compare the record of ingested files with a listing of the source, in steps of bounded memory.

See docs/reference/files.md, The ledger of partitions.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.path.ledger import Counts, FileCounts
from partitions.path.ledger_partitions import FilePlace
from partitions.path.listing_positions import FromBeginning, ListingStart
from partitions.path.position_of_state import above_state, sweep_start
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from resources.decisions.reasons import LOADED_REASONS
from resources.kinds.state_of_entry import cold_start_of
from resources.listing import Budget, list_above
from resources.loop.missing_source import explain_missing_source
from resources.platform.stores import Stores
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import LOADED_AGAIN
from resources.watermarks.folder_counts import count_files, is_loaded_mask
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.record_tables import RECENT, RecordTables

if TYPE_CHECKING:
    import pyarrow as pa

_STORE_STEP, _FOLDER_STEP = Budget(pages=20), Budget(pages=500)
_TABLES = 4
"""The most ranges of the record that are in memory at once."""
_NAMED = 50
"""The most files of each kind that are named."""


@dataclass(frozen=True)
class SourceComparison:
    """The result of a comparison.

    Attributes:
        listed: number of files at the source.
        calls: LIST calls, or opened folders.
        counts: waiting, gone and changed files by place.
        gone_files: the first paths of loaded files that the source lacks.
        changed: the first paths of loaded files with another size or version.
        unknown: the first paths of listed files that the record lacks.
        unknown_count: number of all such files.
    """

    listed: int
    calls: int
    counts: Counts
    gone_files: Sequence[str]
    changed: Sequence[str]
    unknown: Sequence[str] = ()
    unknown_count: int = 0


def compare_with_source(
    stores: Stores,
    dataflow: Dataflow,
    entry: Entry | None,
    record: IngestedFiles,
    *,
    up_to: PathState | None = None,
    named: int = _NAMED,
) -> SourceComparison:
    """List the source, from where the first run began, and compare it with the record.

    Args:
        stores: the resources.
        dataflow: the definition.
        entry: the newest entry.
        record: the record of ingested files.
        up_to: state above which no file is listed; None: all files are.
        named: most paths of each kind to name.

    Raises:
        SourceError: a listing failed.
    """
    comparison = _Comparison(record, named)
    since = cold_start_of(entry)
    position: ListingStart = above_state(dataflow.path, since) if since else FromBeginning()
    if up_to is not None:
        position = sweep_start(dataflow.path, up_to, since)
    place = stores.root_of(dataflow)
    step = _FOLDER_STEP if place.local is not None else _STORE_STEP
    listed, calls, resume = 0, 0, None
    while True:
        with explain_missing_source(stores.log, dataflow):
            listing = list_above(place, position, dataflow.files.endings, budget=step, resume=resume)
        listed, calls = listed + len(listing.listed.files), calls + listing.listed.calls
        comparison.add(listing.listed.files)
        resume = listing.resume
        if resume is None:
            break
    gone_files = comparison.count_gone()
    return SourceComparison(
        listed,
        calls,
        comparison.counts,
        gone_files,
        comparison.changed,
        comparison.unknown,
        comparison.unknown_count,
    )


class _Comparison:
    """A running comparison: the counts so far, and a mark for each record whose file was listed."""

    def __init__(self, record: IngestedFiles, named: int) -> None:
        self._record, self._records, self._named = record, RecordTables(record), named
        self._tables: OrderedDict[str, Any] = OrderedDict()
        self._listed_records: dict[str, bytearray] = {}
        self.counts: dict[FilePlace, FileCounts] = defaultdict(FileCounts)
        self.changed: list[str] = []
        self.unknown: list[str] = []
        self.unknown_count = 0

    def add(self, files: Sequence[SourceFile]) -> None:
        """Compare some listed files."""
        if not files:
            return
        listed = _table_of(files)
        unknown = set(range(listed.num_rows))
        lowest, highest = listed["path"][0].as_py(), listed["path"][-1].as_py()
        ranges = [
            range_.name
            for range_ in self._record.manifest.ranges
            if range_.last >= lowest and range_.first <= highest
        ]
        for name in (RECENT, *ranges):
            table = self._table(name)
            if table is not None:
                unknown -= self._match(listed, table, name)
        if unknown:
            unknown_files = listed.take(sorted(unknown))
            self._count(unknown_files, "waiting")
            self.unknown += self._first(unknown_files, self.unknown)
            self.unknown_count += unknown_files.num_rows

    def count_gone(self) -> list[str]:
        """Count the loaded files that were not listed; return the first paths."""
        import pyarrow as pa
        import pyarrow.compute as pc

        gone_paths: list[str] = []
        for name, table in self._records.numbered_tables():
            marks = self._listed_records.get(name, bytes(table.num_rows))
            not_listed = pc.equal(pa.array(marks, pa.uint8()), 0)
            gone_files = table.filter(pc.and_(not_listed, is_loaded_mask(table["reason"], LOADED_REASONS)))
            self._count(gone_files, "gone_files")
            gone_paths += self._first(gone_files, gone_paths)
        return gone_paths

    def _match(self, listed: pa.Table, table: pa.Table, name: str) -> set[int]:
        """Mark the records of listed files, and count changed ones; return the positions of recorded files."""
        import pyarrow as pa
        import pyarrow.compute as pc

        numbers = pc.index_in(listed["path"], value_set=table["path"].combine_chunks())
        listed_numbers = pc.indices_nonzero(pc.is_valid(numbers))
        records = table.take(pc.drop_null(numbers))
        matched = listed.take(listed_numbers)
        marks = self._listed_records.setdefault(name, bytearray(table.num_rows))
        for number in pc.drop_null(numbers).to_pylist():
            marks[number] = 1
        differs = pc.or_(
            pc.not_equal(records["size"], matched["size"]),
            pc.not_equal(records["version"], matched["version"]),
        )
        unseen = pc.and_(pc.equal(records["version"], ""), pc.equal(records["modified"], 0))
        differs = pc.and_(differs, pc.invert(unseen))
        changed = records.filter(pc.and_(differs, is_loaded_mask(records["reason"], LOADED_REASONS)))
        self._count(changed, "changed")
        self.changed += self._first(changed, self.changed)
        waits = pc.is_in(records["reason"], pa.array(LOADED_AGAIN, pa.string()))
        self._count(matched.filter(waits), "waiting")
        return set(pa.chunked_array([listed_numbers]).to_pylist())

    def _first(self, files: pa.Table, paths: Sequence[str]) -> list[str]:
        """Return paths of files, as far as they are named beside earlier ones."""
        first: list[str] = files["path"].slice(0, self._named - len(paths)).to_pylist()
        return first

    def _count(self, files: pa.Table, name: str) -> None:
        for place, counts in count_files(files, name).items():
            self.counts[place] = self.counts[place].plus(counts)

    def _table(self, name: str) -> pa.Table | None:
        """Return the records of a range that no recent list overrides; None if there are none."""
        if name not in self._tables:
            self._tables[name] = self._records.table_of(name)
            if len(self._tables) > _TABLES:
                self._tables.popitem(last=False)
        self._tables.move_to_end(name)
        return self._tables[name]


def _table_of(files: Sequence[SourceFile]) -> pa.Table:
    """Return listed files as an Arrow table, sorted by path."""
    import pyarrow as pa

    rows = sorted(file.row for file in files)
    names = ("path", "size", "version", "modified")
    types = (pa.string(), pa.int64(), pa.string(), pa.int64())
    columns = [pa.array(values, type_) for values, type_ in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.table(dict(zip(names, columns, strict=True)))
