"""One evaluation of a sensor, and the work that it finds or does not find."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dagster import AddDynamicPartitionsRequest, DagsterInstance, RunRequest

from resources.watermarks.entry import NO_PROGRESS, Entry, Why

Clock = Callable[[], float]
"""A function that returns epoch seconds."""


@dataclass(frozen=True)
class Tick:
    """One evaluation of a sensor.

    Attributes:
        instance: the Dagster instance.
        seconds: epoch seconds of the sensor's clock.
        resume: where the listing of the last tick ran out of its budget, or "".
        handled: the changes of upstream tables that need no further run, or "".
    """

    instance: DagsterInstance
    seconds: float
    resume: str = ""
    handled: str = ""

    @property
    def now(self) -> datetime:
        """Return the time of the tick, in UTC."""
        return datetime.fromtimestamp(self.seconds, UTC)


@dataclass(frozen=True)
class NoWork:
    """A tick that requests nothing.

    Attributes:
        why: for people.
        resume: where the next tick's listing continues, or "".
        handled: the changes of upstream tables that need no further run, or "".
        events: what the tick reports.
    """

    why: str
    resume: str = ""
    handled: str = ""
    events: Sequence[Any] = ()


@dataclass(frozen=True)
class Work:
    """The work that a tick has found.

    Attributes:
        entry: the newest entry.
        digest: identifies the work: see :func:`digest`.
        requests: returns the runs of an attempt, given a text that no other attempt has: Dagster runs a
        key only once, even if the run fails.
        new_keys: partitions to add to Dagster first.
        events: what the tick reports.
        no_progress: the reasons of entries that are no progress with this work.
        unfinished: the skip reason during the pause after an attempt, formatted with its number and the
        seconds left.
    """

    entry: Entry | None
    digest: str
    requests: Callable[[str], Sequence[RunRequest]]
    new_keys: Sequence[AddDynamicPartitionsRequest] = ()
    events: Sequence[Any] = ()
    no_progress: frozenset[Why] = NO_PROGRESS
    unfinished: str = "attempt {} did not commit; the next one is in {} s"


def digest(*parts: object) -> str:
    """Return a short text that identifies some work."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
