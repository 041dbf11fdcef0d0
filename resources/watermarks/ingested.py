"""The record of all ingested files (docs/explanation/watermarks.md, Advancing).

Its cost does not grow with the history. Each entry names the list of its files. Every so often these lists
are merged into sorted Parquet files, each for a range of paths. A *manifest*, named by the last number
that it covers, lists the ranges. The files at an entry are those of its newest manifest and of the few
lists after it, so they are a function of the log: two readers of one entry agree. Nothing changes in
place; objects that no reader can need any more are deleted one round later.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from io import BytesIO
from itertools import repeat
from typing import TYPE_CHECKING

from resources.watermarks.entry import Entry, new_id
from resources.watermarks.entry_names import descending_name, number_of
from resources.watermarks.file_ranges import (
    LOADED_AGAIN,
    FileRange,
    IngestedFile,
    files_in,
    parquet_bytes,
)
from resources.watermarks.lists import CHECKSUMS, INGESTED_FILES, corrupt_object_error
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import FILES

if TYPE_CHECKING:
    import pyarrow as pa

_FOLDER = "ingested"
_AT_ONCE = 16
_EVERY = 32
"""The number of lists that triggers a merge."""
_RANGE = 50_000
"""The most files in one Parquet file: about a megabyte, and 30 ms to read."""


@dataclass(frozen=True)
class Manifest:
    """The ranges of files that the entries up to a number have ingested since the last reset.

    Attributes:
        ranges: sorted and disjoint.
        before: names of the previous manifest's ranges, which readers may still be reading.
    """

    number: int = 0
    era: int = 0
    ranges: tuple[FileRange, ...] = ()
    before: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of files in all ranges."""
        return sum(range_.count for range_ in self.ranges)


class IngestedFiles:
    """The files ingested up to one entry."""

    def __init__(self, log: WatermarkLog, dataflow: str, entry: Entry | None) -> None:
        """Read the manifest; lists and ranges are read on demand."""
        self._log = log
        self._dataflow = dataflow
        self._entry = entry
        self.manifest = self._newest_manifest()

    @property
    def lists(self) -> int:
        """The number of entries above the manifest."""
        return (self._entry.number if self._entry else 0) - max(self.manifest.number, self._era)

    @property
    def count(self) -> int:
        """The number of files; one that was handled twice since the last merge counts twice."""
        return self.manifest.count + len(self.recent)

    def find_handled(self, paths: Collection[str]) -> set[str]:
        """Return those of the paths that need no load: loaded before, or skipped with a reason."""
        return {
            path for path, record in self.find_records(paths).items() if record.reason not in LOADED_AGAIN
        }

    def find_records(self, paths: Collection[str]) -> dict[str, IngestedFile]:
        """Return the records of those of the paths that an entry has handled."""
        paths_in_ranges = sorted(path for path in paths if path not in self.recent)
        records = {record.path: record for record in self._in_ranges(paths_in_ranges)}
        return records | {path: self.recent[path] for path in paths if path in self.recent}

    def with_reason(self, reason: str) -> list[IngestedFile]:
        """Return the records with a reason."""
        import pyarrow.compute as pc

        recent = self.recent
        tables = (self.table(range_) for range_ in self.manifest.ranges)
        merged = (files_in(table.filter(pc.equal(table["reason"], reason))) for table in tables)
        records = [record for files in merged for record in files if record.path not in recent]
        return [*records, *(record for record in recent.values() if record.reason == reason)]

    def all(self) -> Iterator[IngestedFile]:
        """Yield all records, sorted by path within each range; recent files come last."""
        recent = self.recent
        for range_ in self.manifest.ranges:
            yield from (record for record in self._rows(range_) if record.path not in recent)
        yield from sorted(recent.values())

    def _in_ranges(self, paths: Sequence[str]) -> Iterator[IngestedFile]:
        """Yield the records of sorted paths in the ranges; only ranges that can hold one are read."""
        for range_ in self.manifest.ranges:
            low = bisect_left(paths, range_.first)
            paths_in_range = paths[low : bisect_left(paths, range_.last + "\0")]
            if paths_in_range:
                table = self.table(range_)
                yield from files_in(table, paths_in_range)

    def _rows(self, range_: FileRange) -> Iterator[IngestedFile]:
        return files_in(self.table(range_))

    def table(self, range_: FileRange) -> pa.Table:
        """Return the records of a range, also those that recent lists override.

        Raises:
            CorruptWatermark: the range's file is missing.
        """
        import pyarrow.parquet as pq

        data = self._log.get_object(self._dataflow, _FOLDER, range_.name)
        if data is None:
            label = f"record of ingested files {self._dataflow}/{_FOLDER}/{range_.name}"
            raise corrupt_object_error(label, self._dataflow, "expected a Parquet file, found nothing")
        return pq.read_table(BytesIO(data))

    @property
    def _era(self) -> int:
        return self._entry.era if self._entry else 0

    def _newest_manifest(self) -> Manifest:
        """Return the newest manifest that covers nothing after the entry, and nothing before the last reset."""
        number = self._entry.number if self._entry else 0
        for name in self._log.names(self._dataflow, _FOLDER, 3):
            covered = number_of(name)
            if covered is not None and self._era < covered <= number:
                return self._read_manifest(name)
        return Manifest(self._era, self._era)

    def _read_manifest(self, name: str) -> Manifest:
        try:
            raw = json.loads(self._log.get_object(self._dataflow, _FOLDER, name) or b"")
            ranges = tuple(FileRange(**range_) for range_ in raw.pop("ranges"))
            return Manifest(**{**raw, "ranges": ranges, "before": tuple(raw["before"])})
        except (ValueError, TypeError, KeyError) as error:
            label = f"record of ingested files {self._dataflow}/{_FOLDER}/{name}"
            raise corrupt_object_error(
                label, self._dataflow, f"expected a manifest, found text that does not parse ({error})"
            ) from error

    @cached_property
    def recent(self) -> dict[str, IngestedFile]:
        """The files of the entries above the manifest; the later record of a repeated path counts."""
        entries: list[Entry] = []
        above = max(self.manifest.number, self._era)
        last = self._entry.number if self._entry else 0
        if last > above:
            chain = self._log.history(self._dataflow, last - above + 50)
            entries = [entry for entry in chain if above < entry.number <= last and entry.file_list]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            lists = pool.map(lambda entry: self._log.get_list(entry.file_list or "", INGESTED_FILES), entries)
            read = [
                IngestedFile(path, size, version, modified, entry.number, reason, checksum)
                for entry, stored in zip(entries, lists, strict=True)
                for (path, size, version, modified, reason), checksum in zip(
                    stored.rows, stored.head.get(CHECKSUMS) or repeat(None, len(stored.rows)), strict=True
                )
            ]
        return {entry.path: entry for entry in sorted(read, key=lambda entry: entry.number)}

    def merge(self, every: int = _EVERY) -> Manifest:
        """Merge the lists above the manifest into ranges, once there are enough of them.

        It may run beside others and die anywhere: a manifest is stored only if its number has none.
        """
        if self._entry is None or self.lists < every:
            return self.manifest
        ranges = self._merged()
        before = tuple(range_.name for range_ in self.manifest.ranges)
        manifest = Manifest(self._entry.number, self._era, ranges, before)
        name = f"{descending_name(manifest.number)}.json"
        self._log.put_object(self._dataflow, _FOLDER, name, json.dumps(asdict(manifest)).encode())
        self._clean(manifest)
        return manifest

    def _merged(self) -> tuple[FileRange, ...]:
        """Return the new ranges: those without a new path stay, the others are rewritten in pieces."""
        fresh = sorted(self.recent)
        ranges: list[FileRange] = []
        start = 0
        for index, range_ in enumerate(self.manifest.ranges):
            final = index == len(self.manifest.ranges) - 1
            end = len(fresh) if final else bisect_left(fresh, self.manifest.ranges[index + 1].first)
            if start == end:
                ranges.append(range_)
            else:
                ranges.extend(self._rewritten(range_, fresh[start:end]))
            start = end
        if not self.manifest.ranges and fresh:
            ranges.extend(self._written([self.recent[path] for path in fresh]))
        return tuple(ranges)

    def _rewritten(self, range_: FileRange, fresh: Sequence[str]) -> list[FileRange]:
        rows = {record.path: record for record in self._rows(range_)}
        rows |= {path: self.recent[path] for path in fresh}
        return self._written([rows[path] for path in sorted(rows)])

    def _written(self, rows: Sequence[IngestedFile]) -> list[FileRange]:
        """Write sorted rows in pieces that are not too large, and do not get many and small over time."""
        chunks = [rows[start : start + _RANGE] for start in range(0, len(rows), _RANGE)]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(self._write, chunks))

    def _write(self, rows: Sequence[IngestedFile]) -> FileRange:
        name = f"range-{new_id()}.parquet"
        self._log.put_object(self._dataflow, _FOLDER, name, parquet_bytes(rows))
        return FileRange(name, rows[0].path, rows[-1].path, len(rows))

    def _clean(self, manifest: Manifest) -> None:
        """Delete objects that only readers of manifests before the previous one can need."""
        names = self._log.names(self._dataflow, _FOLDER, 100_000)
        manifests = [name for name in names if number_of(name) is not None]
        needed = {range_.name for range_ in manifest.ranges} | set(manifest.before)
        old = [name for name in manifests if (number_of(name) or 0) < self.manifest.number]
        unused = {range_name for name in old for range_name in _range_names(self._read_manifest(name))}
        self._log.delete(self._dataflow, _FOLDER, [*old, *sorted(unused - needed)])
        # Lists up to the previous manifest, which no reader needs any more; also those of abandoned intents.
        lists = self._log.names(self._dataflow, FILES, 10 * _EVERY)
        covered = [name for name in lists if int(name.partition("-")[0]) <= self.manifest.number]
        self._log.delete(self._dataflow, FILES, covered)


def _range_names(manifest: Manifest) -> set[str]:
    return {range_.name for range_ in manifest.ranges} | set(manifest.before)
