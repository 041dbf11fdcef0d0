"""Simulate graces: the late changes that each would have caught, and the windows that it would reread.

A run reads a window again if it ends above the run's cutoff, *highest high - grace*. In other words: if
its *age*, highest high - end, is below the grace. A change was observed if a read found other rows than
the read of the same stretch before it. A grace would have caught it if the age at that read was below the
grace. Changes at an age that no run ever read again are unknown.

See docs/reference/windows.md, The simulator.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from partitions.errors import ConfigurationError
from partitions.instants import DAY, as_datetime
from partitions.model import Duration
from partitions.window.work_outcomes import TimeBound


class Observation(NamedTuple):
    """One read and write of a work unit.

    Attributes:
        at: the run's clock, epoch milliseconds.
        unit: the unit's identity.
        start: the window's start, epoch milliseconds; None without a time dimension.
        end: the window's end, exclusive, epoch milliseconds.
        lower: where the read started.
        rows: the number of written rows.
        digest: the digest of their values.
    """

    at: int
    unit: str
    start: TimeBound
    end: int
    lower: int
    rows: int
    digest: str


class ReadChange(NamedTuple):
    """A read that found other rows than the one before it.

    Attributes:
        age: the window's age at this read, in milliseconds.
        rows: the number of rows that came or went.
    """

    age: int
    rows: int


@dataclass(frozen=True)
class GraceResult:
    """The simulated result of one grace.

    Attributes:
        grace: milliseconds.
        caught: the number of changes that it would have caught.
        rows: the number of rows that these changes added or removed.
        reread: the number of work units that it would have read again, over all observed runs.
    """

    grace: int
    caught: int
    rows: int
    reread: int


@dataclass(frozen=True)
class Simulation:
    """The observed reads, and the result of each grace.

    Attributes:
        reads: the number of observed reads.
        windows: the number of observed work units.
        changes: the number of observed changes.
        first: the clock of the first run, epoch milliseconds.
        last: the clock of the last run.
        longest: the highest age at which a window was read again, milliseconds; later changes are unknown.
    """

    dataflow: str
    reads: int
    windows: int
    changes: int
    first: int | None
    last: int | None
    longest: int
    candidates: Sequence[GraceResult]

    def smallest_grace(self, share: float = 1.0) -> GraceResult | None:
        """Return the smallest grace that catches a share of the observed changes; None if no candidate does."""
        return next(
            (candidate for candidate in self.candidates if candidate.caught >= share * self.changes), None
        )

    @property
    def why(self) -> str:
        """Return the recommendation in a sentence."""
        horizon = (
            f"No run has looked for changes that came later than {_iso(self.longest)} after a window's end"
        )
        if not self.reads:
            return "no run has observed anything yet: runs observe slices of at most 32 work units"
        if not self.longest:
            return (
                "late changes are unknown, since no run has read a window again. Set a grace for a while, and simulate"
                " again"
            )
        shortest = self.smallest_grace()
        if not self.changes:
            return f"no late change was observed in {self.reads:,} reads: a grace would have caught nothing. {horizon}"
        changes = f"all {self.changes:,} late changes" if self.changes > 1 else "the one late change"
        if shortest is None:
            return f"no grace of these would have caught {changes}: try longer ones with --grace. {horizon}"
        return f"a grace of {_iso(shortest.grace)} would have caught {changes}, and no shorter one. {horizon}"

    def as_json(self) -> dict[str, Any]:
        """Return the JSON form of ``strandline simulate``."""
        shortest, shortest_for_99 = (
            self.smallest_grace() if self.changes else None,
            self.smallest_grace(0.99) if self.changes else None,
        )
        return {
            "dataflow": self.dataflow,
            "observed": {
                "reads": self.reads,
                "windows": self.windows,
                "changes": self.changes,
                "from": self.first and as_datetime(self.first).isoformat(),
                "to": self.last and as_datetime(self.last).isoformat(),
                "longest_grace": _iso(self.longest),
            },
            "graces": [
                {
                    "grace": _iso(candidate.grace),
                    "caught": candidate.caught,
                    "missed": self.changes - candidate.caught,
                    "caught_rows": candidate.rows,
                    "reread_windows": candidate.reread,
                }
                for candidate in self.candidates
            ],
            "recommended": shortest and _iso(shortest.grace),
            "catches_99_percent": shortest_for_99 and _iso(shortest_for_99.grace),
            "why": self.why,
        }


def simulate(observations: Iterable[Observation], graces: Sequence[int], *, dataflow: str) -> Simulation:
    """Simulate graces on observed reads.

    Args:
        observations: the observed reads, in any order.
        graces: the graces to simulate, milliseconds.
        dataflow: the dataflow's name.
    """
    reads = sorted(observations, key=lambda observation: observation.at)
    reads_by_unit: dict[tuple[TimeBound, str], dict[int, Observation]] = {}
    ends: list[int] = []  # of work units that were loaded before the run that is looked at, ascending
    changes: list[ReadChange] = []
    reread = dict.fromkeys(graces, 0)
    longest, highest = 0, None
    for _, same in groupby(reads, key=lambda observation: observation.at):
        of_run = list(same)
        if highest is not None:
            for grace in graces:
                reread[grace] += len(ends) - bisect_right(ends, highest - grace)
        for observation in of_run:
            before = reads_by_unit.get((observation.start, observation.unit))
            if before is None:
                insort(ends, observation.end)
            elif highest is not None:
                longest = max(longest, highest - observation.end)
                changes += _find_change(observation, before.get(observation.lower), highest)
            reads_by_unit.setdefault((observation.start, observation.unit), {})[observation.lower] = (
                observation
            )
        highest = max([*([] if highest is None else [highest]), *(observation.end for observation in of_run)])
    return Simulation(
        dataflow,
        len(reads),
        len(reads_by_unit),
        len(changes),
        reads[0].at if reads else None,
        reads[-1].at if reads else None,
        longest,
        [_grace_result(grace, changes, reread[grace]) for grace in sorted(graces)],
    )


def _find_change(observation: Observation, before: Observation | None, highest: int) -> list[ReadChange]:
    """Return the change between a read and the read of the same stretch before it; [] if there is none."""
    if before is None or before.end != observation.end or before.digest == observation.digest:
        return []
    return [ReadChange(highest - observation.end, abs(observation.rows - before.rows))]


def _grace_result(grace: int, changes: Sequence[ReadChange], reread: int) -> GraceResult:
    caught = [change for change in changes if change.age < grace]
    return GraceResult(grace, len(caught), sum(change.rows for change in caught), reread)


def graces_of(text: str) -> list[int]:
    """Parse ``P0D..P7D`` (each day in between), or comma-separated durations; milliseconds, ascending.

    Raises:
        ConfigurationError: for another form.
    """
    first, dots, last = text.partition("..")
    graces = [_milliseconds(part.strip()) for part in ([first, last] if dots else text.split(","))]
    if not dots:
        return sorted(set(graces))
    if graces[0] > graces[1]:
        raise ConfigurationError(f"--grace: expected the shorter one first, found {text!r}")
    return [*range(graces[0], graces[1], DAY), graces[1]]


def _milliseconds(text: str) -> int:
    try:
        return TypeAdapter(Duration).validate_python(text) // timedelta(milliseconds=1)
    except ValueError as error:
        raise ConfigurationError(
            f"--grace: expected durations such as P0D..P7D or P1D,PT36H, found {text!r}"
        ) from error


def _iso(milliseconds: int) -> str:
    days, rest = divmod(milliseconds, DAY)
    if not rest:
        return f"P{days}D"
    hours, minutes, seconds = rest // 3_600_000, rest // 60_000 % 60, rest // 1000 % 60
    parts = ((hours, "H"), (minutes, "M"), (seconds, "S"))
    time = "".join(f"{number}{letter}" for number, letter in parts if number)
    return f"P{f'{days}D' if days else ''}T{time or '0S'}"
