"""Jobs with one op and a config form that all dataflows of a project share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from dagster import (
    AssetCheckKey,
    AssetObservation,
    Config,
    JobDefinition,
    Nothing,
    OpDefinition,
    OpExecutionContext,
    Out,
    Output,
    in_process_executor,
    job,
    op,
)

from partitions.errors import StrandlineError
from platform_assets.dagster_jobs import LocationJob, OneStep
from platform_assets.factory.annotations import annotate
from platform_assets.factory.check_results import DataflowChecks
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
        job_name = self.names.shared(name)

        def without_changes(context: OpExecutionContext, config_values: Any) -> Iterable[str]:
            act(context, config_values)
            return ()

        step = self._step(job_name, config, without_changes, description, ())

        @job(
            name=job_name,
            description=description,
            config=_form(step.name, config, self.project),
            executor_def=in_process_executor,
        )
        def run() -> None:
            step()

        return run

    def job_with_checks(
        self,
        name: str,
        config: type[Config],
        act: Callable[[OpExecutionContext, Any], Iterable[str]],
        description: str,
    ) -> LocationJob:
        """Return a job as :meth:`job` whose op changes rows, and a user's own checks of them after it.

        Args:
            name: the name of the command.
            config: the fields of the form.
            act: returns the dataflows whose rows it has changed.
            description: for people.
        """
        job_name = self.names.shared(name)
        return LocationJob.of(
            job_name,
            OneStep(
                lambda outputs: self._step(job_name, config, act, description, outputs),
                {
                    _output(flow): [*self.names[flow].keys.tables.values(), self.names[flow].watermark]
                    for flow in self.project.dataflows
                },
                {
                    AssetCheckKey(self.names[flow.name].table, check)
                    for flow in self.project.dataflows.values()
                    for check in DataflowChecks(flow, self.names[flow.name]).all_names
                },
            ),
            config=_form(f"{job_name}_step", config, self.project),
            description=description,
            executor=in_process_executor,
        )

    def _step(
        self,
        job_name: str,
        config: type[Config],
        act: Callable[[OpExecutionContext, Any], Iterable[str]],
        description: str,
        outputs: Collection[str],
    ) -> OpDefinition:
        """Return an op whose config is the form, with the outputs of changed dataflows."""

        def step(context: OpExecutionContext, config: Any) -> Iterator[Output[None]]:
            try:
                changed = list(act(context, config))
            except StrandlineError as error:
                raise dagster_failure(error, self.project.env) from error
            yield from (Output(None, output) for output in map(_output, changed) if output in outputs)

        # Dagster makes the launchpad's form from the type of the parameter.
        annotate(step, context=OpExecutionContext, config=config, returns=Iterator[Any])
        outs = {output: Out(Nothing, is_required=False) for output in outputs}
        return op(name=f"{job_name}_step", description=description, out=outs)(step)

    def log_observation(
        self, context: OpExecutionContext, dataflow: str, metadata: Mapping[str, Any]
    ) -> None:
        """Log metadata to the page of a dataflow's watermark."""
        context.log_event(AssetObservation(self.names[dataflow].watermark, metadata=metadata))


def _output(dataflow: str) -> str:
    """Return the name of the output of a dataflow whose rows a job has changed."""
    return f"rows_of_{dataflow}"


def _form(step: str, config: type[Config], project: Project) -> dict[str, Any]:
    """Return the config that the launchpad shows as a form; the job refuses empty fields."""
    names = list(project.dataflows)
    empty = {**_EMPTY, "dataflow": names[0] if len(names) == 1 else ""}
    form = {
        key: empty[key] if field.is_required() else field.default
        for key, field in config.model_fields.items()
    }
    return {"ops": {step: {"config": form}}}


def log_lines(context: OpExecutionContext, lines: Sequence[str]) -> None:
    """Write lines to the log of a job's run."""
    for line in lines:
        context.log.info(line)


def markdown_list(lines: Sequence[str]) -> str:
    """Return lines as a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)
