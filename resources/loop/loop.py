"""One run of one dataflow: slices are written and committed one after another, each exactly once (spec 05).

A slice is one number. Its *intent* is put before the write and says everything that the state after it depends on; the
table's commit carries the number as an idempotent tag and the intent's id; only when that commit was looked up is the
entry appended. So a run that dies anywhere leaves either nothing, or an intent that the next run finishes the same way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Generic

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, Conflict, Held, NeedsDecision, StrandlineError, TargetError
from partitions.sentinels import serialise
from resources.loop import holder as holders
from resources.loop.flow import Flow, SliceT
from resources.loop.guards import check_definition, check_intent, check_table, definition_of
from resources.loop.outcome import Committed, Observer, Outcome, Step
from resources.loop.transform import Batch, transformed
from resources.readers.failures import cause
from resources.watermarks.entry import Entry, Intent, new_id, utc_now
from resources.watermarks.log import WatermarkLog
from resources.writers.target import Landed, Tag, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Loop(Generic[SliceT]):
    """A run of one dataflow.

    Attributes:
        spark: makes the run's session; called only when there is something to write.
        now: the clock of the run, aware; read once by the caller.
        run_id: Dagster's, if it runs there.
        job_id: Dagster's job.
        observer: hears of every step.
        hold_wait: how long to wait for a living holder.
        run_is_live: asks Dagster about a run on another machine.
        wait: sleeps, or returns early when it is told to stop.
    """

    dataflow: Dataflow
    flow: Flow[SliceT]
    log: WatermarkLog
    target: Target
    spark: Callable[[], SparkSession]
    now: datetime
    run_id: str | None = None
    job_id: str | None = None
    observer: Observer = lambda step, line: None
    hold_wait: timedelta = timedelta(0)
    run_is_live: holders.RunIsLive = lambda run_id: None
    wait: Callable[[float], None] = time.sleep
    _session: SparkSession | None = field(default=None, init=False)
    _pinned: str | None = field(default=None, init=False)

    def run(self) -> Outcome:
        """Finish what was left unfinished, then load until nothing is above the watermark.

        Returns:
            what was done; where the run failed, ``error`` says why, and what was committed before stays counted.
        """
        started = time.monotonic()
        outcome = Outcome(self.dataflow.name, self.run_id, {}, 0)
        try:
            entry = self.log.newest(self.dataflow.name)
            outcome.newest, outcome.before, outcome.started_at_number = (
                entry,
                entry.state() if entry else {},
                entry.number if entry else 0,
            )
            check_definition(self.dataflow, entry)
            self._recover(outcome)
            self._advance(outcome)
        except StrandlineError as error:
            outcome.error = error
        outcome.calls = self.flow.calls
        outcome.seconds = time.monotonic() - started
        return outcome

    def _advance(self, outcome: Outcome) -> None:
        """Plan and load, slice after slice; list again at the end, for what came in the meantime."""
        left, slower = self.dataflow.watermark.max_slices, 0
        while left > 0:
            plan = self.flow.plan(outcome.newest, self.now)
            outcome.plan = outcome.plan or plan
            outcome.warnings.extend(warning for warning in plan.warnings if warning not in outcome.warnings)
            self._told(Step.PLANNED, plan.why)
            if not plan.due:
                return
            if not self._pin(outcome, plan.slices):
                return
            pending = deque(plan.slices)
            while pending and left > 0:
                piece = pending.popleft()
                parts = piece.halve() if slower else (piece,)
                pending.extendleft(reversed(parts[1:]))
                done = self._load(outcome, parts[0])
                slower = max(
                    0, slower + (1 if done.seconds > self.dataflow.watermark.checkpoint.interval_secs else -1)
                )
                left -= 1

    def _load(self, outcome: Outcome, piece: SliceT) -> Committed:
        """Commit a slice; where a file of it is bad, commit the files before it and fail naming it."""
        try:
            return self._commit(outcome, piece)
        except BadFile as bad:
            shorter = self.flow.before(piece, bad.path) if bad.code != "file_changed_while_read" else None
            if shorter is not None:
                self._load(outcome, shorter)
            raise

    def _commit(self, outcome: Outcome, piece: SliceT) -> Committed:
        started = time.monotonic()
        self.flow.check(piece)
        intent = self._intend(outcome, piece)
        with _holding(intent):
            return self._finish(outcome, intent, piece, started)

    def _intend(self, outcome: Outcome, piece: SliceT) -> Intent:
        """Put the intent of the next number: from here on it is this slice or an abandoned number, and nothing else."""
        entry, name = outcome.newest, self.dataflow.name
        number = entry.number + 1 if entry else 1
        head = check_table(self.dataflow, entry, self.target)
        intent_id = new_id()
        file_list = self.log.put_list(name, f"{number:010d}-{intent_id}", self.flow.record(piece))
        self._told(Step.LIST_KEPT, file_list)
        intent = Intent(
            id=intent_id,
            number=number,
            dataflow=name,
            kind=self.dataflow.kind,
            app_id=entry.app_id if entry else new_id(),
            before=serialise(entry.state() if entry else {}),
            watermark=serialise(piece.after),
            lower=serialise(piece.lower) if piece.lower else None,
            upper=serialise(piece.upper),
            definition=definition_of(self.dataflow),
            fingerprint=self.dataflow.fingerprint,
            pinned=self._pinned and self.log.put_schema(name, self._pinned),
            file_list=file_list,
            files=self.flow.size(piece)[0],
            modified=self.flow.modified(piece),
            holder=holders.this_process(self.run_id),
            run_id=self.run_id,
            time=utc_now(),
            table_version=head.version,
        )
        holders.activate(intent_id)
        winner = self.log.put_intent(intent)
        if winner.id != intent_id:
            holders.release(intent_id)
            raise self._beaten(winner)
        self._told(Step.INTENT_PUT, f"slice {number}: {intent.files} files")
        return intent

    def _finish(
        self, outcome: Outcome, intent: Intent, piece: SliceT, started: float, *, recovered: bool = False
    ) -> Committed:
        """Write unless it is written, look the commit up, append the entry."""
        landed = self._landed(intent) if recovered else None
        if landed is None:
            self._write(outcome, intent, piece)
            landed = self._landed(intent)
        if landed is None:
            raise NeedsDecision(
                f"dataflow {self.dataflow.name}: the write of slice {intent.number} reported success, but table {self.dataflow.table} has no commit"
                f" for it: a number that the table holds already under this tag makes it skip a write in silence",
                code="skipped_write",
                choices=(f"strandline state history {self.dataflow.name}",),
            )
        if landed.owner != intent.id:
            return self._taken(outcome, intent, landed)
        self._told(Step.VERIFIED, f"slice {intent.number} is version {landed.version} of the table")
        changed = self._changed(piece) if not recovered else None
        files, size = self.flow.size(piece)
        entry = self._append(outcome, intent, _entry(outcome.newest, intent, landed, self.job_id))
        done = Committed(entry, landed.rows, files, size, time.monotonic() - started, recovered)
        outcome.committed.append(done)
        self._told(Step.APPENDED, f"slice {intent.number}: {landed.rows} rows of {files} files")
        if changed is not None:
            raise changed
        return done

    def _write(self, outcome: Outcome, intent: Intent, piece: SliceT) -> None:
        tag = Tag(intent.app_id, intent.number, intent.id)
        try:
            self.target.append(self._prepared(intent, piece), tag, intent.watermark)
        except StrandlineError:
            raise
        except Exception as error:
            # The commit may have landed although its answer did not, or another run that finishes this intent was first.
            if self._landed(intent) is not None:
                return
            bad = self.flow.blame(self._spark(), piece, self._schema(intent), error)
            if bad is None:
                raise TargetError(
                    f"dataflow {self.dataflow.name}: the write of slice {intent.number} failed: {cause(error)}"
                ) from error
            self._give_up(outcome, intent, bad)
            raise bad from error
        self._told(Step.WRITTEN, f"slice {intent.number} written")

    def _prepared(self, intent: Intent, piece: SliceT | None) -> DataFrame:
        """The rows of the slice as they go into the table."""
        spark = self._spark()
        batch = Batch(
            self.dataflow.name, intent.number, intent.lower, intent.upper, intent.run_id, intent.time
        )
        return transformed(spark, self.dataflow, self.flow.read(spark, piece, self._schema(intent)), batch)

    def _schema(self, intent: Intent) -> str:
        """The schema that the intent was made with."""
        return self.log.get_schema(intent.pinned) if intent.pinned else self._pinned or ""

    def _give_up(self, outcome: Outcome, intent: Intent, bad: BadFile) -> None:
        """Abandon a number: fence it in the table first, so that a writer that may still run cannot commit under it."""
        give_up = Tag(intent.app_id, intent.number, new_id(), gives_up=True)
        try:
            self.target.append(self._prepared(intent, None), give_up, intent.before)
        except Exception as error:
            if self._landed(intent) is None:
                raise TargetError(
                    f"dataflow {self.dataflow.name}: slice {intent.number} failed ({bad.message}), and it could not be given up: {cause(error)}."
                    " The next run tries again"
                ) from error
        self._told(Step.FENCED, f"slice {intent.number} given up: {bad.message}")
        landed = self._landed(intent)
        if landed is not None and landed.owner != intent.id:
            self._abandon(outcome, intent, landed, bad.message)

    def _abandon(self, outcome: Outcome, intent: Intent, landed: Landed, reason: str) -> None:
        """Append the number with an unchanged watermark: the work is planned again under the next one."""
        entry = _entry(outcome.newest, intent, landed, self.job_id).model_copy(
            update={
                "id": landed.owner or new_id(),
                "watermark": intent.before,
                "why": "abandon",
                "reason": reason,
                "rows": 0,
                "files": 0,
                "total_rows": outcome.newest.total_rows if outcome.newest else 0,
                "total_files": outcome.newest.total_files if outcome.newest else 0,
                "modified": outcome.newest.modified if outcome.newest else None,
                "upper": None,
                "file_list": None,
            }
        )
        self._append(outcome, intent, entry)
        self._told(Step.ABANDONED, f"number {intent.number} abandoned: {reason}")

    def _append(self, outcome: Outcome, intent: Intent, entry: Entry) -> Entry:
        outcome.newest = self.log.append(self.dataflow.name, entry, expected=intent.number - 1)
        return outcome.newest

    def _taken(self, outcome: Outcome, intent: Intent, landed: Landed) -> Committed:
        """The table holds our number for somebody else: a give-up that must still be recorded, or a foreign writer."""
        if not landed.gives_up:
            raise NeedsDecision(
                f"dataflow {self.dataflow.name}: table {self.dataflow.table} holds number {intent.number} under this dataflow's tag, written by"
                f" somebody else (version {landed.version}, owner {landed.owner or 'unknown'}): another project uses a copy of this state",
                code="foreign_tag",
                choices=(f"strandline state reset {self.dataflow.name} --reason TEXT",),
            )
        self._abandon(outcome, intent, landed, "given up by another run")
        raise Conflict(
            f"dataflow {self.dataflow.name}: slice {intent.number} was given up by another run; run again, it is planned anew"
        )

    def _changed(self, piece: SliceT) -> BadFile | None:
        """Whether a file changed while it was read; its rows are committed then, and nothing can tell which version's."""
        try:
            self.flow.check(piece)
        except BadFile as bad:
            return BadFile(
                f"file {bad.path} changed while it was being loaded: its rows are in the table, once, but of which version cannot be told."
                " Files must not change once they are there; see `settle` for folders that are not filled by rename",
                path=bad.path,
                code="file_changed_while_read",
            )
        return None

    def _recover(self, outcome: Outcome) -> None:
        """Finish the intent that another run left open, or give way while its holder lives."""
        intent = self._open_intent(outcome)
        deadline = time.monotonic() + self.hold_wait.total_seconds()
        while intent is not None and self._is_held(intent):
            if time.monotonic() >= deadline:
                raise self._held(intent)
            self.wait(1.0)
            outcome.newest = self.log.newest(self.dataflow.name)
            intent = self._open_intent(outcome)
        if intent is None:
            return
        check_intent(self.dataflow, intent)
        piece = self.flow.restore(intent, self.log.get_list(intent.file_list) if intent.file_list else [])
        holders.activate(intent.id)
        with _holding(intent):
            self._finish_left(outcome, intent, piece)

    def _finish_left(self, outcome: Outcome, intent: Intent, piece: SliceT) -> None:
        started, self._pinned = (
            time.monotonic(),
            self.log.get_schema(intent.pinned) if intent.pinned else None,
        )
        try:
            if self._landed(intent) is None:
                self.flow.check(piece)
            self._finish(outcome, intent, piece, started, recovered=True)
        except Conflict:
            if outcome.newest is None or outcome.newest.number < intent.number:
                raise
        except BadFile as bad:
            if outcome.newest is None or outcome.newest.number < intent.number:
                self._give_up(outcome, intent, bad)
            shorter = self.flow.before(piece, bad.path)
            if shorter is not None:
                self._load(outcome, shorter)
            raise

    def _open_intent(self, outcome: Outcome) -> Intent | None:
        return self.log.intent(self.dataflow.name, outcome.newest.number + 1 if outcome.newest else 1)

    def _is_held(self, intent: Intent) -> bool:
        return bool(holders.lives(intent.holder, intent.id, self.run_is_live))

    def _beaten(self, winner: Intent) -> StrandlineError:
        """Another run put the number's intent first: it holds the dataflow, or has finished it already."""
        newest = self.log.newest(self.dataflow.name)
        if newest is not None and newest.number >= winner.number:
            return Conflict(
                f"dataflow {self.dataflow.name}: another run committed number {winner.number} first (run {winner.run_id or 'unknown'})."
                " Nothing of this run was written for it; run again to go on from there"
            )
        return self._held(winner)

    def _held(self, intent: Intent) -> Held:
        who = intent.holder
        return Held(
            f"dataflow {self.dataflow.name} is held: slice {intent.number} is being loaded by process {who.pid} on {who.host.partition('/')[0]}"
            f"{f', run {intent.run_id}' if intent.run_id else ''}, since {intent.time}. Nothing was done; run again when it is over"
        )

    def _pin(self, outcome: Outcome, slices: tuple[SliceT, ...]) -> bool:
        """Know the schema before the first write. Files without any row wait for one that tells it."""
        if self._pinned is None and outcome.newest is not None and outcome.newest.pinned:
            self._pinned = self.log.get_schema(outcome.newest.pinned)
        if self._pinned is None:
            self._pinned = self.flow.pin(self._spark(), slices)
        if self._pinned is None:
            outcome.warnings.append(
                "no file holds a row yet, so there is no schema to make a table with: they wait, or declare source.schema"
            )
        return self._pinned is not None

    def _landed(self, intent: Intent) -> Landed | None:
        return self.target.landed(intent.app_id, intent.number, intent.table_version)

    def _spark(self) -> SparkSession:
        if self._session is None:
            self._session = self.spark()
        return self._session

    def _told(self, step: Step, line: str) -> None:
        self.observer(step, line)


@contextmanager
def _holding(intent: Intent) -> Iterator[None]:
    try:
        yield
    finally:
        holders.release(intent.id)


def _entry(before: Entry | None, intent: Intent, landed: Landed, job_id: str | None) -> Entry:
    return Entry(
        id=intent.id,
        number=intent.number,
        watermark=intent.watermark,
        lower=intent.lower,
        upper=intent.upper,
        why=intent.why,
        run_id=intent.run_id,
        job_id=job_id,
        rows=landed.rows,
        files=intent.files,
        total_rows=(before.total_rows if before else 0) + landed.rows,
        total_files=(before.total_files if before else 0) + intent.files,
        modified=intent.modified,
        time=utc_now(),
        fingerprint=intent.fingerprint,
        kind=intent.kind,
        app_id=intent.app_id,
        table_version=landed.version,
        pinned=intent.pinned,
        file_list=intent.file_list,
    )


def clock() -> datetime:
    """The wall clock, read once per run."""
    return datetime.now(UTC)
