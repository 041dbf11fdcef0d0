"""A note beside the log of the last attempt to load a dataflow: a run, or looks that failed since.

Every run writes it at its end. The log tells what was committed. A run that failed before it committed
anything leaves no entry, and without DAGSTER_HOME no run is recorded either: only the note tells of it.
Sensors, ``watch`` and ``plan`` look for new data without a run. If the source does not answer them, no run
starts, so failed looks join the note. The first look that succeeds ends this failure.

The note is a convenience: a store that refuses it fails no run, no decision depends on it, and if it is
missing, the last attempt is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar

from partitions.errors import ProviderError, SourceError, StrandlineError
from resources.outcome import Outcome, error_json
from resources.watermarks.entry import Entry, utc_now
from resources.watermarks.log import WatermarkLog

Result = TypeVar("Result")

_ATTEMPT, _SAID = "attempt", "said"
_BAD = ("failed", "blocked")
_UNDECIDED = ("held", "skipped")
_MAX_SAID = 200

_SAMPLE = re.compile(r"'[^']*'|(?<![\w:.,-])\d[\d,]*(?![\w:.-])")
"""The parts of a warning that change from run to run: counts and examples."""


@dataclass(frozen=True)
class Attempt:
    """The last attempt to load a dataflow: a run, or a look for new data that failed.

    Attributes:
        time: when it ended, ISO in UTC; if it still runs or died, when it started.
        status: as of a run; also ``running``, ``stopped`` if the user ended it, and ``died`` if a run
            started and its process is gone. A look that finds nothing after a run that could not read its
            source is ``nothing``.
        error: code, message and choices; None if it did not fail.
        failing_since: when the first attempt of the current series of failures failed; None if the last
        one did not fail.
        run_id: Dagster's.
        failed_looks: how many looks have failed since the last run or look that did not; 0 of a run.
        failures: how many runs and looks have failed one after the other; 0 if the last one did not fail.
        seconds: how long the run took; None of a look, and of a run that has not ended.
    """

    time: str
    status: str
    error: Mapping[str, Any] | None = None
    failing_since: str | None = None
    run_id: str | None = None
    failed_looks: int = 0
    failures: int = 0
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form (docs/reference/cli.md)."""
        return asdict(self)


@dataclass(frozen=True)
class AttemptNote:
    """The stored note.

    Attributes:
        run: the last run; None before the first.
        look: the last look, if it failed after that run.
        source_failed: whether the run ended because its source could not be read.
    """

    run: Attempt | None = None
    look: Attempt | None = None
    source_failed: bool = False

    @classmethod
    def read(cls, log: WatermarkLog, dataflow: str) -> AttemptNote:
        """Read the note; an empty one if there is none, or it does not parse.

        Raises:
            ProviderError: if the store cannot be read.
        """
        stored = log.note(dataflow, _ATTEMPT) or {}
        look = stored.get("look")
        return cls(
            _attempt_of(stored),
            _attempt_of(look if isinstance(look, dict) else {}),
            bool(stored.get("source_failed")),
        )

    def put(self, log: WatermarkLog, dataflow: str) -> None:
        """Store the note."""
        run = asdict(self.run) if self.run else {}
        look = asdict(self.look) if self.look else None
        log.put_note(dataflow, _ATTEMPT, {**run, "look": look, "source_failed": self.source_failed})

    @property
    def last(self) -> Attempt | None:
        """The last attempt."""
        return self.look or self.run

    @property
    def failing_since(self) -> str | None:
        """When the current series of failures began; None if there is none."""
        since = [
            attempt.failing_since for attempt in (self.run, self.look) if attempt and attempt.failing_since
        ]
        return min(since, default=None)

    @property
    def failures(self) -> int:
        """How many runs and looks have failed one after the other."""
        return self.last.failures if self.last else 0


def note_attempt(log: WatermarkLog, outcome: Outcome) -> None:
    """Note how a run ended; if the store failed, or fails now, the previous note stays."""
    if isinstance(outcome.error, ProviderError):
        return  # the store has just failed, and would be waited for once more
    now, status = utc_now(), outcome.status
    with suppress(StrandlineError):
        before = AttemptNote.read(log, outcome.dataflow) if outcome.error else AttemptNote()
        since = before.failing_since
        since = (since or now) if status in _BAD else since if status in _UNDECIDED else None
        failures = before.failures + 1 if status in _BAD else before.failures if status in _UNDECIDED else 0
        attempt = Attempt(
            now,
            status,
            error_json(outcome.error),
            since,
            outcome.run_id,
            failures=failures,
            seconds=round(outcome.seconds, 3),
        )
        source_failed = isinstance(outcome.error, SourceError) and outcome.plan is None
        AttemptNote(attempt, source_failed=source_failed).put(log, outcome.dataflow)


def note_stop(log: WatermarkLog, dataflow: str, run_id: str | None = None) -> None:
    """Note that the user stopped a run; the next run finishes a slice that it has left open."""
    with suppress(StrandlineError):
        note = AttemptNote.read(log, dataflow)
        stopped = Attempt(
            utc_now(), "stopped", failing_since=note.failing_since, run_id=run_id, failures=note.failures
        )
        AttemptNote(stopped).put(log, dataflow)


def noted_look(
    log: WatermarkLog,
    dataflow: str,
    look: Callable[[], Result],
    has_work: Callable[[Result], bool],
    on_failure: Callable[[Attempt], None] = lambda _: None,
) -> Result:
    """Look for new data, and return what the look returns; note whether it failed.

    A look that succeeds ends the failure of looks. If it finds no work, it also ends that of a run that could
    not read its source; with work the next run shows whether it can.

    Args:
        log: the log with the note. If its store fails, the note stays as it is.
        dataflow: the dataflow's name.
        look: looks for new data.
        has_work: returns whether a run has something to load.
        on_failure: called with a failed look, unless it could not be noted.

    Raises:
        Exception: what the look raises.
    """
    try:
        result = look()
    except Exception as error:
        failed_look = _note_failed_look(log, dataflow, error)
        if failed_look is not None:
            on_failure(failed_look)
        raise
    _note_successful_look(log, dataflow, has_work=has_work(result))
    return result


def _note_failed_look(log: WatermarkLog, dataflow: str, error: Exception) -> Attempt | None:
    """Note a failed look; None if the store fails, or the dataflow is only held or waits."""
    if isinstance(error, ProviderError):
        return None
    if not isinstance(error, StrandlineError):
        message = f"dataflow {dataflow}: {type(error).__name__}: {error}"
        error = StrandlineError(message, code="internal")
    now, status = utc_now(), Outcome(dataflow, None, {}, 0, error=error).status
    if status not in _BAD:
        return None
    with suppress(StrandlineError):
        note = AttemptNote.read(log, dataflow)
        count = 1 + (note.look.failed_looks if note.look else 0)
        look = Attempt(
            now,
            status,
            error_json(error),
            note.failing_since or now,
            failed_looks=count,
            failures=note.failures + 1,
        )
        replace(note, look=look).put(log, dataflow)
        return look
    return None


def _note_successful_look(log: WatermarkLog, dataflow: str, *, has_work: bool) -> None:
    with suppress(StrandlineError):
        note = AttemptNote.read(log, dataflow)
        if note.source_failed and not has_work:
            AttemptNote(Attempt(utc_now(), "nothing")).put(log, dataflow)
        elif note.look is not None:
            replace(note, look=None).put(log, dataflow)


def last_attempt(log: WatermarkLog, dataflow: str) -> Attempt | None:
    """Return the last run, or a look that failed since; None if there is none, or the note does not parse.

    Raises:
        ProviderError: if the store cannot be read.
    """
    return AttemptNote.read(log, dataflow).last


def _attempt_of(stored: Mapping[str, Any]) -> Attempt | None:
    try:
        return Attempt(
            **{field_.name: stored[field_.name] for field_ in fields(Attempt) if field_.name in stored}
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
