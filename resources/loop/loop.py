"""One run of one dataflow: slices are written and committed one after another, each exactly once (spec 05).

A slice is one number. Its *intent* is put before the write and says everything that the state after it depends on; the
table's commit carries the number as an idempotent tag and the intent's id; only when that commit was looked up is the
entry appended. So a run that dies anywhere leaves either nothing, or an intent that the next run finishes the same way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, Conflict, SourceError, StrandlineError
from partitions.plan import counted
from partitions.request import DUE, LateOnly, Request
from resources.attempts import note_attempt, said_before
from resources.listing import OUTDATED
from resources.loop import holder as holders
from resources.loop.flow import CanLeaveOut, Flow, SliceT
from resources.loop.guards import check_definition, check_intent
from resources.loop.lease import is_renewed
from resources.loop.outcome import Committed, LeftOut, Observer, Outcome, Step
from resources.loop.protocol import CHANGED_WHILE_READ, SliceProtocol
from resources.readers.failures import cause
from resources.watermarks.compaction import History, tidy
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog
from resources.writers.target import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_PASSED_OVER = "passed over"
_SHOWN = 20
"""Bad files, or work units that could not be read, that an error names, each with its whole reason."""


@dataclass
class Loop(Generic[SliceT]):
    """A run of one dataflow.

    Attributes:
        spark: makes the run's session; called only when there is something to write.
        now: the clock of the run, aware; read once by the caller.
        request: what is planned and loaded.
        run_id: Dagster's, if it runs there.
        job_id: Dagster's job.
        observer: hears of every step.
        hold_wait: how long to wait for a living holder.
        run_is_live: asks Dagster about a run on another machine.
        wait: sleeps, or returns early when it is told to stop.
        history: how much of the log stays.
    """

    dataflow: Dataflow
    flow: Flow[SliceT]
    log: WatermarkLog
    target: Target
    spark: Callable[[], SparkSession]
    now: datetime
    request: Request = DUE
    run_id: str | None = None
    job_id: str | None = None
    observer: Observer = lambda step, line: None
    hold_wait: timedelta = timedelta(0)
    run_is_live: holders.RunIsLive = lambda run_id: None
    wait: Callable[[float], None] = time.sleep
    history: History = field(default_factory=History)
    _protocol: SliceProtocol[SliceT] = field(init=False)

    def __post_init__(self) -> None:
        """Bind the protocol of one number to this run."""
        self._protocol = SliceProtocol(
            self.dataflow,
            self.flow,
            self.log,
            self.target,
            self.spark,
            self.run_id,
            self.job_id,
            self.observer,
        )

    def run(self) -> Outcome:
        """Finish what was left unfinished, then load until nothing is above the watermark.

        Returns:
            what was done; where the run failed, ``error`` says why, and what was committed before stays counted.
        """
        started = time.monotonic()
        outcome = Outcome(self.dataflow.name, self.run_id, {}, 0)
        try:
            self._begin_at(outcome, self.log.newest(self.dataflow.name))
            self._recover(outcome)
            self._protocol.guarded(outcome.newest)  # also where there is nothing to do
            self._advance(outcome)
            outcome.error = self._failed(outcome)
        except StrandlineError as error:
            outcome.error = error
        except Exception as error:  # noqa: BLE001 - what was committed stays counted, whatever comes
            outcome.error = StrandlineError(
                f"dataflow {self.dataflow.name}: {type(error).__name__}: {cause(error)}", code="internal"
            )
            outcome.error.__cause__ = error
        self._tell_left_out(outcome)
        if outcome.committed:
            self._tidy(outcome)
        outcome.calls = self.flow.calls
        outcome.warnings.extend(self.flow.remarks)
        outcome.seconds = time.monotonic() - started
        outcome.repeated = said_before(
            self.log, self.dataflow.name, outcome.plan.warnings if outcome.plan else ()
        )
        if outcome.error is not None or not isinstance(
            self.request, LateOnly
        ):  # late files that are loaded say nothing of what is above the watermark
            note_attempt(self.log, outcome)
        return outcome

    def prepare_next(self) -> None:
        """Once a run's outcome is told: have a warm engine do what the next run's first write would wait for. Returns at once."""
        self._protocol.prepare_next()

    def _begin_at(self, outcome: Outcome, entry: Entry | None) -> None:
        """Go on from an entry: nothing that came before it is this run's."""
        outcome.newest = entry
        outcome.before = entry.state() if entry else {}
        outcome.started_at_number = entry.number if entry else 0
        check_definition(self.dataflow, entry, self.log)

    def infer(self) -> tuple[str | None, list[str]]:
        """The schema that a first run would pin, whatever is pinned, as text; and what it would warn of. Writes nothing.

        Raises:
            BadPart: where what it looks at does not read.
        """
        outcome = Outcome(self.dataflow.name, self.run_id, {}, 0)
        due = self.flow.plan(None, self.now).slices
        pinned = self._pin(outcome, due) if due else None
        return pinned, [*outcome.warnings, *self.flow.remarks]

    def _failed(self, outcome: Outcome) -> StrandlineError | None:
        """Work units that could not be read hold nobody back, and the run is no success."""
        slices: list[Any] = [one.piece for one in outcome.committed]
        unread = self.flow.unread(slices)
        if not unread:
            return None
        told = [warning for warning in outcome.warnings if warning.startswith(_PASSED_OVER)]
        outcome.warnings = [warning for warning in outcome.warnings if warning not in told]
        rest = counted(max(0, len(told) - _SHOWN), "more reason")
        more = f"; and {rest} (strandline ledger {self.dataflow.name})" if len(told) > _SHOWN else ""
        return SourceError(
            f"dataflow {self.dataflow.name}: {counted(unread, 'work unit')} could not be read; what failed is asked for again."
            f" {'; '.join(told[:_SHOWN])}{more}",
            code="failed_units",
        )

    def _tell_left_out(self, outcome: Outcome) -> None:
        """Bad late and released files hold nothing back, and the run is no success; where it failed for another reason, they are a warning."""
        if outcome.error is not None:
            outcome.warnings += [f"left out: {one}" for one in outcome.left_out.values()]
        elif outcome.left_out:
            outcome.error = _left_out_error(self.dataflow.name, list(outcome.left_out.values()))

    def _tidy(self, outcome: Outcome) -> None:
        """Keep the log short. What fails here is tried again after the next run, and changes nothing of what was committed."""
        try:
            tidy(self.log, self.dataflow.name, outcome.newest, self.history, self.now)
        except StrandlineError as error:
            outcome.warnings.append(f"the log was not compacted: {error.message}")

    def close(self, reason: str, *, anew: bool = False) -> None:
        """End what a run left open, without loading anything: for decisions about the state.

        Args:
            reason: of the operator.
            anew: whether the state is taken anew after it, as :meth:`SliceProtocol.close` says.

        Raises:
            Held: while that run lives.
            NeedsDecision, TargetError: as :meth:`SliceProtocol.close` says.
        """
        outcome, intent = self._left_open()
        if intent is not None and intent.is_decision:
            self._protocol.drop(outcome, intent)
        elif intent is not None:
            self._protocol.close(outcome, intent, reason, anew=anew)

    def foreseen(self) -> tuple[Entry | None, Intent | None]:
        """What :meth:`close` would end, and the entry that would be the newest then. Changes nothing, starts no Spark.

        Raises:
            Held: while that run lives.
        """
        outcome, intent = self._left_open()
        return (self._protocol.foreseen(outcome, intent) if intent else outcome.newest), intent

    def check_table(self, entry: Entry | None) -> None:
        """Raise as a run would, if state and table do not belong together."""
        self._protocol.guarded(entry)

    def _left_open(self) -> tuple[Outcome, Intent | None]:
        outcome = Outcome(self.dataflow.name, self.run_id, {}, 0)
        outcome.newest = self.log.newest(self.dataflow.name)
        intent = self._open_intent(outcome)
        if intent is not None and self._held(intent):
            raise self._protocol.held(intent)
        return outcome, intent

    def _advance(self, outcome: Outcome) -> None:
        """Plan and load, slice after slice; list again at the end, for what came in the meantime."""
        left, slower = self.dataflow.watermark.max_slices, 0
        while left > 0:
            plan = self.flow.plan(outcome.newest, self.now, self.request)
            outcome.plan = outcome.plan or plan
            outcome.warnings.extend(warning for warning in plan.warnings if warning not in outcome.warnings)
            self.observer(Step.PLANNED, plan.why)
            due = self._not_left_out(outcome, plan.slices)
            pinned = self._pin(outcome, due) if due else None
            if pinned is None:
                return
            pending = deque(self._not_left_out(outcome, plan.slices))
            while pending and left > 0:
                piece = pending.popleft()
                parts = piece.halve() if slower else (piece,)
                pending.extendleft(reversed(parts[1:]))
                self._pace(outcome)
                done = self._load(outcome, parts[0], pinned)
                if done is None:
                    # What is new goes first now, and what is left beside it is planned anew, on the state after that.
                    pending = deque(piece for piece in pending if piece.why == "run")
                    continue
                slower = max(
                    0, slower + (1 if done.seconds > self.dataflow.watermark.checkpoint.interval_secs else -1)
                )
                left -= 1
            if not self.flow.repeats:
                return

    def _not_left_out(self, outcome: Outcome, slices: Sequence[SliceT]) -> list[SliceT]:
        """What is to be loaded, without what this run has left out."""
        flow, parts = self.flow, outcome.left_out
        if not (parts and isinstance(flow, CanLeaveOut)):
            return list(slices)
        rest = (piece if piece.why == "run" else flow.leave_out(piece, parts) for piece in slices)
        return [piece for piece in rest if piece is not None]

    def _pace(self, outcome: Outcome) -> None:
        """Wait until the last slice's start is far enough away."""
        pacing = self.flow.pacing.total_seconds()
        if pacing and outcome.committed:
            self.wait(max(0.0, pacing - outcome.committed[-1].seconds))

    def _load(self, outcome: Outcome, piece: SliceT, pinned: str) -> Committed | None:
        """Commit a slice. Where a file of it is bad, pass it over, or commit the files before it and fail naming it.

        Returns:
            None where the file lies beside the watermark: it is left out from here on, and the slice has to be planned anew.
        """
        while True:
            try:
                return self._protocol.commit(outcome, piece, pinned)
            except BadPart as bad:
                rest = self._passing_over(outcome, piece, bad, pinned)
                if rest is None and self._leave_out(outcome, piece, bad, pinned):
                    return None
                if rest is None:
                    self._load_before(outcome, piece, bad, pinned)
                    raise
                piece = rest

    def _leave_out(self, outcome: Outcome, piece: SliceT, bad: BadPart, pinned: str | None) -> bool:
        """Note that a bad file beside the watermark waits; False for any other, so that the run has to stop at it."""
        if piece.why == "run" or not isinstance(self.flow, CanLeaveOut) or not self.flow.holds(piece, bad):
            return False
        kind = "released" if piece.why == "release" else "late"
        outcome.left_out[bad.part] = LeftOut(kind, bad)
        rest = self.flow.leave_out(piece, (bad.part,))
        if rest is not None and pinned is not None and bad.code != CHANGED_WHILE_READ:
            for other in self.flow.also_bad(self._protocol.spark, rest, pinned, bad):
                outcome.left_out[other.part] = LeftOut(kind, other)
        return True

    def _passing_over(self, outcome: Outcome, piece: SliceT, bad: BadPart, pinned: str) -> SliceT | None:
        """The slice without a bad file, where the policy says so; it is never passed silently."""
        rest = self.flow.without(piece, bad) if bad.code != CHANGED_WHILE_READ else None
        if rest is None:
            return None
        outcome.warnings.append(f"{_PASSED_OVER} {bad.part}: {bad.why}")
        for other in self.flow.also_bad(self._protocol.spark, rest, pinned, bad):
            rest = self.flow.without(rest, other) or rest
            outcome.warnings.append(f"{_PASSED_OVER} {other.part}: {other.why}")
        return rest

    def _load_before(self, outcome: Outcome, piece: SliceT, bad: BadPart, pinned: str) -> None:
        shorter = self.flow.before(piece, bad) if bad.code != CHANGED_WHILE_READ else None
        if shorter is not None:
            self._load(outcome, shorter, pinned)

    def _recover(self, outcome: Outcome) -> None:
        """Finish the intent that another run left open, or give way while its holder lives."""
        deadline = time.monotonic() + self.hold_wait.total_seconds()
        while (intent := self._open_intent(outcome)) is not None:
            held = self._held(intent)
            # A holder that is gone may have finished before it went.
            newest = self.log.newest(self.dataflow.name)
            if (newest and newest.id) != (outcome.newest and outcome.newest.id):
                self._begin_at(outcome, newest)
            elif not held:
                break
            elif time.monotonic() >= deadline:
                raise self._protocol.held(intent)
            else:
                self.wait(1.0)
        if intent is not None and intent.is_decision:
            self._protocol.drop(outcome, intent)
        elif intent is not None:
            check_intent(self.dataflow, intent)
            self._resume(outcome, intent)

    def _held(self, intent: Intent) -> bool:
        """Whether somebody works on an intent. Where neither the process nor Dagster tells, the lease does."""
        known = holders.lives(intent.holder, intent.id, self.run_is_live)
        return is_renewed(self.log, intent, self.wait) if known is None else known

    def _resume(self, outcome: Outcome, intent: Intent) -> None:
        """Finish an intent, or give its number up; what is then above the watermark is planned next, files that have changed as they are now."""
        piece = self.flow.restore(intent, self.log.get_list(intent.file_list, self.flow.list_kind))
        outcome.warnings += [f"{_PASSED_OVER} {line}" for line in self.flow.passed_over(piece)]
        try:
            self._protocol.resume(outcome, intent, piece)
        except Conflict:
            if outcome.newest is None or outcome.newest.number < intent.number:
                raise
        except BadPart as bad:
            if bad.code in OUTDATED:
                outcome.warnings.append(
                    f"slice {intent.number} of a run that died is given up, and planned anew: {bad.part}: {bad.why}"
                )
                return
            pinned = self.log.get_schema(intent.pinned)
            rest = self._passing_over(outcome, piece, bad, pinned)
            if rest is not None:
                self._load(outcome, rest, pinned)
                return
            if self._leave_out(outcome, piece, bad, pinned):
                return
            self._load_before(outcome, piece, bad, pinned)
            raise

    def _open_intent(self, outcome: Outcome) -> Intent | None:
        return self.log.open_intent(self.dataflow.name, outcome.newest)

    def _pin(self, outcome: Outcome, slices: Sequence[SliceT]) -> str | None:
        """Know the schema before the first write. Files without any row wait for one that tells it."""
        if outcome.newest is not None and outcome.newest.pinned:
            known = self.log.get_schema(outcome.newest.pinned)
            self.flow.agree(self._protocol.spark, known)
            return known
        try:
            pinned = self.flow.pin(self._protocol.spark, slices)
        except BadPart as bad:
            # A schema is inferred without a file that will be passed over; it is found bad again when it is loaded.
            rest = [self.flow.without(piece, bad) or piece for piece in slices]
            if rest != list(slices):
                return self._pin(outcome, rest)
            if any(self._leave_out(outcome, piece, bad, None) for piece in slices):
                rest = self._not_left_out(outcome, slices)
                return self._pin(outcome, rest) if rest else None
            before = self._before(slices, bad)
            if not before:
                raise
            return self._pin(outcome, before)
        if pinned is None:
            outcome.warnings.append(
                "no file holds a row yet, so there is no schema to make a table with: they wait, or declare source.schema"
            )
        return pinned

    def _before(self, slices: Sequence[SliceT], bad: BadPart) -> list[SliceT]:
        """What comes before a bad file, over all slices."""
        found: list[SliceT] = []
        for piece in slices:
            if self.flow.holds(piece, bad):
                shorter = self.flow.before(piece, bad)
                return found if shorter is None else [*found, shorter]
            found.append(piece)
        return found


def _left_out_error(dataflow: str, left: Sequence[LeftOut]) -> StrandlineError:
    """The error of a run that has loaded all but these."""
    loaded = [one for one in left if one.bad.code == CHANGED_WHILE_READ]
    waiting = [one for one in left if one not in loaded]
    if not waiting:
        return loaded[0].bad
    told = [str(one) for one in waiting[:_SHOWN]]
    told += [f"and {counted(len(waiting) - _SHOWN, 'more file')}"] if len(waiting) > _SHOWN else []
    it = "it" if len(waiting) == 1 else "them"
    return BadPart(
        f"dataflow {dataflow}: {'; '.join(told)}. Nothing else waits for {it}, and the watermark is not concerned. Mend or remove {it}: each"
        f" run tries {it} again. Or set on_bad_file: quarantine, which sets aside what cannot be read."
        f"{''.join(f' {one.bad.message}' for one in loaded)}",
        part=waiting[0].bad.part,
        why=waiting[0].bad.why,
        code=waiting[0].bad.code,
    )


def clock() -> datetime:
    """The wall clock, read once per run."""
    return datetime.now(UTC)
