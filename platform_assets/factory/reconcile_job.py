"""The jobs, the schedule and the check that compare source and table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from dagster import (
    AssetObservation,
    JobDefinition,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    in_process_executor,
    job,
    op,
    schedule,
)
from pydantic import Field

from partitions.checks import RECONCILED
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from partitions.reconcile.settings import ReconcileSettings
from platform_assets.dagster_jobs import LocationJob
from platform_assets.factory.annotations import annotate
from platform_assets.factory.check_results import WARN, CheckFinding, DataflowChecks, TableCheck
from platform_assets.factory.config_jobs import ProjectJobs, log_lines
from platform_assets.factory.decisions import DecisionConfig
from platform_assets.factory.default_status import default_schedule_status
from platform_assets.words import comparison_in_words
from resources.dagster.io_managers import dagster_failure
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.loop.loop import clock
from resources.notes.reconciled import compared
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.reconcile.options import ReconcileOptions
from resources.reconcile.repairing import RepairPlan, plan_repair, repair

_BY_SCHEDULE = "by the schedule of reconcile"


def reconcile_job(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, options: RunOptions
) -> JobDefinition:
    """Return a job that compares and repairs as a dataflow's ``reconcile`` says."""
    settings = _settings(dataflow)
    description = f"Compares the source of {dataflow.name} with its table."

    def compare(context: OpExecutionContext) -> None:
        now = options.now or clock()
        chosen = ReconcileOptions(
            start=settings.start(now),
            rows=settings.rows,
            full_read=settings.full_read,
            repairs=settings.repair,
        )
        try:
            loaded = platform.loading([dataflow])
            plan = _compared(context, loaded, dataflow, names, chosen, now)
            if plan.repaired is not None:
                _repair(context, loaded, plan, names, _BY_SCHEDULE, now, options)
        except StrandlineError as error:
            raise dagster_failure(error, platform.env) from error

    annotate(compare, context=OpExecutionContext, returns=type(None))
    step = op(name=f"{names.job('reconcile')}_step", description=description)(compare)

    @job(
        name=names.job("reconcile"),
        description=description,
        tags=dict(dataflow.run_tags),
        executor_def=in_process_executor,
    )
    def run() -> None:
        step()

    return run


def reconcile_schedule(
    dataflow: Dataflow, names: DagsterDataflowNames, job_to_run: JobDefinition
) -> ScheduleDefinition:
    """Return a schedule that requests the job at the times of a dataflow's ``reconcile``."""

    @schedule(
        name=names.trigger("reconcile"),
        job=job_to_run,
        cron_schedule=_settings(dataflow).schedule,
        execution_timezone=dataflow.watermark.zone_name,
        default_status=default_schedule_status(),
        description=f"Requests a comparison of the source of {dataflow.name} with its table.",
    )
    def due(context: ScheduleEvaluationContext) -> RunRequest:
        return RunRequest(run_key=f"{dataflow.name}:reconcile:{context.scheduled_execution_time.isoformat()}")

    return due


class ReconcileConfig(DecisionConfig):
    """The fields of ``reconcile``."""

    start: str = Field(default="", description="First value of the range; empty: no lower bound.")
    end: str = Field(default="", description="End of the range, exclusive; empty: the watermark.")
    every: str = Field(default="", description="Length of a range, such as 1 month; empty: one range.")
    rows: bool = Field(default=False, description="Compare all columns, not only keys and watermark columns.")
    full_read: bool = Field(default=False, description="Read all of a source that counts no rows itself.")
    repair: Literal["none", "missing", "all"] = Field(
        default="none", description="Which differing rows become those of the source."
    )
    confirm: bool = Field(default=False, description="Repair; otherwise only show what would be repaired.")


def operator_reconcile_job(jobs: ProjectJobs) -> LocationJob:
    """Return the job for all dataflows of the project, with a form."""
    text = "Compare a source with its table, and repair what differs."
    return jobs.job_with_checks("reconcile", ReconcileConfig, _ReconcileJob.of(jobs).reconcile, text)


class _ReconcileJob(ProjectJobs):
    """The body of the job ``reconcile``."""

    def reconcile(self, context: OpExecutionContext, config: ReconcileConfig) -> Sequence[str]:
        """Return the dataflow if its table has changed."""
        (flow,) = self.project.named([config.dataflow])
        names, now = self.names[flow.name], self.options.now or clock()
        options = ReconcileOptions(
            start=config.start or None,
            end=config.end or None,
            every=config.every or None,
            rows=config.rows,
            full_read=config.full_read,
            repairs=None if config.repair == "none" else config.repair,
        )
        platform = self.platform.loading([flow])
        plan = _compared(context, platform, flow, names, options, now)
        if plan.repaired is None:
            return []
        if not config.confirm:
            context.log.warning("nothing was repaired: set confirm to true to repair these rows")
            return []
        outcome = _repair(context, platform, plan, names, config.reason, now, self.options)
        return [flow.name] if outcome.committed else []


def _settings(dataflow: Dataflow) -> ReconcileSettings:
    assert dataflow.reconcile is not None, dataflow.name
    return dataflow.reconcile


def _compared(
    context: OpExecutionContext,
    platform: Platform,
    dataflow: Dataflow,
    names: DagsterDataflowNames,
    options: ReconcileOptions,
    now: datetime,
) -> RepairPlan:
    """Compare, and report what differs: to the run's log, the watermark's page and the check."""
    plan = plan_repair(platform, dataflow, options, now)
    log_lines(context, plan.lines)
    _report(context, platform, dataflow, names, plan.comparison.as_json())
    plan.check()
    return plan


def _repair(
    context: OpExecutionContext,
    platform: Platform,
    plan: RepairPlan,
    names: DagsterDataflowNames,
    reason: str,
    now: datetime,
    options: RunOptions,
) -> Outcome:
    """Repair, report it, and return the outcome."""
    outcome = repair(
        platform,
        plan,
        reason,
        now,
        run_id=context.run_id,
        job_id=context.job_name,
        run_is_live=options.run_is_live,
        hold_wait=options.hold_wait,
    )
    if outcome.error is not None:
        raise outcome.error
    written = sum(commit.rows for commit in outcome.committed if commit.entry.why == "reconcile")
    context.log.info("%s: repaired, %s written", plan.dataflow.name, pluralize(written, "row"))
    number = outcome.newest.number if outcome.newest else 0
    _report(context, platform, plan.dataflow, names, {"repaired_by_entry": number, "rows_written": written})
    return outcome


def _report(
    context: OpExecutionContext,
    platform: Platform,
    dataflow: Dataflow,
    names: DagsterDataflowNames,
    document: Mapping[str, Any],
) -> None:
    values = {name: value for name, value in document.items() if value is not None}
    context.log_event(AssetObservation(names.watermark, metadata={"comparison": values}))
    if dataflow.reconcile is not None:
        finding = _check_reconciled(dataflow, platform)
        evaluation = DataflowChecks(dataflow, names).evaluation(finding)
        context.log_event(evaluation)  # type: ignore[arg-type]  # Dagster takes evaluations, too


def _check_reconciled(dataflow: Dataflow, platform: Platform) -> CheckFinding:
    """Check that the last comparison found no difference that was not repaired."""
    comparisons = compared(platform.log, dataflow.name)
    if not comparisons:
        return CheckFinding(
            RECONCILED, passed=True, description="No comparison since the first load, or the last decision"
        )
    last = comparisons[0]
    return CheckFinding(
        RECONCILED,
        passed=last.is_settled,
        severity=WARN,
        description=comparison_in_words(dataflow.kind, last),
        metadata={
            "compared_at": last.time,
            "differences": last.missing + last.extra + last.different,
            "missing": last.missing,
            "extra": last.extra,
            "different": last.different,
        },
    )


_CHECK = TableCheck(
    RECONCILED,
    "When source and table were last compared, up to where, and how many rows differed.",
    _check_reconciled,
)


def reconcile_checks(dataflow: Dataflow) -> Sequence[TableCheck]:
    """Return the check of a dataflow with ``reconcile``; none of any other."""
    return () if dataflow.reconcile is None else (_CHECK,)
