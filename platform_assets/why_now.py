"""Say why a dataflow loads nothing now, or not everything.

The log, the notes, and the plan of the next run tell. See docs/reference/cli.md, why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, strip_dataflow
from partitions.instants import time_text
from partitions.plan import Plan, Slice, is_repeat
from partitions.why_answer import Reason, Status, WhyAnswer
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import TellsUnloaded
from platform_assets.words import comparison_in_words, failed_until_now, holder_in_words
from resources.dagster.run_history import RunHistory
from resources.loop.lease import describe_holder
from resources.loop.missing_source import tells_of_emptied_source
from resources.notes.last_run import Attempt, attempt_after_look, find_decision_since
from resources.notes.reconciled import last_reconciled
from resources.platform.platform import Platform
from resources.watermarks.deleted_rows import deletes_in_force
from resources.watermarks.entry import Entry

_SKIPS = 8
"""The most skips of a plan that an answer lists."""

_IN_FLIGHT = ("running", "queued")
_NEXT_RUN = "the next run"


@dataclass(frozen=True)
class NextRun:
    """What a look at the source says about the next run.

    Attributes:
        plan: its plan; None if there is none.
        error: why there is no plan.
        tried_at: when Dagster requests the next run, ISO; None if nothing is scheduled, or nobody knows.
        idle_sensors: the sensors that are turned off.
        is_now: whether the plan is for the present time; another one says nothing about the source now.
    """

    plan: Plan[Slice] | None = None
    error: StrandlineError | None = None
    tried_at: str | None = None
    idle_sensors: Sequence[str] = ()
    is_now: bool = True

    @property
    def has_work(self) -> bool | None:
        """Whether the look found something to load; None if it failed, or says nothing about the source now."""
        plan = self.plan
        if plan is None or not self.is_now or (plan.due and plan.stop is not None):
            return None
        return plan.due


def look_ahead(platform: Platform, dataflow: Dataflow, now: datetime, *, is_now: bool = True) -> NextRun:
    """Return the plan of the next run, or why there is none. Starts no Spark."""
    try:
        return NextRun(platform.plan(dataflow, now), is_now=is_now)
    except StrandlineError as error:
        return NextRun(error=error)


def why_now(
    platform: Platform,
    dataflow: Dataflow,
    now: datetime,
    history: RunHistory,
    next_run: NextRun | None = None,
) -> WhyAnswer:
    """Return why a dataflow loads nothing now, or not everything.

    Args:
        platform: the resources.
        dataflow: the definition.
        now: the clock, aware.
        history: finds the last attempts.
        next_run: what a look at the source says; None: no look was made, and the log alone tells.

    Raises:
        StrandlineError: if the log cannot be read.
    """
    entry = platform.log.newest(dataflow.name)
    return _WhyNow(platform, dataflow, now, history, next_run or NextRun(), entry).answer()


@dataclass(frozen=True)
class _WhyNow:
    """Finds the answer.

    Attributes:
        entry: the newest entry; None if there is none.
    """

    platform: Platform
    dataflow: Dataflow
    now: datetime
    history: RunHistory
    next_run: NextRun
    entry: Entry | None

    def answer(self) -> WhyAnswer:
        """Return the first thing that keeps the dataflow from loading, then all others."""
        name, log = self.dataflow.name, self.platform.log
        attempt, is_over = attempt_after_look(
            log, name, self.history.last(name, self.entry), has_work=self.next_run.has_work
        )
        failure = None if is_over else self._failure(attempt)
        reasons = [
            *filter(None, [failure]),
            *self._foreseen_stop(failure),
            *self._upstream(),
            *self._emptied(),
            *self._unloaded(),
            *self._rest(),
        ]
        status, summary = self._summary(attempt, failure, reasons)
        if self.next_run.plan is not None and summary.endswith(self.next_run.plan.why):
            reasons = [reason for reason in reasons if reason.what != _NEXT_RUN]
        if is_over and attempt is not None:
            reasons.append(
                Reason("the last attempt", failed_until_now(attempt.failing_since or attempt.time))
            )
        choices = [choice for reason in reasons for choice in reason.choices]
        if status == "due":
            choices.insert(0, f"strandline run {self.dataflow.name}")
        if self.next_run.error is not None:
            choices = [*self.next_run.error.choices, *choices]
        verified = last_reconciled(log, name)
        if verified is not None and not verified.is_settled:
            choices.append(f"strandline reconcile {name} --rows")
        return WhyAnswer(
            name,
            status,
            summary,
            reasons=reasons,
            choices=tuple(dict.fromkeys(choices)),
            verified=comparison_in_words(self.dataflow.kind, verified) if verified else None,
        )

    def _summary(
        self, attempt: Attempt | None, failure: Reason | None, reasons: Sequence[Reason]
    ) -> tuple[Status, str]:
        plan, error = self.next_run.plan, self.next_run.error
        if attempt is not None and attempt.status in _IN_FLIGHT:
            doing = "waits in Dagster's queue" if attempt.status == "queued" else "is at work"
            return "running", f"a run {doing} since {time_text(attempt.time)}"
        if error is not None:
            status: Status = "stopped" if error.exit_code == 4 else "failing"
            return status, f"nothing can be loaded: {strip_dataflow(self.dataflow.name, error.message)}"
        if failure is not None:
            what = "looking for new data fails" if attempt and attempt.failed_looks else "runs fail"
            return "failing", f"{what}{f' since {time_text(failure.since)}' if failure.since else ''}"
        if plan is None:
            return (
                ("waits", f"{reasons[0].line}")
                if reasons
                else ("up_to_date", "nothing is known to be missing")
            )
        if plan.due and plan.stop is not None:
            return "stopped", f"the definition may stop the next run: {plan.why}"
        if plan.due and all(map(is_repeat, plan.slices)):
            waits = any(reason.what != _NEXT_RUN for reason in reasons)
            return "waits" if waits else "up_to_date", plan.why
        if plan.due:
            return "due", f"the next run loads: {plan.why}"
        if reasons:
            return "waits", f"nothing to load now: {plan.why}"
        return "up_to_date", f"everything is loaded: {plan.why}"

    def _failure(self, attempt: Attempt | None) -> Reason | None:
        """Return why the last attempt failed; None if it did not, or a decision since may have solved it."""
        if attempt is None or attempt.error is None or attempt.status in _IN_FLIGHT:
            return None
        if find_decision_since(self.platform.log, self.dataflow.name, attempt.time) is not None:
            return None
        looks = f", {attempt.failed_looks:,} looks in a row" if attempt.failed_looks > 1 else ""
        return Reason(
            f"the last attempt {attempt.status}{looks}",
            strip_dataflow(self.dataflow.name, attempt.error["message"]),
            attempt.failing_since or attempt.time,
            next_try=None if self.next_run.idle_sensors else self.next_run.tried_at,
            run_id=attempt.run_id,
            choices=tuple(attempt.error["choices"]),
        )

    def _foreseen_stop(self, failure: Reason | None) -> Iterator[Reason]:
        """Yield why the next run with rows stops, unless the last attempt stopped for the same reason."""
        stop = self.next_run.plan.stop if self.next_run.plan is not None else None
        if stop is not None and not (failure is not None and failure.why in stop.message):
            yield Reason("the definition", stop.message, choices=stop.choices)

    def _upstream(self) -> Iterator[Reason]:
        """Yield the upstream dataflows that fail, or have not loaded anything."""
        if waits := self.platform.waits_for_upstream(self.dataflow):
            yield Reason("its upstream", waits, choices=("strandline run --all",))
        for name in sorted(self.platform.lineage.all_upstream_dataflows(self.dataflow.name)):
            attempt = self.history.last(name, self.platform.log.newest(name))
            if attempt is None or attempt.error is None:
                continue
            if find_decision_since(self.platform.log, name, attempt.time) is None:
                message = strip_dataflow(name, attempt.error["message"])
                since = attempt.failing_since or attempt.time
                yield Reason(
                    f"upstream {name} {attempt.status}", message, since, choices=(f"strandline why {name}",)
                )

    def _emptied(self) -> Iterator[Reason]:
        """Yield the plan's warning of a source that was emptied: then nobody knows what is missing."""
        warnings = self.next_run.plan.warnings if self.next_run.plan is not None else ()
        yield from (Reason("the source", warning) for warning in warnings if tells_of_emptied_source(warning))

    def _unloaded(self) -> Sequence[Reason]:
        """Return what the log knows to be not loaded; nothing while the state is of another kind."""
        profile = profile_of(self.dataflow)
        is_its_own = self.entry is None or PROFILES[self.entry.kind] is profile
        if not is_its_own or not isinstance(profile, TellsUnloaded):
            return ()
        reasons = profile.unloaded(self.platform.log, self.dataflow, self.entry, self.now)
        is_off = bool(self.next_run.idle_sensors)  # then nobody tries it at that time
        return [
            replace(reason, choices=reason.choices[:1], next_try=None if is_off else reason.next_try)
            for reason in reasons
        ]

    def _rest(self) -> Iterator[Reason]:
        """Yield the holder of the next number, sensors that are off, skips of the plan, and deletes in force."""
        log, name = self.platform.log, self.dataflow.name
        if (holder := describe_holder(log, name, self.entry)) is not None:
            yield Reason("the next number", holder_in_words(holder))
        if self.next_run.idle_sensors:
            names = ", ".join(self.next_run.idle_sensors)
            yield Reason(f"sensor {names}", "is turned off in Dagster, so new data starts no run")
        plan = self.next_run.plan
        if plan is not None and plan.due:
            yield Reason(_NEXT_RUN, plan.why)
        skips = [skip for skip in plan.skips if not skip.is_loaded] if plan is not None else []
        yield from (Reason(skip.subject, skip.why) for skip in skips[:_SKIPS])
        if len(skips) > _SKIPS:
            yield Reason(f"{len(skips) - _SKIPS:,} more", f"strandline plan {name} lists them")
        for delete in deletes_in_force(log, self.entry):
            yield Reason(
                f"rows where {delete.predicate}", f"kept away by the delete of entry {delete.number}"
            )
