"""The job and the schedule that care for a dataflow's table (docs/how-to/maintenance.md)."""

from datetime import UTC

from dagster import (
    AssetObservation,
    DefaultScheduleStatus,
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

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.factory.dagster_names import table_key
from resources.dagster.io_managers import failure
from resources.dagster.run_options import RunOptions
from resources.decisions.maintenance import due_tasks, maintain
from resources.loop.holder_wait import Patience
from resources.platform.platform import Platform

_CONFIG = {
    "tasks": Field(
        [str], is_required=False, description="optimize, vacuum; by default what the dataflow names."
    )
}
_LOOKS = "17 * * * *"
"""Once an hour, beside the full hour when most else starts."""


def maintenance_job(dataflow: Dataflow, platform: Platform, options: RunOptions) -> JobDefinition:
    """Return a job that does all that the dataflow's ``maintenance`` names, whether its time has come or not."""
    tasks = tuple(dataflow.maintenance.periods()) if dataflow.maintenance else ()
    description = f"Cares for the table of {dataflow.name}: {' and '.join(tasks)}."

    @op(name=f"maintain_{dataflow.name}_step", description=description, config_schema=_CONFIG)
    def step(context: OpExecutionContext) -> None:
        chosen = [task for task in tasks if task in (context.op_config.get("tasks") or tasks)]
        patience = Patience(options.hold_wait, options.run_is_live)
        try:
            done = maintain(platform.loading([dataflow]), dataflow, chosen, patience)
        except StrandlineError as error:
            raise failure(error) from error
        for line, count in done.as_json().items():
            context.log.info("%s: %s", line, count)
        context.log_event(AssetObservation(table_key(dataflow), metadata=done.as_json()))

    @job(name=f"maintain_{dataflow.name}", description=description, executor_def=in_process_executor)
    def run() -> None:
        step()

    return run


def maintenance_schedule(dataflow: Dataflow, platform: Platform, made: JobDefinition) -> ScheduleDefinition:
    """Return a schedule that requests the job for what is due."""

    @schedule(
        name=f"{dataflow.name}_maintenance",
        job=made,
        cron_schedule=_LOOKS,
        default_status=DefaultScheduleStatus.RUNNING,
        description=f"Asks for the care of the table of {dataflow.name} when its time has come.",
    )
    def due(context: ScheduleEvaluationContext) -> RunRequest | SkipReason:
        tasks = due_tasks(platform, dataflow, context.scheduled_execution_time.astimezone(UTC))
        if not tasks:
            return SkipReason("nothing is due")
        step = f"maintain_{dataflow.name}_step"
        return RunRequest(run_config={"ops": {step: {"config": {"tasks": list(tasks)}}}})

    return due
