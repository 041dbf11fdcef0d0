"""The job ``delete``: deletes rows for good from the UI (docs/how-to/deleting-and-keeping.md).

Without ``confirm`` it only shows what would be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from dagster import MetadataValue, OpExecutionContext
from pydantic import Field

from partitions.errors import ConfigurationError
from platform_assets.dagster_jobs import LocationJob
from platform_assets.factory.config_jobs import ProjectJobs, log_lines, markdown_list
from platform_assets.factory.decisions import DecisionConfig
from platform_assets.run_metadata import watermark_metadata
from resources.decisions.delete_downstream import DeleteOptions, delete_planned, plan_delete, purge_lines
from resources.loop.loop import clock
from resources.watermarks.quarantine_list import read_quarantine


class DeleteConfig(DecisionConfig):
    """The fields of ``delete``."""

    where: str = Field(
        description="Condition in Spark's SQL over the table's columns, such as customer = 42."
    )
    downstream: bool = Field(
        default=False, description="Delete such rows of tables that are made of this one, too."
    )
    purge: bool = Field(default=False, description="Also delete old versions and files that hold the rows.")
    confirm: bool = Field(default=False, description="Delete; otherwise only show what would be deleted.")


def delete_job(jobs: ProjectJobs) -> LocationJob:
    """Return the job for all dataflows of the project."""
    text = "Delete rows in one commit, and keep them away: no later load brings them back."
    return jobs.job_with_checks("delete", DeleteConfig, _DeleteJob.of(jobs).delete, text)


class _DeleteJob(ProjectJobs):
    """The body of the job ``delete``."""

    def delete(self, context: OpExecutionContext, config: DeleteConfig) -> Iterable[str]:
        """Return the dataflows of whose tables rows were deleted."""
        (flow,) = self.project.named([config.dataflow])
        if not config.where.strip():
            raise ConfigurationError(
                f"dataflow {flow.name}: expected a condition in where, such as customer = 42, found none"
            )
        options = DeleteOptions(config.where, config.downstream, config.purge)
        flows, now = self.project.dataflows, self.options.now or clock()
        # Spark starts once, with the jars of the tables downstream, too.
        platform = self.platform.loading(flows.values() if options.downstream else [flow])
        plan = plan_delete(platform, flow, flows, options, now)
        lines = [
            f"{effect.dataflow}: {line}" if effect.dataflow != flow.name else line
            for effect in plan.previews
            for line in effect.lines
        ]
        lines += [*plan.lines, *(purge_lines(plan, flows) if options.purge else ())]
        log_lines(context, [f"{flow.name}: delete where {config.where}", *lines])
        if not config.confirm:
            context.log.warning("nothing was deleted: set confirm to true to delete these rows")
            return ()
        deleted = delete_planned(
            platform,
            flows,
            plan,
            options,
            config.reason,
            now,
            run_id=context.run_id,
            job_id=context.job_name,
            run_is_live=self.options.run_is_live,
            hold_wait=self.options.hold_wait,
        )
        purged = {purge.dataflow: purge.as_json() for purge in deleted.purged}
        for name, entry in deleted.entries.items():
            context.log.info("%s: entry %d, %d rows deleted", name, entry.number, entry.deleted)
            metadata = {
                **watermark_metadata(entry, read_quarantine(self.platform.log, entry)),
                "predicate": config.where,
                "rows_deleted": entry.deleted,
                "reason": config.reason,
                "effect": MetadataValue.md(markdown_list(lines)),
                **({"purged": MetadataValue.json(purged[name])} if name in purged else {}),
            }
            self.log_observation(context, name, metadata)
        return [name for name, entry in deleted.entries.items() if entry.deleted]
