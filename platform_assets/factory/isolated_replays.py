"""Jobs of the UI that start a replay, and promote or drop an isolated one (docs/reference/replay.md).

Without ``confirm`` a promote or a drop only shows what it would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from dagster import Config, JobDefinition, MetadataValue, OpExecutionContext
from pydantic import Field

from partitions.dataflow import Dataflow
from platform_assets.dagster_jobs import LocationJob
from platform_assets.factory.answers import GoneAnswer
from platform_assets.factory.config_jobs import ProjectJobs, log_lines, markdown_list
from platform_assets.factory.decisions import DecisionConfig
from platform_assets.run_metadata import chunks_metadata, watermark_metadata
from resources.loop.loop import clock
from resources.platform.platform import Platform
from resources.replay.in_place import replay_in_place
from resources.replay.isolated.dropping import drop_replay, preview_drop
from resources.replay.isolated.promoting import preview_promote, promote_replay
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.options import ReplayOptions
from resources.watermarks.quarantine_list import read_quarantine


class ReplayConfig(Config):
    """The fields of ``replay``."""

    dataflow: str = Field(description="Name of the dataflow.")
    start: str = Field(description="First value of the range: a date, a time or a whole number.")
    end: str = Field(description="End of the range, exclusive.")
    every: str = Field(default="", description="Length of a chunk, such as 1 month; empty: one chunk.")
    column: str = Field(
        default="",
        description="Column of the range; empty: the first watermark column, or the folders of files.",
    )
    by: Literal["folder", "arrival"] = Field(
        default="folder", description="How files are chosen, if no column is named."
    )
    into: str = Field(
        default="", description="Isolated table, <layer>/<name>; empty: the dataflow's own table."
    )
    save_watermark: bool = Field(
        default=False,
        description="Raise the watermark to the end of each chunk with rows; not together with into.",
    )
    replace: bool = Field(
        default=False, description="Delete the rows of each chunk in the commit that loads it."
    )
    gone_files: GoneAnswer | None = Field(
        default=None,
        description="With replace or into: what happens to rows of files that no longer exist at the source.",
    )
    restore_deleted: bool = Field(
        default=False, description="Rows that others deleted from the table may come back."
    )


Preview = Callable[[Platform, Dataflow, str], Sequence[str]]


class EndReplayConfig(DecisionConfig):
    """The fields of ``promote`` and ``drop``."""

    table: str = Field(description="Table of the replay, <layer>/<name>.")
    confirm: bool = Field(default=False, description="Do it; otherwise only show what would be done.")


def isolated_replay_jobs(jobs: ProjectJobs) -> list[JobDefinition | LocationJob]:
    """Return the jobs ``replay``, ``promote`` and ``drop`` for all dataflows of the project."""
    bodies = _ReplayJobs.of(jobs)
    return [
        jobs.job_with_checks(
            "replay", ReplayConfig, bodies.replay, "Read a range again, in place or into an isolated table."
        ),
        jobs.job_with_checks(
            "promote",
            EndReplayConfig,
            bodies.promote,
            "Promote an isolated replay: put its rows in place of the live table's.",
        ),
        jobs.job("drop", EndReplayConfig, bodies.drop, "Remove an isolated replay, its table and its log."),
    ]


class _ReplayJobs(ProjectJobs):
    """The bodies of the jobs ``replay``, ``promote`` and ``drop``."""

    def replay(self, context: OpExecutionContext, config: ReplayConfig) -> Sequence[str]:
        """Return the dataflow if its own table has changed."""
        (flow,) = self.project.named([config.dataflow])
        options = ReplayOptions(
            config.start,
            config.end,
            config.into or None,
            config.every or None,
            config.column or None,
            config.save_watermark,
            config.replace,
            config.by if config.by == "arrival" else None,
            GoneAnswer.value_of(config.gone_files),
            "load" if config.restore_deleted else None,
        )
        run_replay = replay_in_place if options.table is None else replay_isolated
        result = run_replay(
            self.platform.loading([flow]),
            flow,
            options,
            self._now,
            run_id=context.run_id,
            job_id=context.job_name,
            run_is_live=self.options.run_is_live,
            hold_wait=self.options.hold_wait,
            observer=lambda step, line: context.log.info("%s: %s", step, line),
            on_progress=lambda reports: self.log_observation(context, flow.name, chunks_metadata(reports)),
        )
        if result.outcome.error is not None:
            raise result.outcome.error
        return [flow.name] if options.table is None and result.outcome.committed else []

    def promote(self, context: OpExecutionContext, config: EndReplayConfig) -> Sequence[str]:
        """Return the dataflow if its table has changed."""
        flow, lines = self._preview(context, config, "promote", preview_promote)
        if not config.confirm:
            return []
        result = promote_replay(
            self.platform,
            flow,
            config.table,
            config.reason,
            self._now,
            run_id=context.run_id,
            job_id=context.job_name,
            run_is_live=self.options.run_is_live,
            hold_wait=self.options.hold_wait,
        )
        quarantine = read_quarantine(self.platform.log, result.entry)
        self._log_result(context, flow, config, lines, watermark_metadata(result.entry, quarantine))
        return [flow.name]

    def drop(self, context: OpExecutionContext, config: EndReplayConfig) -> None:
        flow, lines = self._preview(context, config, "drop", preview_drop)
        if not config.confirm:
            return
        run_is_live = self.options.run_is_live
        drop_replay(self.platform, flow, config.table, config.reason, self._now, run_is_live=run_is_live)
        context.log.info("the replay into %s is removed", config.table)
        self._log_result(context, flow, config, lines, {})

    @property
    def _now(self) -> datetime:
        return self.options.now or clock()

    def _preview(
        self, context: OpExecutionContext, config: EndReplayConfig, command: str, preview: Preview
    ) -> tuple[Dataflow, Sequence[str]]:
        """Log what a job would do; return the dataflow and the lines."""
        (flow,) = self.project.named([config.dataflow])
        lines = preview(self.platform, flow, config.table)
        log_lines(context, [f"{flow.name}: {command} {config.table}", *lines])
        if not config.confirm:
            context.log.warning("nothing was done: set confirm to true to do it")
        return flow, lines

    def _log_result(
        self,
        context: OpExecutionContext,
        flow: Dataflow,
        config: EndReplayConfig,
        lines: Sequence[str],
        metadata: Mapping[str, Any],
    ) -> None:
        """Log what was done, and why, to the watermark's page."""
        effect = MetadataValue.md(markdown_list(lines))
        self.log_observation(context, flow.name, {**metadata, "reason": config.reason, "effect": effect})
