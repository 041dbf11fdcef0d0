"""Jobs with one op and a config form that all dataflows of a project share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dagster import AssetObservation, Config, JobDefinition, OpExecutionContext, in_process_executor, job, op

from partitions.errors import StrandlineError
from platform_assets.project import Project
from resources.dagster.io_managers import dagster_failure
from resources.dagster.names import DagsterNames
from resources.dagster.run_options import RunOptions
from resources.platform.platform import Platform

_EMPTY: dict[str, Any] = {
    "reason": "",
    "to": -1,
    "watermark": "",
    "lines": [],
    "paths": [],
    "splits": [],
    "table": "",
    "start": "",
    "end": "",
    "into": "",
    "where": "",
    "entry": -1,
}
"""Placeholders in the launchpad for fields that only an operator can fill in."""


@dataclass(frozen=True)
class ProjectJobs:
    """The base of the bodies of jobs that all dataflows of a project share.

    Attributes:
        project: the project with the dataflows.
        platform: its resources.
        options: how runs behave.
        names: its names in Dagster.
    """

    project: Project
    platform: Platform
    options: RunOptions
    names: DagsterNames

    @classmethod
    def of(cls, jobs: ProjectJobs) -> Self:
        """Return bodies of jobs of the same project."""
        return cls(jobs.project, jobs.platform, jobs.options, jobs.names)

    def job(
        self,
        name: str,
        config: type[Config],
        act: Callable[[OpExecutionContext, Any], None],
        description: str,
    ) -> JobDefinition:
        """Return a job with one op and a config form; ``name`` is that of the command."""
        return _config_job(self.names.shared(name), config, act, description, self.project)

    def log_observation(
        self, context: OpExecutionContext, dataflow: str, metadata: Mapping[str, Any]
    ) -> None:
        """Log metadata to the page of a dataflow's watermark."""
        context.log_event(AssetObservation(self.names[dataflow].watermark, metadata=metadata))


def _config_job(
    name: str,
    config: type[Config],
    act: Callable[[OpExecutionContext, Any], None],
    description: str,
    project: Project,
) -> JobDefinition:
    """Return a job with one op and a config form."""

    def decide(context: OpExecutionContext, config_values: Any) -> None:
        try:
            act(context, config_values)
        except StrandlineError as error:
            raise dagster_failure(error, project.env) from error

    step = op(name=f"{name}_step", description=description, out={})(_with_config(decide, config))

    @job(
        name=name,
        description=description,
        config=_form(f"{name}_step", config, project),
        executor_def=in_process_executor,
    )
    def run() -> None:
        step()

    return run


def _form(step: str, config: type[Config], project: Project) -> dict[str, Any]:
    """Return the config that the launchpad shows as a form; the job refuses empty fields."""
    names = list(project.dataflows)
    empty = {**_EMPTY, "dataflow": names[0] if len(names) == 1 else ""}
    form = {
        key: empty[key] if field.is_required() else field.default
        for key, field in config.model_fields.items()
    }
    return {"ops": {step: {"config": form}}}


def _with_config(
    decide: Callable[[OpExecutionContext, Any], None], config: type[Config]
) -> Callable[..., None]:
    """Return a function whose parameter ``config`` is annotated with a type.

    Dagster makes the launchpad's form from that type.
    """

    def step(context: OpExecutionContext, config: Any) -> None:
        decide(context, config)

    step.__annotations__ = {"context": OpExecutionContext, "config": config}
    return step


def log_lines(context: OpExecutionContext, lines: Sequence[str]) -> None:
    """Write lines to the log of a job's run."""
    for line in lines:
        context.log.info(line)


def markdown_list(lines: Sequence[str]) -> str:
    """Return lines as a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)
