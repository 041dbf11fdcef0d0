"""One run of one dataflow: it writes and commits slice after slice, each exactly once.

A slice is one number. Its *intent* is stored before the write, and says everything that the state after it
depends on. The table's commit carries the number as an idempotent tag and the intent's id. The entry is
appended only after that commit was looked up. So a run that dies anywhere leaves either nothing, or an
intent that the next run finishes the same way.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic

from partitions.errors import BadPart, Conflict, SchemaEvolved, SourceError, StrandlineError, TooManyBadParts
from partitions.path.bad_files import is_loaded, is_outdated
from partitions.plan import Plan, Slice, is_repeat, pluralize
from partitions.request import Forced, LateOnly, Repair, Replay, ReplayCommits, ReplayFiles
from partitions.slow_slices import SlowSlices
from resources.kinds.contract.planning import RunsAhead
from resources.kinds.contract.reading import ReadsVersions, ReportsBatches
from resources.kinds.contract.slices import SliceT, describe_failures
from resources.loop.appending import follow_up
from resources.loop.context import RunContext
from resources.loop.ending import finish_apart
from resources.loop.giving_up import close_intent, drop_decision
from resources.loop.guards.definition import check_definition, check_intent
from resources.loop.guards.schema import pinned_schema
from resources.loop.holder_wait import HolderPolicy, abandoned_intent
from resources.loop.interruption_retries import retry_interruptions
from resources.loop.protocol import commit_slice, resume_slice
from resources.loop.recorded import recorded_slice
from resources.loop.rows.bad_parts import SHOWN, SKIPPED, BadPartPolicy
from resources.loop.run_events import execute_and_tell
from resources.loop.verifying import guarded_head
from resources.notes.last_run import note_attempt
from resources.notes.looks import note_awaited, note_look
from resources.notes.repeated_warnings import repeated_warnings
from resources.outcome import Committed, NotCommitted, Outcome, Step
from resources.spark.background import keep_session_alive
from resources.spark.failures import root_cause
from resources.tables.unreadable import UNREADABLE_VERSION
from resources.watermarks.compaction import RetentionPolicy, compact_log
from resources.watermarks.entry import Entry, Intent


class _NoColumnTypesError(Exception):
    """Raised if the first commit has skipped everything: the run waits for input that shows types."""


@dataclass
class Loop(Generic[SliceT]):
    """A run of one dataflow.

    Attributes:
        context: the constants of the run.
        holder_policy: how long to wait for the holder of an open intent.
        retention: how much of the log stays.
    """

    context: RunContext[SliceT]
    holder_policy: HolderPolicy = field(default_factory=HolderPolicy)
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)

    def run(self) -> Outcome:
        """Finish the open intent, then load slices until nothing is due or ``max_slices`` is reached.

        Returns:
            the outcome; if the run failed, ``error`` says why, and earlier commits stay counted.
        """
        execution = _RunExecution(self.context, self.holder_policy, self.retention)
        return execute_and_tell(execution.execute, self.context.events)

    def infer(self) -> tuple[str | None, list[str]]:
        """Return the schema that a first run would pin, as text, with its warnings. Writes nothing.

        None if nothing is due, or no input shows a schema. A schema that is pinned already does not count.

        Raises:
            BadPart: the sample cannot be read.
        """
        run = self.context
        outcome = Outcome(run.name, run.run_id, {}, 0)
        due = run.kind.planning.plan(None, run.now).slices
        with run.staging.emptied():
            bad_parts = BadPartPolicy(run, outcome, limited=False)
            pinned = pinned_schema(run, outcome, due, bad_parts) if due else None
        left_out = [f"left out of the sample: {bad.part}: {bad.why}" for bad in bad_parts.not_sampled]
        return pinned, [*outcome.warnings, *left_out, *run.kind.reading.warnings]

    def prepare_next(self) -> None:
        """Prefetch the table state that the next run's first write needs.

        Call it after reporting the outcome; it returns at once.
        """
        self.context.prepare_next()


class _RunExecution(Generic[SliceT]):
    """The execution of one run, and its outcome."""

    def __init__(
        self, run: RunContext[SliceT], holder_policy: HolderPolicy, retention: RetentionPolicy
    ) -> None:
        self._run, self._holder_policy, self._retention = run, holder_policy, retention
        self._outcome = Outcome(run.name, run.run_id, {}, 0)
        self._bad_parts = BadPartPolicy(run, self._outcome)
        self._source_error: StrandlineError | None = None

    def execute(self) -> Outcome:
        """Run, and return the outcome; errors are part of it."""
        started, run, outcome = time.monotonic(), self._run, self._outcome
        try:
            # A look at bad parts stages, too.
            with run.staging.emptied(), keep_session_alive(lambda: vars(run).get("spark")):
                self._begin_at(run.log.newest(run.name))
                with suppress(_NoColumnTypesError):
                    self._recover()
                    guarded_head(run, outcome.newest)  # also if there is nothing to do
                    follow_up(run, outcome.newest)
                    self._advance()
                outcome.error = self._source_error or self._failed_units()
        except StrandlineError as error:
            outcome.error = error
        except Exception as error:  # noqa: BLE001 - what was committed stays counted, whatever comes
            outcome.error = StrandlineError(
                f"dataflow {run.name}: {type(error).__name__}: {root_cause(error)}", code="internal"
            )
            outcome.error.__cause__ = error
        self._bad_parts.report()
        if outcome.committed:
            self._compact()
        warnings = [*run.kind.reading.warnings, *run.set_aside.warnings, *run.withheld.warnings]
        outcome.warnings.extend(warning for warning in warnings if warning not in outcome.warnings)
        outcome.warnings.extend(filter(None, [run.rescued.warning, *run.rule_counts.warnings(run.dataflow)]))
        outcome.seconds = time.monotonic() - started
        outcome.repeated = repeated_warnings(run.log, run.name, outcome.plan.warnings if outcome.plan else ())
        # Late files that are loaded say nothing of what is above the watermark.
        # Nor does a chunk of a replay, whose failures hold no run back: the replay notes how it ended.
        if not self._replays and (outcome.error is not None or not isinstance(run.request, LateOnly)):
            note_attempt(run.log, outcome)
            note_look(run.log, outcome)
            note_awaited(run.log, outcome)
        return outcome

    @property
    def _skips_loaded_chunk(self) -> bool:
        """Whether the run repairs, or replays a chunk that it skips if the chunk is loaded already."""
        return isinstance(self._run.request, Replay | ReplayFiles | ReplayCommits | Repair)

    @property
    def _replays(self) -> bool:
        request = self._run.request
        return self._skips_loaded_chunk or (isinstance(request, Forced) and request.reason is not None)

    def _begin_at(self, entry: Entry | None) -> None:
        """Start after an entry, which does not count as the run's; raise if the definition changed since."""
        self._outcome.newest = entry
        self._outcome.before = entry.state() if entry else {}
        self._outcome.started_at_number = entry.number if entry else 0
        check_definition(self._run.dataflow, entry, self._run.log)

    def _recover(self) -> None:
        """Finish or abandon the intent that a dead run left open; raise DataflowHeld if its holder lives."""
        entry, intent = abandoned_intent(self._run, self._outcome.newest, self._holder_policy)
        if (entry and entry.id) != (self._outcome.newest and self._outcome.newest.id):
            self._begin_at(entry)
        if intent is None:
            return
        if intent.is_decision:
            self._outcome.newest = drop_decision(self._run, entry, intent)
            return
        if intent.writes_apart:
            self._outcome.newest = finish_apart(self._run, entry, intent)
            return
        is_of_other = intent.why == "replay" and not self._skips_loaded_chunk
        if intent.why in ("promote", "reconcile") or is_of_other:
            # No run does their work: the same command takes the next number, if this one did not come to it.
            reason = f"the {intent.why} was interrupted; start it again"
            self._outcome.newest = close_intent(self._run, entry, intent, reason)
            return
        check_intent(self._run.dataflow, intent)
        self._resume(intent)

    def _resume(self, intent: Intent) -> None:
        """Finish an intent, or abandon its number so that its work is planned again with the current files."""
        run, outcome = self._run, self._outcome
        slice_ = recorded_slice(run.log, run.kind, intent)
        outcome.warnings += [
            f"{SKIPPED} {line}" for line in describe_failures(dict.fromkeys(slice_.failures, slice_))
        ]
        why = self._record(resume_slice(run, outcome.newest, intent, slice_))
        if why is None or isinstance(why, Conflict):  # given up by another run
            return
        if isinstance(why, SchemaEvolved):
            outcome.warnings.append(
                f"slice {intent.number} of a run that died was abandoned, and its work is planned again: "
                f"{why.message}"
            )
            return
        if not isinstance(why, BadPart):
            raise why
        if is_outdated(why.code) or why.code == UNREADABLE_VERSION:
            outcome.warnings.append(
                f"slice {intent.number} of a run that died was abandoned, and its work is planned again: "
                f"{why.part}: {why.why}"
            )
            return
        pinned = run.log.get_schema(intent.pinned)
        try:
            rest = self._skip_bad_parts(slice_, why, pinned)
        except TooManyBadParts as too_many:
            if self._bad_parts.leave_out_all(slice_, too_many):
                return
            raise
        if rest is not None:
            self._load(*rest)
        elif not self._bad_parts.leave_out(slice_, why, pinned):
            self._load_before(slice_, why, pinned)
            raise why

    def _advance(self) -> None:
        """Plan and load slice after slice; plan again at the end, for what arrived in the meantime."""
        run, outcome = self._run, self._outcome
        remaining = run.dataflow.watermark.max_slices
        slow = SlowSlices(run.dataflow.watermark.checkpoint.interval_secs)
        while remaining > 0:
            plan = self._plan()
            if plan.slices and isinstance(run.kind.planning, RunsAhead):
                self._source_error = run.kind.planning.run_ahead(run.spark, outcome.newest)
                outcome.batches = outcome.batches or []
                plan = self._plan()
            due = self._bad_parts.without_left_out(plan.slices)
            pinned = self._pinned(due) if due else None
            if pinned is None:
                return
            pending = deque(self._at_one_version(self._bad_parts.without_left_out(plan.slices)))
            is_complete = True
            while pending and remaining > 0:
                slice_ = pending.popleft()
                parts = slice_.halve() if slow.halve_next else (slice_,)
                pending.extendleft(reversed(parts[1:]))
                self._pace()
                before = outcome.newest
                committed = self._load(parts[0], pinned, pending)
                if committed is None:
                    is_complete = False
                    # What is new goes first now, and what is left beside it is planned again, on the state after that.
                    pending = deque(slice_ for slice_ in pending if slice_.why == "run")
                    continue
                if committed.entry.pinned and committed.entry.pinned != (before and before.pinned):
                    pinned = run.log.get_schema(committed.entry.pinned)
                slow.note(committed.seconds)
                if not is_repeat(slice_):
                    remaining -= 1
            if not run.kind.planning.replans_after_load or (self._skips_loaded_chunk and is_complete):
                return

    def _plan(self) -> Plan[SliceT]:
        run, outcome = self._run, self._outcome
        plan = retry_interruptions(lambda: run.kind.planning.plan(outcome.newest, run.now, run.request))
        outcome.plan = outcome.plan or plan
        outcome.calls += plan.calls
        outcome.warnings.extend(warning for warning in plan.warnings if warning not in outcome.warnings)
        run.notify(Step.PLANNED, plan.why)
        return plan

    def _pinned(self, due: list[SliceT]) -> str | None:
        with self._run.staging.emptied():
            pinned = retry_interruptions(
                lambda: pinned_schema(self._run, self._outcome, due, self._bad_parts)
            )
        if pinned is None:
            self._bad_parts.warn_of_waiting()
        return pinned

    def _at_one_version(self, slices: list[SliceT]) -> list[SliceT]:
        reading = self._run.kind.reading
        return reading.at_one_version(slices) if isinstance(reading, ReadsVersions) else slices

    def _pace(self) -> None:
        """Wait until enough time has passed since the last slice's start."""
        pacing = self._run.kind.planning.pacing.total_seconds()
        if pacing and self._outcome.committed:
            self._holder_policy.wait(max(0.0, pacing - self._outcome.committed[-1].seconds))

    def _skip_bad_parts(
        self, slice_: SliceT, bad: BadPart, pinned: str, later: Iterable[SliceT] = ()
    ) -> tuple[SliceT, str] | None:
        """Return the slice without its bad parts, and its schema; None if the policy does not allow it.

        Until the first commit, the schema is inferred again from the remaining parts, also from later
        slices: a bad part shows no type.

        Raises:
            _NoColumnTypesError: no remaining part shows types.
        """
        rest = self._bad_parts.skip_bad_parts(slice_, bad, pinned)
        entry = self._outcome.newest
        if rest is None or (entry is not None and entry.pinned):
            return None if rest is None else (rest, pinned)
        pinned_by_rest = self._pinned([rest, *later])
        if pinned_by_rest is None:
            warnings = self._outcome.warnings
            warnings[:] = [warning for warning in warnings if not warning.startswith(SKIPPED)]
            raise _NoColumnTypesError
        return rest, pinned_by_rest

    def _load(self, slice_: SliceT, pinned: str, later: Iterable[SliceT] = ()) -> Committed | None:
        """Commit a slice; skip its bad parts, or commit the parts before them and raise.

        If too many parts are bad, nothing of the slice is committed.

        Returns:
            the commit; None if an unreadable late or released file is left out from now on, so that the
                slice must be planned again.
        """
        whole = slice_
        while (
            why := self._record(commit_slice(self._run, self._outcome.newest, slice_, pinned))
        ) is not None:
            if isinstance(why, SchemaEvolved):
                pinned = self._evolved(why)
                continue
            if not isinstance(why, BadPart):
                raise why
            try:
                rest = self._skip_bad_parts(slice_, why, pinned, later)
            except TooManyBadParts as too_many:
                if self._bad_parts.leave_out_all(whole, too_many):
                    return None
                raise
            if rest is None and self._bad_parts.leave_out(slice_, why, pinned):
                return None
            if rest is None:
                self._load_before(slice_, why, pinned)
                raise why
            slice_, pinned = rest
        return self._outcome.committed[-1]

    def _evolved(self, evolved: SchemaEvolved) -> str:
        """Warn that the next commit changes the schema; return the new schema's text."""
        self._outcome.warnings.append(evolved.message)
        return evolved.pinned

    def _record(self, result: Committed | NotCommitted) -> StrandlineError | None:
        """Record a number's result in the outcome; return the problem of its slice, if it has one."""
        self._outcome.newest = result.entry
        if isinstance(result, NotCommitted):
            return result.why
        self._outcome.committed.append(result)
        reading = self._run.kind.reading
        if isinstance(reading, ReportsBatches) and result.slice is not None:
            batches = reading.reports(result.slice)
            self._outcome.batches = [*(self._outcome.batches or ()), *batches]
        return result.changed

    def _load_before(self, slice_: SliceT, bad: BadPart, pinned: str) -> None:
        shorter = slice_.up_to(bad) if not is_loaded(bad.code) else None
        if shorter is not None:
            self._load(shorter, pinned)

    def _failed_units(self) -> StrandlineError | None:
        """Return the error for work units that could not be read; None if all were. They hold nothing back."""
        outcome = self._outcome
        unread: dict[Any, Slice] = {}
        for slice_ in (committed.slice for committed in outcome.committed if committed.slice):
            # a slice that another run began may have passed over what this one could read
            unread |= dict.fromkeys(slice_.failures, slice_)
            for key in slice_.keys:
                unread.pop(key, None)
        if not unread:
            return None
        outcome.warnings = [warning for warning in outcome.warnings if not warning.startswith(SKIPPED)]
        reasons = [f"{SKIPPED} {line}" for line in describe_failures(unread)]
        rest = pluralize(max(0, len(reasons) - SHOWN), "more reason")
        more = f"; and {rest} (strandline ledger {self._run.name})" if len(reasons) > SHOWN else ""
        return SourceError(
            f"dataflow {self._run.name}: {pluralize(len(unread), 'work unit')} could not be read; later runs retry them."
            f" {'; '.join(reasons[:SHOWN])}{more}",
            code="failed_units",
        )

    def _compact(self) -> None:
        """Compact the log. A failure becomes a warning; the next run tries again."""
        try:
            compact_log(self._run.log, self._run.name, self._outcome.newest, self._retention, self._run.now)
        except StrandlineError as error:
            self._outcome.warnings.append(f"the log was not compacted: {error.message}")


def clock() -> datetime:
    """Return the wall clock's time in UTC; callers read it once per run."""
    return datetime.now(UTC)
