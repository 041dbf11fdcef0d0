"""A note beside the log of the last attempt to load a dataflow: a run, or looks that failed since.

Every run writes it at its end. The log tells what was committed. A run that failed before it committed
anything leaves no entry, and without DAGSTER_HOME no run is recorded either: only the note tells of it.
Sensors, ``watch`` and ``plan`` look for new data without a run. If the source does not answer them, no run
starts, so failed looks join the note. The first look that succeeds ends this failure.

The note is a convenience: a store that refuses it fails no run, no decision depends on it, and if it is
missing, the last attempt is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar

from partitions.errors import BadFile, BadPart, ProviderError, SourceError, StrandlineError, TooManyBadParts
from partitions.path.bad_files import is_loaded
from partitions.state_of_kind import remembers_files
from resources.outcome import Outcome, error_json
from resources.watermarks.entry import Entry, utc_now
from resources.watermarks.log import WatermarkLog

Result = TypeVar("Result")

_ATTEMPT = "attempt"
_BAD = ("failed", "blocked")
_UNDECIDED = ("held", "skipped")
_FLAGS = ("source_failed", "source_unanswered", "only_replays_failed")
"""The flags of a note, in the order of its fields."""


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
        source_failed: whether the run ended because its source, or a new file of it, could not be read.
        source_unanswered: whether it ended before it had a plan, since the source gave none.
        only_replays_failed: whether all runs of the current series of failures were replays.
    """

    run: Attempt | None = None
    look: Attempt | None = None
    source_failed: bool = False
    source_unanswered: bool = False
    only_replays_failed: bool = False

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
            *(bool(stored.get(flag)) for flag in _FLAGS),
        )

    def put(self, log: WatermarkLog, dataflow: str) -> None:
        """Store the note."""
        run = asdict(self.run) if self.run else {}
        look = asdict(self.look) if self.look else None
        flags = {flag: getattr(self, flag) for flag in _FLAGS}
        log.put_note(dataflow, _ATTEMPT, {**run, "look": look, **flags})

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
    def waits_for_source(self) -> bool:
        """Whether a look that finds the source well ends a failure."""
        return self.look is not None or self.source_failed

    @property
    def failures(self) -> int:
        """How many runs and looks have failed one after the other."""
        return self.last.failures if self.last else 0

    def answered(self, attempt: Attempt, *, has_work: bool) -> tuple[Attempt, bool]:
        """Return the attempt that counts after a look that succeeded, and whether its failure is over.

        The failure of looks is over; the run before them may have failed for another reason. That of a run
        without an answer is over, too, and that of a bad new file if nothing is left to load.

        Args:
            attempt: the last one, by the note or by Dagster.
            has_work: whether the look found something to load.
        """
        run_is_over = self.source_unanswered or (self.source_failed and not has_work)
        if attempt == self.look:
            if self.run is None or self.run.error is None or run_is_over:
                return attempt, True
            attempt = self.run
        return attempt, attempt == self.run and attempt.error is not None and run_is_over

    @property
    def is_ended_by_replay(self) -> bool:
        """Whether a replay that succeeds ends the failure: no run or look for new data has failed."""
        return self.failing_since is None or (self.only_replays_failed and self.look is None)


def note_attempt(log: WatermarkLog, outcome: Outcome, *, is_replay: bool = False) -> None:
    """Note how a run ended; if the store failed, or fails now, the previous note stays.

    A replay in place is one run. If it succeeds, the previous note stays while runs or looks fail: it tells
    nothing of new data. A look for new data ends no failure of a replay, which read other data.

    Args:
        log: the log with the note.
        outcome: of the run; of a replay, of all its chunks.
        is_replay: whether it is of a replay.
    """
    if isinstance(outcome.error, ProviderError):
        return  # the store has just failed, and would be waited for once more
    now, status = utc_now(), outcome.status
    with suppress(StrandlineError):
        before = AttemptNote.read(log, outcome.dataflow) if outcome.error or is_replay else AttemptNote()
        if is_replay and outcome.error is None and not before.is_ended_by_replay:
            return
        only_replays = before.only_replays_failed
        if status in _BAD:
            only_replays = is_replay and before.is_ended_by_replay
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
        note = AttemptNote(
            attempt,
            source_failed=not is_replay and _source_failed(outcome),
            source_unanswered=not is_replay and _is_unanswered(outcome),
            only_replays_failed=since is not None and only_replays,
        )
        note.put(log, outcome.dataflow)


def _source_failed(outcome: Outcome) -> bool:
    """Return whether the failure is over once a look finds nothing to load: bad files were removed, say.

    A look searches for new files: late and released ones that are bad, loaded ones that changed, and windows
    that wait for their next try are not over then.
    """
    error, plan = outcome.error, outcome.plan
    if plan is None:
        return isinstance(error, SourceError)
    is_bad_file = isinstance(error, BadFile | TooManyBadParts) and not is_loaded(error.code)
    return is_bad_file and remembers_files(plan.kind) and not outcome.left_out


def _is_unanswered(outcome: Outcome) -> bool:
    """Return whether the source gave no answer, so that the run has no plan; a bad part is an answer."""
    error = outcome.error
    return outcome.plan is None and isinstance(error, SourceError) and not isinstance(error, BadPart)


def note_stop(log: WatermarkLog, dataflow: str, run_id: str | None = None) -> None:
    """Note that the user stopped a run; the next run finishes a slice that it has left open."""
    with suppress(StrandlineError):
        note = AttemptNote.read(log, dataflow)
        stopped = Attempt(
            utc_now(), "stopped", failing_since=note.failing_since, run_id=run_id, failures=note.failures
        )
        AttemptNote(stopped, only_replays_failed=note.only_replays_failed).put(log, dataflow)


def noted_look(
    log: WatermarkLog,
    dataflow: str,
    look: Callable[[], Result],
    has_work: Callable[[Result], bool | None],
    on_failure: Callable[[Attempt], None] = lambda _: None,
) -> Result:
    """Look for new data, and return what the look returns; note whether it failed.

    A look that succeeds ends the failure of looks. If it finds no work, it also ends that of a run that could
    not read its source, or a file that is gone; with work the next run shows whether it can.

    Args:
        log: the log with the note. If its store fails, the note stays as it is.
        dataflow: the dataflow's name.
        look: looks for new data.
        has_work: returns whether a run has something to load; None if the source was not asked, which
        ends no failure.
        on_failure: called with a failed look, also if the store did not take the note, but not if the store
        itself failed the look.

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
    if (work := has_work(result)) is not None:
        _note_successful_look(log, dataflow, has_work=work)
    return result


def _note_failed_look(log: WatermarkLog, dataflow: str, error: Exception) -> Attempt | None:
    """Note a failed look, and return it; None if the store failed, or the dataflow is only held or waits."""
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
    return look_without_note(error)


def look_without_note(error: StrandlineError) -> Attempt:
    """Return a failed look that the store does not take: it knows of none before it (``failed_looks`` 0)."""
    now = utc_now()
    return Attempt(now, "failed", error_json(error), now)


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


def attempt_after_look(
    log: WatermarkLog, dataflow: str, attempt: Attempt | None, *, has_work: bool | None
) -> tuple[Attempt | None, bool]:
    """Return the attempt that counts after a look by this command, and whether its failure is over.

    Notes nothing: the next look or run ends the failure.

    Args:
        log: the log with the note.
        dataflow: the dataflow's name.
        attempt: the last one.
        has_work: whether the look found something to load; None if it failed, or asked no source.

    Raises:
        ProviderError: if the store cannot be read.
    """
    if attempt is None or attempt.error is None or has_work is None:
        return attempt, False
    return AttemptNote.read(log, dataflow).answered(attempt, has_work=has_work)


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


def note_failed_start(
    log: WatermarkLog,
    dataflow: str,
    error: StrandlineError,
    run_id: str | None = None,
    *,
    is_replay: bool = False,
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
    note_attempt(log, outcome, is_replay=is_replay)
    return outcome
