"""A note beside the log of how the last attempt to load a dataflow ended.

Every run writes it at its end. The log tells what was committed. A run that failed before it committed
anything leaves no entry, and without DAGSTER_HOME no run is recorded either: only the note tells of it. It
is a convenience: a store that refuses it fails no run, no decision depends on it, and if it is missing,
the last attempt is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from partitions.errors import ProviderError, StrandlineError
from resources.outcome import Outcome, error_json
from resources.watermarks.entry import Entry, utc_now
from resources.watermarks.log import WatermarkLog

_ATTEMPT, _SAID = "attempt", "said"
_BAD = ("failed", "blocked")
_UNDECIDED = ("held", "skipped")
_MAX_SAID = 200

_SAMPLE = re.compile(r"'[^']*'|(?<![\w:.,-])\d[\d,]*(?![\w:.-])")
"""The parts of a warning that change from run to run: counts and examples."""


@dataclass(frozen=True)
class Attempt:
    """The last attempt to load a dataflow.

    Attributes:
        time: when it ended, ISO in UTC; if it still runs or died, when it started.
        status: as of a run; also ``running``, ``stopped`` if the user ended it, and ``died`` if a run
            started and its process is gone.
        error: code, message and choices; None if it did not fail.
        failing_since: when the first attempt of the current series of failures failed; None if the last
        one did not fail.
        run_id: Dagster's.
    """

    time: str
    status: str
    error: Mapping[str, Any] | None = None
    failing_since: str | None = None
    run_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md)."""
        return asdict(self)


def note_attempt(log: WatermarkLog, outcome: Outcome) -> None:
    """Note how a run ended; if the store failed, or fails now, the previous note stays."""
    if isinstance(outcome.error, ProviderError):
        return  # the store has just failed, and would be waited for once more
    now, status = utc_now(), outcome.status
    with suppress(StrandlineError):
        before = last_attempt(log, outcome.dataflow) if outcome.error else None
        since = before.failing_since if before else None
        since = (since or now) if status in _BAD else since if status in _UNDECIDED else None
        attempt = Attempt(now, status, error_json(outcome.error), since, outcome.run_id)
        log.put_note(outcome.dataflow, _ATTEMPT, asdict(attempt))


def note_stop(log: WatermarkLog, dataflow: str, run_id: str | None = None) -> None:
    """Note that the user stopped a run; the next run finishes a slice that it has left open."""
    with suppress(StrandlineError):
        before = last_attempt(log, dataflow)
        since = before.failing_since if before else None
        attempt = Attempt(utc_now(), "stopped", failing_since=since, run_id=run_id)
        log.put_note(dataflow, _ATTEMPT, asdict(attempt))


def last_attempt(log: WatermarkLog, dataflow: str) -> Attempt | None:
    """Return the note of the last run; None if there is none, or it does not parse.

    Raises:
        ProviderError: if the store cannot be read.
    """
    note = log.note(dataflow, _ATTEMPT) or {}
    try:
        return Attempt(
            **{field_.name: note[field_.name] for field_ in fields(Attempt) if field_.name in note}
        )
    except TypeError:
        return None


def find_decision_since(log: WatermarkLog, dataflow: str, time: str) -> Entry | None:
    """Return the newest decision after an attempt; None if there is none. It may have solved its failure.

    Args:
        log: the log.
        dataflow: the dataflow's name.
        time: the attempt's.
    """
    attempted_at = datetime.fromisoformat(time)
    for entry in log.history(dataflow):
        if datetime.fromisoformat(entry.time) <= attempted_at:
            return None
        if entry.is_decision:
            return entry
    return None


def repeated_warnings(log: WatermarkLog, dataflow: str, warnings: Sequence[str]) -> frozenset[str]:
    """Return the warnings that earlier runs gave, whatever their numbers and examples; note the others."""
    if not warnings:
        return frozenset()
    try:
        stored = (log.note(dataflow, _SAID) or {}).get("warnings")
        given_before = (
            [warning for warning in stored if isinstance(warning, str)] if isinstance(stored, list) else []
        )
        new = [warning for warning in dict.fromkeys(map(_kind, warnings)) if warning not in given_before]
        if new:
            log.put_note(dataflow, _SAID, {"warnings": [*given_before, *new][-_MAX_SAID:]})
    except StrandlineError:
        return frozenset()
    return frozenset(warning for warning in warnings if _kind(warning) not in new)


def _kind(warning: str) -> str:
    return _SAMPLE.sub("#", warning)


def note_failed_start(
    log: WatermarkLog, dataflow: str, error: StrandlineError, run_id: str | None = None
) -> Outcome:
    """Return the outcome of a run that failed before its loop, with the state unchanged, and note it.

    If the state cannot be read, that is its error.
    """
    try:
        newest = log.newest(dataflow)
    except StrandlineError as unreadable:
        newest, error = None, unreadable
    before = newest.state() if newest else {}
    outcome = Outcome(dataflow, run_id, before, newest.number if newest else 0, newest=newest, error=error)
    note_attempt(log, outcome)
    return outcome
