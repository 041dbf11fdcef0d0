"""The job and the schedule that maintain a dataflow's table (docs/how-to/maintenance.md)."""

from datetime import UTC

from dagster import (
    AssetObservation,
    Field,
    JobDefinition,
    OpExecutionContext,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    in_process_executor,
    job,
    op,
    schedule,
)

from partitions.dataflow import Dataflow, maintenance_periods
from partitions.errors import StrandlineError
from platform_assets.factory.default_status import default_schedule_status
from resources.dagster.io_managers import dagster_failure
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.decisions.maintenance import due_tasks, maintain
from resources.loop.holder_wait import HolderPolicy
from resources.platform.platform import Platform

_CONFIG = {
    "tasks": Field(
        [str],
        is_required=False,
        description="optimize, vacuum, retention; default: the tasks that the dataflow names.",
    )
}
_HOURLY = "17 * * * *"
"""Once an hour, off the full hour when most schedules start."""


def maintenance_job(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, options: RunOptions
) -> JobDefinition:
    """Return a job that does all maintenance tasks of a dataflow, or those in its config, due or not."""
    tasks = tuple(maintenance_periods(dataflow))
    description = f"Maintains the table of {dataflow.name}: {' and '.join(tasks)}."

    @op(name=_step_name(names), description=description, config_schema=_CONFIG)
    def step(context: OpExecutionContext) -> None:
        chosen_tasks = [task for task in tasks if task in (context.op_config.get("tasks") or tasks)]
        patience = HolderPolicy(options.hold_wait, options.run_is_live)
        try:
            result = maintain(platform.loading([dataflow]), dataflow, chosen_tasks, patience)
        except StrandlineError as error:
            raise dagster_failure(error, platform.env) from error
        for name, count in result.as_json().items():
            context.log.info("%s: %s", name, count)
        context.log_event(AssetObservation(names.table, metadata=result.as_json()))

    @job(name=names.job("maintain"), description=description, executor_def=in_process_executor)
    def run() -> None:
        step()

    return run


def maintenance_schedule(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, job_to_run: JobDefinition
) -> ScheduleDefinition:
    """Return a schedule that requests the job for the due tasks."""

    @schedule(
        name=names.trigger("maintenance"),
        job=job_to_run,
        cron_schedule=_HOURLY,
        default_status=default_schedule_status(),
        description=f"Requests maintenance of the table of {dataflow.name} when it is due.",
    )
    def due(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        tasks = due_tasks(platform, dataflow, context.scheduled_execution_time.astimezone(UTC))
        if not tasks:
            return SkipReason("nothing is due")
        return RunRequest(run_config={"ops": {_step_name(names): {"config": {"tasks": list(tasks)}}}})

    return due


def _step_name(names: DagsterDataflowNames) -> str:
    return f"{names.job('maintain')}_step"
