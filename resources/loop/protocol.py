"""The commit protocol of one number: intent, write, verify, append, and giving it up (spec 05).

Every method may die anywhere. What it leaves is either nothing, or an intent that :meth:`SliceProtocol.resume` finishes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic

from partitions.dataflow import Dataflow, short_hash
from partitions.errors import BadFile, BadPart, Conflict, Held, NeedsDecision, StrandlineError, TargetError
from partitions.plan import counted
from partitions.sentinels import serialise
from resources.loop import holder as holders
from resources.loop.flow import Flow, Observed, Seen, SliceT
from resources.loop.guards import check_table, claimed, definition_of, in_table, moved, recorded
from resources.loop.lease import renewed
from resources.loop.outcome import Committed, Observer, Outcome, Step
from resources.loop.transform import Batch, transformed
from resources.readers.failures import cause
from resources.spark import EngineLost, leave_behind, tune
from resources.spark_process import engine_lost
from resources.watermarks.entry import Entry, Intent, Replaces, following, new_id, utc_now
from resources.watermarks.lists import SEEN_WORK_UNITS, StoredList
from resources.watermarks.log import OBSERVED, QUARANTINE, WatermarkLog
from resources.writers.target import Landed, TableCommit, TableHead, Tag, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGED_WHILE_READ = "file_changed_while_read"
"""Code of a BadFile whose slice is committed all the same."""


@dataclass
class SliceProtocol(Generic[SliceT]):
    """Commits slices of one dataflow, one number each. Attributes as of :class:`resources.loop.loop.Loop`."""

    dataflow: Dataflow
    flow: Flow[SliceT]
    log: WatermarkLog
    target: Target
    start_spark: Callable[[], SparkSession]
    run_id: str | None
    job_id: str | None
    told: Observer
    _session: SparkSession | None = field(default=None, init=False)

    @property
    def spark(self) -> SparkSession:
        """The run's session, started by the first who asks."""
        if self._session is None:
            self._session = self.start_spark()
        return self._session

    def prepare_next(self) -> None:
        """As :meth:`resources.loop.loop.Loop.prepare_next` says; nothing where this run needed no engine."""
        if self._session is not None:
            leave_behind(self._session, self.target.prepare_next)

    def commit(self, outcome: Outcome, piece: SliceT, pinned: str) -> Committed:
        """Commit a slice as the next number.

        Raises:
            BadPart: some of it cannot be read; the number is given up, or was not taken yet.
            Conflict, Held: another run was faster, or works on the number.
            NeedsDecision: state and table do not belong together.
            TargetError: the write failed for another reason; the intent stays, and the next run finishes it.
        """
        started = time.monotonic()
        self.flow.check(piece)
        intent = self._drafted(outcome, piece, pinned)
        # Before the intent: a query that does not fit its rows must not leave a number that no run can finish.
        rows = self._analysed(outcome.newest, intent, piece)
        self._put(intent)
        with self._holding(intent):
            return self._finish(outcome, intent, piece, started, rows=rows)

    def resume(self, outcome: Outcome, intent: Intent, piece: SliceT) -> Committed:
        """Finish the intent of a run that died: look whether it was written, write it if not, append.

        Raises:
            BadPart: it was not written, and cannot be; the number is given up.
            Conflict: the number was given up by another run, and is appended as abandoned; or another run has finished it.
            NeedsDecision: state and table do not belong together; nothing was written.
        """
        started = time.monotonic()
        holders.activate(intent.id)
        with self._holding(intent):
            landed = self._look(outcome.newest, intent).find(intent.number)
            if landed is None:
                try:
                    self.flow.check(piece)
                except BadPart as bad:
                    if self._give_up(outcome, intent, _reason(bad)):
                        raise
                    landed = self._look(outcome.newest, intent).find(intent.number)
            return self._finish(outcome, intent, piece, started, landed=landed, recovered=True)

    def close(self, outcome: Outcome, intent: Intent, reason: str, *, anew: bool = False) -> None:
        """End the intent of a run that died without reading its slice again: append it if it was written, else give it up.

        Args:
            outcome: what was committed before.
            intent: the run's.
            reason: why.
            anew: whether a decision takes the state anew after it. That always leads on: whatever became of the table, the number is
                abandoned in the log.

        Raises:
            NeedsDecision: state and table do not belong together, or nobody can say who wrote the number.
            TargetError: the table refuses the give-up.
        """
        holders.activate(intent.id)
        with self._holding(intent):
            # What a run had begun for another table is not looked for in the one that the definition names now.
            anew = anew or moved(self.dataflow, outcome.newest)
            head = self._head(outcome.newest, intent) if anew else self._look(outcome.newest, intent)
            landed = _kept(head, intent)
            if landed is None and (not anew or self._can_fence(outcome.newest, head)):
                try:
                    if self._give_up(outcome, intent, reason):
                        return
                    landed = self._head(outcome.newest, intent).find(intent.number)
                except Conflict:
                    raise
                except StrandlineError:
                    if not anew:
                        raise
            if landed is not None and landed.owner == intent.id:
                self._append(outcome, self._entry(outcome.newest, intent, landed))
            elif anew or (landed is not None and landed.gives_up):
                self._abandon(outcome, intent, landed, reason)
            else:
                raise self._skipped(intent)

    @staticmethod
    def _can_fence(entry: Entry | None, head: TableHead) -> bool:
        """Whether a give-up can be written: into the table that the state knows, or where there is no table yet."""
        known = entry is not None and entry.table is not None
        return head.kept and (head.newest is not None or not known)

    def drop(self, outcome: Outcome, intent: Intent) -> None:
        """End the intent of a decision whose process died before its entry: nothing was written, and its number is abandoned.

        Raises:
            Conflict: where the entry came after all.
        """
        entry = _dropped(outcome.newest, intent)
        self._append(outcome, entry)
        self.told(Step.ABANDONED, f"number {entry.number} abandoned: {entry.reason}")

    def foreseen(self, outcome: Outcome, intent: Intent) -> Entry:
        """The entry that :meth:`close` would append for the intent of a run that died."""
        if intent.is_decision:
            return _dropped(outcome.newest, intent)
        landed = _kept(self._head(outcome.newest, intent), intent)
        if landed is not None and landed.owner == intent.id:
            return self._entry(outcome.newest, intent, landed)
        return self._abandoned(outcome, intent, landed, "foreseen")

    def held(self, intent: Intent) -> Held:
        """The error for a number that a living run works on."""
        who = intent.holder
        return Held(
            f"dataflow {self.dataflow.name} is held: number {intent.number} is being {'decided about' if intent.is_decision else 'loaded'} by process {who.pid} on {who.host.partition('/')[0]}"
            f"{f', run {intent.run_id}' if intent.run_id else ''}, since {intent.time}. Nothing was done; run again when it is over"
        )

    def _drafted(self, outcome: Outcome, piece: SliceT, pinned: str) -> Intent:
        """The intent of the next number, with the list of files that it names; nobody knows of it yet."""
        entry, name = outcome.newest, self.dataflow.name
        number = entry.number + 1 if entry else 1
        head = self.guarded(entry)
        self._check_rises(entry, piece)
        intent_id = new_id()
        object_name = f"{number:010d}-{intent_id}"
        file_list = self.log.put_list(name, object_name, self.flow.record(piece))
        self.told(Step.LIST_KEPT, file_list)
        quarantine, passed_over = self._quarantine(entry, piece, object_name)
        size = self.flow.size(piece)
        return Intent(
            id=intent_id,
            number=number,
            dataflow=name,
            kind=self.dataflow.kind,
            app_id=entry.app_id if entry else new_id(),
            why=piece.why,
            before=serialise(entry.state() if entry else {}),
            watermark=serialise(piece.advance(entry.state() if entry else {})),
            lower=serialise(piece.lower) if piece.lower else None,
            upper=serialise(piece.upper),
            definition=definition_of(self.dataflow),
            fingerprint=self.dataflow.fingerprint,
            pinned=self.log.put_schema(name, pinned),
            file_list=file_list,
            files=size.files,
            work_units=size.work_units,
            failed_units=size.failed_units,
            quarantined=passed_over,
            quarantine=quarantine,
            since=serialise(piece.since) if piece.since else None,
            replaces=self._replaces(entry, head, piece),
            modified=self.flow.modified(piece),
            holder=holders.this_process(self.run_id),
            run_id=self.run_id,
            time=utc_now(),
            table_version=head.version,
        )

    @staticmethod
    def _replaces(entry: Entry | None, head: TableHead, piece: SliceT) -> Replaces | None:
        """Which rows the slice's commit deletes. A table of fences alone has none: its columns are replaced, unless somebody has written since."""
        if entry and (entry.replace_table or (entry.new_columns and head.version == entry.table_version)):
            return "table"
        return "own" if piece.replaces else None

    def _check_rises(self, entry: Entry | None, piece: SliceT) -> None:
        """No value of a watermark falls but by a rewind; a plan that would lower one is wrong, or made on another state.

        Raises:
            NeedsDecision: code ``would_fall``.
        """
        before = entry.watermark if entry else "{}"
        after = serialise(piece.advance(entry.state() if entry else {}))
        if not self.flow.covers(after, before):
            raise NeedsDecision(
                f"dataflow {self.dataflow.name}: expected a watermark at or above {before[:500]}, found a slice that ends at {after[:500]}:"
                " nothing was begun. To read files again, rewind",
                code="would_fall",
                choices=(f"strandline state rewind {self.dataflow.name} --to NUMBER --reason TEXT",),
            )

    def _quarantine(self, entry: Entry | None, piece: SliceT, name: str) -> tuple[str | None, int]:
        """The list of all files in quarantine after a slice, and how many it adds."""
        left, added = self.flow.quarantine(entry, piece)
        if left is None:
            return (entry.quarantine if entry else None), added
        return (self.log.put_list(self.dataflow.name, name, left, QUARANTINE) if left.rows else None), added

    def _put(self, intent: Intent) -> None:
        """Put an intent: from here on its number is this slice or an abandoned one, and nothing else."""
        with _taking(intent):
            winner = self.log.put_intent(intent)
            if winner.id != intent.id:
                raise self._beaten(winner)
            self.told(Step.INTENT_PUT, f"slice {intent.number}: {_amount(intent)}")

    def _finish(
        self,
        outcome: Outcome,
        intent: Intent,
        piece: SliceT,
        started: float,
        *,
        rows: DataFrame | None = None,
        landed: Landed | None = None,
        recovered: bool = False,
    ) -> Committed:
        """Write unless it is written, look the commit up, append the entry."""
        observed: Observed = dict
        if landed is None:
            observed = self._write(outcome, intent, piece, rows)
            landed = self._look(outcome.newest, intent).find(intent.number)
        if landed is None:
            raise self._skipped(intent)
        if landed.owner != intent.id:
            return self._taken(outcome, intent, landed)
        landed = self._counted(outcome.newest, landed)
        self.told(Step.VERIFIED, f"slice {intent.number} is version {landed.version} of the table")
        changed = self._changed(piece) if not recovered else None
        size = self.flow.size(piece)
        seen = self._seen(intent, observed)
        self._check_log(intent)
        entry = self._append(outcome, self._entry(outcome.newest, intent, landed))
        done = Committed(
            entry,
            landed.rows,
            size.files,
            size.bytes or 0,
            time.monotonic() - started,
            recovered,
            landed.removed,
            piece,
            seen,
        )
        outcome.committed.append(done)
        self.told(Step.APPENDED, f"slice {intent.number}: {counted(landed.rows, 'row')} of {_amount(intent)}")
        if changed is not None:
            raise changed
        return done

    def _seen(self, intent: Intent, observed: Observed) -> Seen:
        """What the write saw, kept beside the log before its entry is there: it is only read with an entry."""
        seen = observed()
        if seen:
            rows = StoredList(SEEN_WORK_UNITS, [[*key, *value] for key, value in seen.items()])
            self.log.put_list(self.dataflow.name, f"{intent.number:010d}-{intent.id}", rows, OBSERVED)
        return seen

    def _write(self, outcome: Outcome, intent: Intent, piece: SliceT, rows: DataFrame | None) -> Observed:
        after, rewound = claimed(outcome.newest), self._replace_until(outcome.newest, intent) is not None
        tag = Tag(intent.app_id, intent.number, intent.id, after=after, rewound=rewound)
        try:
            df = self._prepared(intent, piece) if rows is None else rows
            room = self.flow.room(piece, intent.replaces, df)
            df, observed = self.flow.observe(df, piece)
            self.target.write(df, tag, intent.watermark, new=intent.table_version is None, room=room)
        except BadPart as unread:
            # Of a slice that another run has begun, and that no run can read any more; one of this run was looked at before its intent.
            if self._give_up(outcome, intent, _reason(unread)):
                raise
            return dict
        except StrandlineError:
            raise
        except Exception as error:
            # The commit may have landed although its answer did not, or another run that finishes this intent was first.
            if self._head(outcome.newest, intent).find(intent.number) is not None:
                return dict
            bad = self._to_blame(intent, piece, error)
            if bad is None and not _refused(error):
                raise TargetError(
                    f"dataflow {self.dataflow.name}: the write of slice {intent.number} into table {self.dataflow.table} failed:"
                    f" {cause(error).rstrip(' .;')}. Nothing is lost: the next run finishes it"
                ) from error
            why = bad or TargetError(
                f"dataflow {self.dataflow.name}: table {self.dataflow.table} refuses the rows of slice {intent.number}: {cause(error).rstrip(' .;')}."
                " schema_mode: strict accepts no change of columns: put the old definition back; or empty the table and load it again",
                choices=(f"strandline state reset {self.dataflow.name} --replace --reason TEXT",),
            )
            if self._give_up(outcome, intent, _reason(why)):
                raise why from error
            return dict
        self.told(Step.WRITTEN, f"slice {intent.number} written")
        return observed

    def _to_blame(self, intent: Intent, piece: SliceT, error: Exception) -> BadPart | None:
        """The part of the source that made Spark fail; None if it is not the source's fault.

        Raises:
            EngineLost: the engine is gone, so nothing can be told of the source.
        """
        if lost := engine_lost(error):
            raise EngineLost.of(self.dataflow.name, f"slice {intent.number} was written", lost) from error
        return self.flow.blame(self.spark, piece, self._pinned(intent), error)

    def _analysed(self, entry: Entry | None, intent: Intent, piece: SliceT) -> DataFrame:
        """The rows of a slice, after Spark has looked at the whole query; nothing is read.

        A query over files that is the last slice's in all but the files was looked at then: Spark does it again in the write.

        Raises:
            BadPart: some of it cannot be read.
            StrandlineError: code ``query``: the query or function does not fit the rows.
        """
        try:
            rows = self._prepared(intent, piece)
            if not _same_query(entry, intent):
                _ = rows.schema  # on Spark Connect nothing is looked at before somebody asks
        except StrandlineError:
            raise
        except Exception as error:
            bad = self._to_blame(intent, piece, error)
            if bad is not None:
                raise bad from error
            raise StrandlineError(
                f"dataflow {self.dataflow.name}: Spark cannot make the rows of slice {intent.number}: {type(error).__name__}:"
                f" {cause(error).rstrip(' .;')}. Nothing was begun. Check sql, transform and source.options",
                code="query",
            ) from error
        return rows

    def _prepared(self, intent: Intent, piece: SliceT | None) -> DataFrame:
        """The rows of the slice as they go into the table."""
        spark = self.spark
        tune(spark, self.flow.size(piece).bytes if piece else 0)
        batch = Batch(
            self.dataflow.name, intent.number, intent.lower, intent.upper, intent.run_id, intent.time
        )
        rows = transformed(spark, self.dataflow, self.flow.read(spark, piece, self._pinned(intent)), batch)
        return self.flow.prepared(rows, piece)

    def _give_up(self, outcome: Outcome, intent: Intent, reason: str) -> bool:
        """Abandon a number: fence it in the table first, so that a writer that may still run cannot commit under it.

        Returns:
            False where such a writer was faster: the slice is in the table, and is finished like any other.
        """
        give_up = Tag(intent.app_id, intent.number, new_id(), gives_up=True)
        new = self._head(outcome.newest, intent).newest is None
        try:
            # The table's own columns fit whatever the definition has become; without a table its first columns are made.
            empty = self._prepared(intent, None) if new else self.target.no_rows(self.spark)
            self.target.write(empty, give_up, intent.before, new=new)
        except Exception as error:
            if self._head(outcome.newest, intent).find(intent.number) is None:
                raise TargetError(
                    f"dataflow {self.dataflow.name}: slice {intent.number} is not loaded ({reason}), and it could not be given up: {cause(error)}."
                    " Trying again does no harm"
                ) from error
        landed = self._head(outcome.newest, intent).find(intent.number)
        if landed is None or landed.owner == intent.id:
            return False
        self.told(Step.FENCED, f"slice {intent.number} given up: {reason}")
        self._abandon(outcome, intent, landed, reason)
        return True

    def _abandon(self, outcome: Outcome, intent: Intent, landed: Landed | None, reason: str) -> None:
        """Append the number with an unchanged watermark: the work is planned again under the next one."""
        self._append(outcome, self._abandoned(outcome, intent, landed, reason))
        self.told(Step.ABANDONED, f"number {intent.number} abandoned: {reason}")

    def _abandoned(self, outcome: Outcome, intent: Intent, landed: Landed | None, reason: str) -> Entry:
        fenced = landed is not None and landed.gives_up
        return following(
            outcome.newest,
            id=landed.owner if fenced and landed and landed.owner else new_id(),
            number=intent.number,
            watermark=intent.before,
            why="abandon",
            reason=reason,
            run_id=intent.run_id,
            job_id=self.job_id,
            lower=intent.lower,
            fingerprint=intent.fingerprint,
            kind=intent.kind,
            app_id=intent.app_id,
            # A number that is given up pins no schema. Where its fence has made the table, the columns there are nobody's either.
            new_columns=_only_fences(outcome.newest, landed),
            **(self._standing(outcome.newest, landed) if fenced and landed else {}),
        )

    def _entry(self, before: Entry | None, intent: Intent, landed: Landed) -> Entry:
        """The entry of an intent whose write has landed."""
        landed = self._counted(before, landed)
        rows, files = (
            (before.total_rows, before.total_files) if before and landed.removed is not None else (0, 0)
        )
        again = intent.replaces == "own"
        return following(
            before,
            id=intent.id,
            number=intent.number,
            watermark=intent.watermark,
            lower=intent.lower,
            upper=intent.upper,
            why=intent.why,
            run_id=intent.run_id,
            job_id=self.job_id,
            rows=landed.rows,
            files=intent.files,
            quarantined=intent.quarantined,
            work_units=intent.work_units,
            failed_units=intent.failed_units,
            quarantine=intent.quarantine,
            total_rows=rows + landed.rows - (landed.removed or 0),
            total_files=files + (0 if again else intent.files),
            modified=intent.modified if intent.modified is not None else before and before.modified,
            fingerprint=intent.fingerprint,
            kind=intent.kind,
            app_id=intent.app_id,
            **self._standing(before, landed),
            definition=short_hash(intent.definition),
            pinned=intent.pinned,
            file_list=intent.file_list,
            since=intent.since or (before.since if before else None),
            replace_until=self._replace_until(before, intent),
            replace_table=bool(before and before.replace_table and intent.replaces != "table"),
            new_columns=False,
        )

    def _replace_until(self, before: Entry | None, intent: Intent) -> str | None:
        """Up to where rows make room after an intent, if they did before it; None once it has come there."""
        until = before.replace_until if before else None
        return None if until is None or self.flow.covers(intent.watermark, until) else until

    def _standing(self, before: Entry | None, landed: Landed) -> dict[str, Any]:
        """What an entry says of its table. Of a commit that changes no file the one before says which file must be there."""
        told = in_table(self.dataflow, landed.commit)
        kept = before.table_file if before and landed.file is None and landed.removed == 0 else landed.file
        return {**told, "table_file": kept}

    def _counted(self, before: Entry | None, landed: Landed) -> Landed:
        return self.target.counted(landed, before.total_rows if before else 0)

    def _check_log(self, intent: Intent) -> None:
        """Raise if the log has lost the intent: an entry on top of a log that was lost would hide that it was.

        Raises:
            NeedsDecision: code ``state_lost``.
        """
        found = self.log.intent(self.dataflow.name, intent.number)
        if found is None or found.id != intent.id:
            raise NeedsDecision(
                f"dataflow {self.dataflow.name}: expected the intent of slice {intent.number} in the watermark log, found"
                f" {'none' if found is None else 'another one'}: the state was lost or restored while the slice was written. Its rows are in the"
                " table. Take the state that the table tells, or empty it and start again",
                code="state_lost",
                choices=self._anew,
            )

    def _append(self, outcome: Outcome, entry: Entry) -> Entry:
        outcome.newest = self.log.append(self.dataflow.name, entry, expected=entry.previous)
        return outcome.newest

    def _taken(self, outcome: Outcome, intent: Intent, landed: Landed) -> Committed:
        """The table holds the number for a give-up, which must still be recorded."""
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
                code=CHANGED_WHILE_READ,
            )
        return None

    def _skipped(self, intent: Intent) -> NeedsDecision:
        return NeedsDecision(
            f"dataflow {self.dataflow.name}: the write of slice {intent.number} reported success, but table {self.dataflow.table} has no commit"
            f" for it: a number that the table holds already under this tag makes it skip a write in silence. Take the state that the table"
            " tells, or empty it and start again",
            code="skipped_write",
            choices=self._anew,
        )

    def _beaten(self, winner: Intent) -> StrandlineError:
        """Another run put the number's intent first: it holds the dataflow, or has finished it already."""
        newest = self.log.newest(self.dataflow.name)
        if newest is not None and newest.number >= winner.number:
            return Conflict(
                f"dataflow {self.dataflow.name}: another run committed number {winner.number} first (run {winner.run_id or 'unknown'})."
                " Nothing of this run was written for it; run again to go on from there"
            )
        return self.held(winner)

    @contextmanager
    def _holding(self, intent: Intent) -> Iterator[None]:
        """Work on an intent, and let others see it."""
        try:
            with renewed(self.log, intent):
                yield
        finally:
            holders.release(intent.id)

    def _pinned(self, intent: Intent) -> str:
        """The schema that the intent was made with."""
        return self.log.get_schema(intent.pinned)

    def guarded(self, entry: Entry | None) -> TableHead:
        """What the table's log says, where state and table belong together and no intent is open.

        Raises:
            NeedsDecision: they do not.
            Conflict, Held: the table is ahead because another run is.
        """
        try:
            return check_table(self.dataflow, entry, self.target)
        except NeedsDecision:
            winner = self.log.open_intent(self.dataflow.name, entry)
            if winner is None:
                raise
            raise self._beaten(winner) from None

    def _look(self, entry: Entry | None, intent: Intent) -> TableHead:
        """What the table's log says, where state, open intent and table belong together.

        Raises:
            NeedsDecision: they do not; or the table holds the number, and nobody can say whose it is.
        """
        try:
            head = check_table(self.dataflow, entry, self.target, intent)
        except NeedsDecision:
            newest = self.log.newest(self.dataflow.name)
            if newest is None or newest.number < intent.number:
                raise
            # Another run took this one for dead, finished the intent or gave it up, and went on: the table is ahead because of it.
            head = self._head(entry, intent)
        if head.cleaned and head.tag >= intent.number and head.find(intent.number) is None:
            raise NeedsDecision(
                f"dataflow {self.dataflow.name}: table {self.dataflow.table} holds number {intent.number} under this dataflow's tag, but the commit"
                " that says whose write it was has been cleaned from the table's log. Take the state that the table tells, or empty it and"
                " start again",
                code="unknown_commit",
                choices=self._anew,
            )
        return head

    def _head(self, entry: Entry | None, intent: Intent) -> TableHead:
        """What the table's log says, whether it belongs to the state or not."""
        if entry is None or entry.table is None:
            begun = None if intent.table_version is None else TableCommit(intent.table_version)
            return self.target.head(begun, intent.app_id)
        return self.target.head(recorded(entry), intent.app_id)

    @property
    def _anew(self) -> tuple[str, str]:
        """The commands that take the state anew."""
        name = self.dataflow.name
        return (
            f"strandline state adopt {name} --reason TEXT",
            f"strandline state reset {name} --replace --reason TEXT",
        )


def _kept(head: TableHead, intent: Intent) -> Landed | None:
    """The commit that carries an intent's number, in the table that the state knows; what another table holds ends no slice."""
    return head.find(intent.number) if head.kept else None


def _only_fences(before: Entry | None, landed: Landed | None) -> bool:
    """Whether a table holds nothing but fences after this one: no rows, and the columns of what was not loaded."""
    if landed is None or not landed.gives_up:
        return bool(before and before.new_columns)
    follows = before is not None and before.new_columns and landed.version == (before.table_version or 0) + 1
    return landed.version == 0 or follows


def _reason(error: StrandlineError) -> str:
    """Why a number is given up, for the log. What follows for the watermark is the policy's to say."""
    return f"{error.part}: {error.why}" if isinstance(error, BadPart) else error.message


def _amount(intent: Intent) -> str:
    """What a slice holds, for people."""
    return counted(intent.files, "file") if intent.kind == "path" else counted(intent.work_units, "work unit")


def _same_query(entry: Entry | None, intent: Intent) -> bool:
    """Whether only the files differ from the last slice's. The code of ``transform`` may have changed under its name."""
    if entry is None or intent.kind != "path" or intent.definition.get("transform"):
        return False
    return entry.pinned == intent.pinned and entry.definition == short_hash(intent.definition)


def _refused(error: Exception) -> bool:
    """Whether Spark or Delta refused the plan of a write, as it would every time, before any row was written."""
    from pyspark.errors import AnalysisException

    return isinstance(error, AnalysisException)


@contextmanager
def _taking(intent: Intent) -> Iterator[None]:
    """Hold a number from before its intent is put; where that fails, this process must not hold it as long as it lives."""
    holders.activate(intent.id)
    try:
        yield
    except BaseException:
        holders.release(intent.id)
        raise


def _dropped(last: Entry | None, intent: Intent) -> Entry:
    """The entry that ends a decision which came to nothing."""
    return following(
        last,
        number=intent.number,
        why="abandon",
        reason=f"{intent.why} was begun and not finished",
        fingerprint=last.fingerprint if last else intent.fingerprint,
        kind=intent.kind,
        app_id=intent.app_id,
    )
