"""The outcome of a work unit in a commit: loaded, failed or deferred (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypedDict

from partitions.instants import as_datetime
from partitions.pauses import remaining_pause, retry_pause
from partitions.window.calendar_grid import Grid

TimeBound = int | None
"""The start or the end of a window, epoch milliseconds; None if there is no time dimension."""


class Failure(NamedTuple):
    """The last outcome of a work unit that was due and not loaded.

    Attributes:
        attempts: the number of tries; 0: without a time dimension, the cap on work units left it out.
        error: the reason, in a line.
        at: when it was last tried, or first left out, epoch milliseconds.
    """

    attempts: int
    error: str | None = None
    at: int | None = None

    def rested(self, now: int) -> bool:
        """Return whether the pause is over."""
        return self.wait(now) == 0

    def wait(self, now: int) -> float:
        """Return the seconds until the pause is over."""
        return 0.0 if self.at is None else remaining_pause(self.attempts, self.at / 1000, now / 1000)

    @property
    def pause_end(self) -> datetime | None:
        """When the pause of Dagster's sensor after it ends; None if its time is unknown."""
        if self.at is None:
            return None
        return as_datetime(self.at, UTC) + timedelta(seconds=retry_pause(self.attempts))


class NextTry(TypedDict, total=False):
    """When failed work units are tried again: one of the first two, and the last try; none if unknown."""

    next_try: str
    due_since: str
    tried_at: str


def next_try_of(failures: Iterable[Failure], now: datetime) -> NextTry:
    """Return when Dagster's sensor first retries failed work units, ISO; a run by hand does not wait.

    ``due_since`` if that is over, else ``next_try``, and ``tried_at``, the last try of any of them. Nothing
    if the times of the failures are unknown.
    """
    timed = [(failure.pause_end, failure.at) for failure in failures]
    first = min((end for end, _ in timed if end is not None), default=None)
    if first is None:
        return {}
    at = first.isoformat(timespec="seconds")
    last = as_datetime(max(tried for _, tried in timed if tried is not None))
    tried_at = last.isoformat(timespec="seconds")
    if first > now:
        return {"next_try": at, "tried_at": tried_at}
    return {"due_since": at, "tried_at": tried_at}


class LoadedUnit(NamedTuple):
    """A work unit that was read and written.

    Attributes:
        start: the window's start; None without a time dimension.
        end: the window's end as planned, which is its high now.
        lower: where the read started.
        unit: the unit's identity.
        open: whether the window is cut short by now.
        grid: the grid that cuts the window.
    """

    start: TimeBound
    end: TimeBound
    lower: TimeBound
    unit: str
    open: bool
    grid: Grid


class WindowSpan(NamedTuple):
    """Adjacent windows of a unit: deferred ones, or ones that were loaded before their end.

    Attributes:
        unit: the unit's identity.
        start: the first window's start; None without a time dimension.
        end: the last window's end.
        grid: the text of the grid that cuts them.
        reread_whole: whether they must be read again from their starts.
    """

    unit: str
    start: TimeBound
    end: TimeBound
    grid: str
    reread_whole: bool = False


class OutdatedStretch(NamedTuple):
    """A loaded stretch that has changed in the table that is read since it was read.

    Attributes:
        unit: the unit's identity.
        start: its start, epoch milliseconds.
        end: its end.
        read_at: the position of the table's log that it was read at, in words.
    """

    unit: str
    start: int
    end: int
    read_at: str


class UpstreamRead(NamedTuple):
    """The upstream as a plan has seen it, before the version of its table that the slices read.

    Attributes:
        entries: by dataflow whose table is read, number and id of the newest entry.
        changed: unit, start and end of loaded stretches that the upstream has loaded since the entries
        that the state knows, or whose rows commits behind its position have changed.
        read_at: position in the log of the table that the slices read, in its stored form; None if its
        commits do not matter.
    """

    entries: Mapping[str, list[Any]]
    changed: tuple[tuple[str, int, int], ...] = ()
    read_at: Mapping[str, Any] | None = None
