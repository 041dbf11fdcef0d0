"""What a comparison shows, for people, programs and the note beside the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from partitions.instants import time_text
from partitions.plan import pluralize
from partitions.reconcile.columns import NotCompared
from partitions.reconcile.differences import Differences, Key, RangeCounts
from partitions.reconcile.ranges import ComparedRange
from partitions.reconcile.repair import Repaired
from partitions.sentinels import Watermark, encode

Level = Literal["counts", "keys", "rows", "files"]
"""What is compared: numbers of rows; also their keys and watermark columns; also all other columns. Or files."""

LEVEL_WORDS: Mapping[Level, str] = {
    "counts": "counts of rows",
    "keys": "keys and watermark columns",
    "rows": "all compared columns",
    "files": "names, sizes and versions of files",
}


@dataclass(frozen=True)
class RangeResult:
    """One range with the rows of both sides, and those that differ.

    Attributes:
        range: the range.
        source: rows of the source.
        table: rows of the table.
        counts: differing rows.
    """

    range: ComparedRange
    source: int
    table: int
    counts: RangeCounts

    @property
    def is_equal(self) -> bool:
        """Whether no row of the range differs."""
        return not (self.counts.missing or self.counts.extra or self.counts.different)

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, reconcile)."""
        return {
            **self.range.as_json(),
            "source": self.source,
            "table": self.table,
            "missing": self.counts.missing,
            "extra": self.counts.extra,
            "different": self.counts.different,
        }


@dataclass(frozen=True)
class ComparedPosition:
    """What was compared: the state, the version of the table, and the moment of the source.

    Attributes:
        state_number: number of the newest entry.
        table_version: version of the table.
        source_time: the source's clock at its snapshot, ISO in UTC; None: it has none.
        source_version: version of a lake table that is the source; None for another source.
    """

    state_number: int
    table_version: int | str | None
    source_time: str | None = None
    source_version: int | str | None = None

    @property
    def words(self) -> str:
        """The position for people."""
        moment = f", the source at {time_text(self.source_time)}" if self.source_time else ""
        version = "" if self.source_version is None else f", the source at version {self.source_version}"
        table = "" if self.table_version is None else f", table version {self.table_version}"
        return f"state {self.state_number}{table}{moment}{version}"


@dataclass(frozen=True)
class Reconciliation:
    """The comparison of one dataflow.

    Attributes:
        dataflow: its name.
        level: what was compared.
        watermark: how far rows were compared: the watermark, or the end of the last window.
        position: what was compared.
        ranges: all ranges in order.
        missing: first keys that the table lacks.
        extra: first keys that the source lacks.
        different: first keys whose rows differ.
        not_compared: columns that were not compared.
        is_whole: whether all rows up to the watermark were compared, not only a requested range.
        repair: what a repair reads again, or why there is none; None: nothing differs, or nobody asked.
    """

    dataflow: str
    level: Level
    watermark: Watermark
    position: ComparedPosition
    ranges: Sequence[RangeResult] = ()
    missing: Sequence[Key] = ()
    extra: Sequence[Key] = ()
    different: Sequence[Key] = ()
    not_compared: Sequence[NotCompared] = field(default=())
    is_whole: bool = True
    repair: Repaired | str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether no row differs."""
        return all(range_.is_equal for range_ in self.ranges)

    @property
    def totals(self) -> RangeCounts:
        """Differing rows of all ranges."""
        counts = [range_.counts for range_ in self.ranges]
        return RangeCounts(
            sum(count.missing for count in counts),
            sum(count.extra for count in counts),
            sum(count.different for count in counts),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md, reconcile)."""
        return {
            "dataflow": self.dataflow,
            "level": self.level,
            "up_to": encode(self.watermark) or None,
            "state_number": self.position.state_number,
            "table_version": self.position.table_version,
            "source_time": self.position.source_time,
            "source_version": self.position.source_version,
            "ranges": [range_.as_json() for range_ in self.ranges],
            "missing": [encode(key) for key in self.missing],
            "extra": [encode(key) for key in self.extra],
            "different": [encode(key) for key in self.different],
            "not_compared": [column.as_json() for column in self.not_compared],
            "equal": self.is_equal,
            "error": None,
        }


def result_of(
    ranges: Sequence[ComparedRange], counts: Mapping[int, tuple[int, int]], differences: Differences | None
) -> Sequence[RangeResult]:
    """Return each range with its counts; without differing rows their number alone tells them.

    Args:
        ranges: all ranges, in order.
        counts: rows of source and table, by number of the range.
        differences: differing rows; None: only counts were compared.
    """
    results = []
    for number, range_ in enumerate(ranges):
        source, table = counts.get(number, (0, 0))
        if differences is None:
            counts_of_range = RangeCounts(max(0, source - table), max(0, table - source))
        else:
            counts_of_range = differences.ranges.get(number, RangeCounts())
        results.append(RangeResult(range_, source, table, counts_of_range))
    return results


def counts_in_words(counts: RangeCounts, level: Level) -> str:
    """Return what differs for people: ``1 row missing, 2 rows extra``."""
    parts = {"missing": counts.missing, "extra": counts.extra, "different": counts.different}
    noun = "file" if level == "files" else "row"
    return ", ".join(f"{pluralize(count, noun)} {sort}" for sort, count in parts.items() if count) or "equal"
