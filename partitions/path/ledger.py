"""The ledger of files per partition: loaded, late, quarantined, gone, changed, missing.

See docs/reference/files.md, The ledger of partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple

from partitions.ledger_bounds import LedgerBounds
from partitions.path.expected import Expected, MissingRange, missing_ranges
from partitions.path.ledger_partitions import FilePlace, LedgerPartition, PartitionNames


class FileCounts(NamedTuple):
    """Counts of files.

    Attributes:
        files: loaded files.
        bytes: their size when they were loaded.
        rows: their rows that the table holds now.
        late: late files that wait.
        quarantined: files in quarantine that wait for a decision.
        skipped: files that a decision has passed over.
        duplicates: files that were not loaded, since another file has the same content.
        waiting: files at the source that no entry has handled.
        gone_files: loaded files that the source lacks; ``gone`` for users.
        changed: loaded files with another size or version at the source.
    """

    files: int = 0
    bytes: int = 0
    rows: int = 0
    late: int = 0
    quarantined: int = 0
    skipped: int = 0
    duplicates: int = 0
    waiting: int = 0
    gone_files: int = 0
    changed: int = 0

    def plus(self, other: FileCounts) -> FileCounts:
        """Return the sums."""
        return FileCounts(*map(sum, zip(self, other, strict=True)))


OF_TABLE = frozenset({"rows"})
"""Counts that only the table knows."""

OF_SOURCE = frozenset({"waiting", "gone_files", "changed"})
"""Counts that only a comparison with the source knows."""

Counts = Mapping[FilePlace, FileCounts]
"""Counts by place; a place may have counts of several origins, which are added."""


@dataclass(frozen=True)
class FileLedger:
    """The partitions of a dataflow of files.

    Attributes:
        partitions: the partitions and their counts, by name in byte order.
        missing: the missing periods, by group and time.
        unknown: names of counts that are unknown.
        covered: the sums of all partitions, also of those outside of the bounds.
    """

    partitions: Sequence[tuple[LedgerPartition, FileCounts]]
    missing: Sequence[MissingRange]
    unknown: frozenset[str]
    covered: FileCounts

    @property
    def totals(self) -> FileCounts:
        """The sums of these partitions."""
        return _sum_counts(counts for _, counts in self.partitions)

    def counts_document(self, counts: FileCounts) -> dict[str, int | None]:
        """Return counts by their public names; None for unknown ones."""
        return {
            name.removesuffix("_files"): None if name in self.unknown else count
            for name, count in counts._asdict().items()
        }

    def as_json(self) -> dict[str, Any]:
        """Return the keys of the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "partitions": [
                {
                    "partition": partition.name,
                    "by": partition.by,
                    "start": partition.start.isoformat() if partition.start else None,
                    **self.counts_document(counts),
                }
                for partition, counts in self.partitions
            ],
            "totals": self.counts_document(self.totals),
            "missing": [
                {
                    "group": missing.group,
                    "start": missing.start.isoformat(),
                    "end": missing.end.isoformat(),
                    "periods": missing.periods,
                }
                for missing in self.missing
            ],
        }


def file_ledger(
    names: PartitionNames,
    counts: Sequence[Counts],
    unknown: frozenset[str],
    expected: Expected | None,
    now: datetime,
    bounds: LedgerBounds,
) -> FileLedger:
    """Return the ledger of partitions.

    Args:
        names: names the partitions.
        counts: the counts of each origin: the record of ingested files, the table, the source.
        unknown: names of counts that no origin knows.
        expected: how often a partition is expected; None: nothing is missing.
        now: the clock, aware.
        bounds: the partitions to return.
    """
    by_partition: dict[LedgerPartition, FileCounts] = defaultdict(FileCounts)
    for of_origin in counts:
        for place, place_counts in of_origin.items():
            partition = names.partition_of(place)
            by_partition[partition] = by_partition[partition].plus(place_counts)
    starts: dict[str, list[datetime]] = defaultdict(list)
    for partition in by_partition:
        if partition.start is not None:
            starts[partition.group].append(partition.start)
    missing = missing_ranges(expected, starts, now, bounds.start, bounds.end) if expected else ()
    chosen = sorted(
        (item for item in by_partition.items() if bounds.holds(item[0].name, item[0].start)),
        key=lambda item: item[0].name,
    )
    covered = _sum_counts(by_partition.values())
    return FileLedger(chosen, () if bounds.by_name else tuple(missing), unknown, covered)


def _sum_counts(counts: Iterable[FileCounts]) -> FileCounts:
    return reduce(FileCounts.plus, counts, FileCounts())
