"""An operator's decisions, and views of a state, as jobs with typed config, to be launched from the UI (docs/reference/dagster.md).

Without ``confirm`` a job only shows the effect of the decision; with it, the entry is appended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dagster import (
    AssetObservation,
    Config,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
    in_process_executor,
    job,
    op,
)
from pydantic import Field

from partitions.errors import StrandlineError
from platform_assets.factory.dagster_names import watermark_key
from platform_assets.project import Project
from platform_assets.run_metadata import watermark_metadata
from platform_assets.state_views import changes_between, exported
from platform_assets.words import stored_in_words
from resources.dagster.io_managers import failure
from resources.dagster.run_options import RunOptions
from resources.kinds import all_decisions as decisions
from resources.kinds.all_decisions import DraftBuilder
from resources.kinds.stream.flush import NothingWaits, flush
from resources.kinds.stream.splits import merge_splits, remove_splits
from resources.loop.loop import clock
from resources.platform.platform import Platform
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine


class DecisionConfig(Config):
    """The fields of every decision."""

    dataflow: str = Field(description="Its name.")
    reason: str = Field(description="Reason for the decision; stored in the log. Not empty.")
    confirm: bool = Field(default=False, description="Append the entry; else only show the effect.")


class Replacing(DecisionConfig):
    """A decision after which rows may be loaded again."""

    replace: bool = Field(
        default=False,
        description="Delete the old rows in the commit that loads them again.",
    )


class Rewinding(Replacing):
    """``state rewind``."""

    to: int = Field(description="Go back to the watermark of the entry with this number; 0 is the beginning.")


class Setting(DecisionConfig):
    """``state set``."""

    watermark: str = Field(description="Sentinel JSON, not below the current watermark.")


class Importing(DecisionConfig):
    """``state import``."""

    lines: list[str] = Field(description="The lines of `strandline state export`.")


class Looking(Config):
    """``state history``, ``state diff`` and ``state export``."""

    dataflow: str = Field(description="Its name.")


class History(Looking):
    """``state history``."""

    limit: int = Field(default=100, description="How many entries, newest first.")


class Diff(Looking):
    """``state diff``."""

    before: int | None = Field(default=None, description="An entry's number; by default the one before.")
    after: int | None = Field(default=None, description="An entry's number; by default the newest.")


class Paths(DecisionConfig):
    """``files release`` and ``files unprocess``."""

    paths: list[str] = Field(description="Relative to the root of the source.")


class SplitsRemoval(DecisionConfig):
    """``splits remove``."""

    splits: list[str] = Field(
        description="Names of splits of the stream, as `strandline state show` has them."
    )


class Flushing(DecisionConfig):
    """``stream flush``."""

    before: str = Field(
        default="",
        description="Only what lies below this event time, such as 2026-01-31T12:00Z; empty: all that waits.",
    )


class Merging(SplitsRemoval):
    """``splits merge``."""

    into: str = Field(description="The name of the split that they become.")


_DECISIONS: dict[str, tuple[type[DecisionConfig], Callable[[Any], DraftBuilder], str]] = {
    "state_accept": (
        DecisionConfig,
        lambda given: decisions.accept(given.reason),
        "Accept a changed definition.",
    ),
    "state_adopt": (
        DecisionConfig,
        lambda given: decisions.adopt(given.reason),
        "Take the watermark derived from the table.",
    ),
    "state_reset": (
        Replacing,
        lambda given: decisions.reset(given.reason, replace=given.replace),
        "Start again: the next run loads everything in the source.",
    ),
    "state_rewind": (
        Rewinding,
        lambda given: decisions.rewind(given.reason, given.to, replace=given.replace),
        "Go back to an older entry: data above it is read again.",
    ),
    "state_set": (
        Setting,
        lambda given: decisions.set_watermark(given.reason, given.watermark),
        "Put the watermark higher; files that it passes over are not loaded.",
    ),
    "state_import": (
        Importing,
        lambda given: decisions.import_entries(given.reason, given.lines),
        "Take the watermark of an export.",
    ),
    "files_release": (
        Paths,
        lambda given: decisions.release(given.reason, given.paths),
        "Take files out of quarantine: the next run loads them.",
    ),
    "files_unprocess": (
        Paths,
        lambda given: decisions.unprocess(given.reason, given.paths),
        "Mark ingested files for another read (tracking: set).",
    ),
    "splits_remove": (
        SplitsRemoval,
        lambda given: remove_splits(given.reason, given.splits),
        "Remove splits of a stream: its global watermark does not wait for them any more.",
    ),
    "stream_flush": (
        Flushing,
        lambda given: flush(given.reason, given.before or None),
        "Let out what waits in a stream: the next run emits it. Rows below it that come later are late.",
    ),
    "splits_merge": (
        Merging,
        lambda given: merge_splits(given.reason, given.splits, given.into),
        "Make one split of several, with the maximum of their watermarks.",
    ),
}


_VIEWS: dict[str, tuple[type[Looking], Callable[[WatermarkLog, Any], Any], str]] = {
    "state_history": (
        History,
        lambda log, given: [entry.as_json() for entry in log.history(given.dataflow, given.limit)],
        "Show the entries of a state, newest first, as metadata of the run.",
    ),
    "state_diff": (
        Diff,
        lambda log, given: changes_between(log, given.dataflow, given.before, given.after),
        "Show what changed between two entries of a state.",
    ),
    "state_export": (
        Looking,
        lambda log, given: [json.loads(line) for line in exported(log, given.dataflow)],
        "Show all entries of a state, oldest first: what state_import takes.",
    ),
}


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
}
"""Values in a form for fields that only an operator can fill in."""


def decision_jobs(project: Project, platform: Platform, options: RunOptions) -> list[JobDefinition]:
    """Return a job per decision and a job per view of the state, for all dataflows of the project."""

    def deciding(made: Callable[[Any], DraftBuilder]) -> Callable[[OpExecutionContext, Any], None]:
        return lambda context, given: _decide(context, given, made(given), project, platform, options)

    def showing(view: Callable[[WatermarkLog, Any], Any]) -> Callable[[OpExecutionContext, Any], None]:
        return lambda context, given: _show(context, given, view, project, platform)

    return [
        *(
            config_job(name, config, deciding(made), text, project)
            for name, (config, made, text) in _DECISIONS.items()
        ),
        *(
            config_job(name, config, showing(view), text, project)
            for name, (config, view, text) in _VIEWS.items()
        ),
    ]


def config_job(
    name: str,
    config: type[Config],
    act: Callable[[OpExecutionContext, Any], None],
    description: str,
    project: Project,
) -> JobDefinition:
    """Return a job of one op with a form to be filled in."""

    def decide(context: OpExecutionContext, given: Any) -> None:
        try:
            act(context, given)
        except StrandlineError as error:
            raise failure(error) from error

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
    """Return the config that the launchpad shows to be filled in; the job refuses empty fields."""
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
    """Return a function whose parameter ``config`` has the type from which Dagster makes the launchpad's form."""

    def step(context: OpExecutionContext, config: Any) -> None:
        decide(context, config)

    step.__annotations__ = {"context": OpExecutionContext, "config": config}
    return step


def _decide(
    context: OpExecutionContext,
    config: DecisionConfig,
    build_draft: DraftBuilder,
    project: Project,
    platform: Platform,
    options: RunOptions,
) -> None:
    (flow,) = project.named([config.dataflow])
    words = partial(stored_in_words, flow.kind)
    try:
        shown = decisions.preview(
            platform, flow, build_draft, options.now or clock(), options.run_is_live, words
        )
    except NothingWaits as nothing:
        context.log.info(nothing.message)
        return
    say(context, [f"{flow.name}: {shown.draft.entry.why}", *shown.lines])
    if not config.confirm:
        context.log.warning("nothing was appended: set confirm to true to append this entry")
        return
    entry = decisions.decide(platform, flow, build_draft, config.reason, options.run_is_live)
    context.log.info("entry %d appended", entry.number)
    metadata = {
        **watermark_metadata(entry, read_quarantine(platform.log, entry)),
        "reason": config.reason,
        "effect": MetadataValue.md(listed(shown.lines)),
    }
    context.log_event(AssetObservation(watermark_key(flow.name), metadata=metadata))


def _show(
    context: OpExecutionContext,
    given: Looking,
    view: Callable[[WatermarkLog, Any], Any],
    project: Project,
    platform: Platform,
) -> None:
    (flow,) = project.named([given.dataflow])
    state = view(platform.log, given)
    context.log_event(
        AssetObservation(watermark_key(flow.name), metadata={"state": MetadataValue.json(state)})
    )


def say(context: OpExecutionContext, lines: Sequence[str]) -> None:
    """Log lines."""
    for line in lines:
        context.log.info(line)


def listed(lines: Sequence[str]) -> str:
    """Return lines as a list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)
