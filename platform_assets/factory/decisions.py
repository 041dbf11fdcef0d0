"""Jobs for an operator's decisions and views of a state, launched from the UI.

Without ``confirm`` a job only shows the effect of the decision; with it, the entry is appended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from dagster import (
    Config,
    JobDefinition,
    MetadataValue,
    OpExecutionContext,
)
from pydantic import Field

from platform_assets.factory.answers import DeletedAnswer, FilesBelow, GoneAnswer
from platform_assets.factory.config_jobs import ProjectJobs, log_lines, markdown_list
from platform_assets.run_metadata import watermark_metadata
from platform_assets.state_views import changes_between
from platform_assets.words import stored_in_words
from resources.decisions.delete import forget_delete
from resources.kinds import all_decisions as decisions
from resources.kinds.all_decisions import DraftBuilder
from resources.kinds.stream.flush import NothingWaits, flush
from resources.kinds.stream.splits import merge_splits, remove_splits
from resources.loop.loop import clock
from resources.watermarks.exporting import export_lines
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine


class DecisionConfig(Config):
    """The fields of every decision."""

    dataflow: str = Field(description="Name of the dataflow.")
    reason: str = Field(description="Reason for the decision; stored in the log. Not empty.")
    confirm: bool = Field(default=False, description="Append the entry; otherwise only show the effect.")


class ReplacingConfig(DecisionConfig):
    """A decision after which rows may be loaded again."""

    replace: bool = Field(
        default=False,
        description="Delete the old rows in the commit that loads them again.",
    )


class RewindConfig(ReplacingConfig):
    """The fields of ``state rewind``."""

    to: int = Field(description="Go back to the watermark of the entry with this number; 0 is the beginning.")
    gone_files: GoneAnswer | None = Field(
        default=None,
        description="With replace: what happens to rows of files that no longer exist at the source.",
    )
    restore_deleted: bool = Field(
        default=False, description="Rows that others deleted from the table may come back."
    )


class AdoptConfig(DecisionConfig):
    """The fields of ``state adopt``."""

    deleted: DeletedAnswer | None = Field(
        default=None,
        description="What becomes of rows that others may have deleted from the table, if the state is lost.",
    )


class SetConfig(DecisionConfig):
    """The fields of ``state set``."""

    watermark: str = Field(description="Sentinel JSON, not below the current watermark.")


class AcceptConfig(DecisionConfig):
    """The fields of ``state accept``."""

    below: FilesBelow | None = Field(
        default=None,
        description="After a change of root: how to treat files at or below the watermark that no entry lists; by default "
        "late.",
    )
    gone_files: GoneAnswer | None = Field(
        default=None,
        description="After a rewind that replaces rows: what happens to rows of files that the source lacks as it is defined now.",
    )


class ImportConfig(DecisionConfig):
    """The fields of ``state import``."""

    lines: list[str] = Field(description="The lines of `strandline state export`.")
    deleted: DeletedAnswer | None = Field(
        default=None,
        description="What becomes of rows that others may have deleted from the table since the export.",
    )


class ViewConfig(Config):
    """The fields of ``state export``, which ``state history`` and ``state diff`` have, too."""

    dataflow: str = Field(description="Name of the dataflow.")


class HistoryConfig(ViewConfig):
    """The fields of ``state history``."""

    limit: int = Field(default=100, description="How many entries, newest first.")


class DiffConfig(ViewConfig):
    """The fields of ``state diff``."""

    before: int | None = Field(default=None, description="An entry's number; by default the one before.")
    after: int | None = Field(default=None, description="An entry's number; by default the newest.")


class PathsConfig(DecisionConfig):
    """The fields of ``files release`` and ``files unprocess``."""

    paths: list[str] = Field(description="Relative to the root of the source.")


class ForgetConfig(DecisionConfig):
    """The fields of ``delete --forget``."""

    entry: int = Field(description="Number of the delete's entry.")


class SplitsConfig(DecisionConfig):
    """The fields of ``splits remove``."""

    splits: list[str] = Field(
        description="Names of the stream's splits, as `strandline state show` lists them."
    )


class FlushConfig(DecisionConfig):
    """The fields of ``stream flush``."""

    before: str = Field(
        default="",
        description="Flush only rows below this event time, such as 2026-01-31T12:00Z; empty: all buffered rows.",
    )


class MergeSplitsConfig(SplitsConfig):
    """The fields of ``splits merge``."""

    into: str = Field(description="Name of the merged split.")


_DECISIONS: dict[str, tuple[type[DecisionConfig], Callable[[Any], DraftBuilder], str]] = {
    "state_accept": (
        AcceptConfig,
        lambda config: decisions.accept(
            config.reason,
            config.below.value if config.below else None,
            GoneAnswer.value_of(config.gone_files),
        ),
        "Accept a changed definition.",
    ),
    "state_adopt": (
        AdoptConfig,
        lambda config: decisions.adopt(config.reason, DeletedAnswer.value_of(config.deleted)),
        "Take the watermark derived from the table.",
    ),
    "state_reset": (
        ReplacingConfig,
        lambda config: decisions.reset(config.reason, replace=config.replace),
        "Start again: the next run loads everything in the source.",
    ),
    "state_rewind": (
        RewindConfig,
        lambda config: decisions.rewind(
            config.reason,
            config.to,
            replace=config.replace,
            gone_files=GoneAnswer.value_of(config.gone_files),
            deleted="load" if config.restore_deleted else None,
        ),
        "Go back to an older entry: data above it is read again.",
    ),
    "state_set": (
        SetConfig,
        lambda config: decisions.set_watermark(config.reason, config.watermark),
        "Raise the watermark; files that it skips are not loaded.",
    ),
    "state_import": (
        ImportConfig,
        lambda config: decisions.import_entries(
            config.reason, config.lines, DeletedAnswer.value_of(config.deleted)
        ),
        "Restore the state of an export: entries, lists, quarantine and watermark.",
    ),
    "files_release": (
        PathsConfig,
        lambda config: decisions.release(config.reason, config.paths),
        "Take files out of quarantine: the next run loads them.",
    ),
    "files_unprocess": (
        PathsConfig,
        lambda config: decisions.unprocess(config.reason, config.paths),
        "Mark ingested files for another read (tracking: set).",
    ),
    "delete_forget": (
        ForgetConfig,
        lambda config: forget_delete(config.reason, config.entry),
        "End a delete: later loads no longer withhold its rows.",
    ),
    "splits_remove": (
        SplitsConfig,
        lambda config: remove_splits(config.reason, config.splits),
        "Remove splits of a stream: its global watermark no longer waits for them.",
    ),
    "stream_flush": (
        FlushConfig,
        lambda config: flush(config.reason, config.before or None),
        "Flush a stream's buffered rows: the next run emits them. Rows below them that arrive later are late.",
    ),
    "splits_merge": (
        MergeSplitsConfig,
        lambda config: merge_splits(config.reason, config.splits, config.into),
        "Merge several splits into one, with the maximum of their watermarks.",
    ),
}


_VIEWS: dict[str, tuple[type[ViewConfig], Callable[[WatermarkLog, Any], Any], str]] = {
    "state_history": (
        HistoryConfig,
        lambda log, config: [entry.as_json() for entry in log.history(config.dataflow, config.limit)],
        "Show the entries of a state, newest first, as metadata of the run.",
    ),
    "state_diff": (
        DiffConfig,
        lambda log, config: changes_between(log, config.dataflow, config.before, config.after),
        "Show what changed between two entries of a state.",
    ),
    "state_export": (
        ViewConfig,
        lambda log, config: [json.loads(line) for line in export_lines(log, config.dataflow)],
        "Show a whole state in the form that state_import takes: the entries first.",
    ),
}


def decision_jobs(jobs: ProjectJobs) -> list[JobDefinition]:
    """Return a job for each decision and each view of a state, for all dataflows of the project."""
    bodies = _DecisionJobs.of(jobs)
    return [
        *(
            jobs.job(name, config, partial(bodies.preview_or_append, build_draft), text)
            for name, (config, build_draft, text) in _DECISIONS.items()
        ),
        *(
            jobs.job(name, config, partial(bodies.show, view), text)
            for name, (config, view, text) in _VIEWS.items()
        ),
    ]


class _DecisionJobs(ProjectJobs):
    """The bodies of the jobs of decisions and views."""

    def preview_or_append(
        self,
        draft_builder: Callable[[Any], DraftBuilder],
        context: OpExecutionContext,
        config: DecisionConfig,
    ) -> None:
        (flow,) = self.project.named([config.dataflow])
        platform, build_draft, run_is_live = self.platform, draft_builder(config), self.options.run_is_live
        words = partial(stored_in_words, flow.kind)
        try:
            preview = decisions.preview(
                platform, flow, build_draft, self.options.now or clock(), run_is_live, words
            )
        except NothingWaits as refusal:
            context.log.info(refusal.message)
            return
        log_lines(context, [f"{flow.name}: {preview.draft.entry.why}", *preview.lines])
        if not config.confirm:
            context.log.warning("nothing was appended: set confirm to true to append this entry")
            return
        entry = decisions.decide(platform, flow, build_draft, config.reason, run_is_live)
        context.log.info("entry %d appended", entry.number)
        metadata = {
            **watermark_metadata(entry, read_quarantine(platform.log, entry)),
            "reason": config.reason,
            "effect": MetadataValue.md(markdown_list(preview.lines)),
        }
        self.log_observation(context, flow.name, metadata)

    def show(
        self, view: Callable[[WatermarkLog, Any], Any], context: OpExecutionContext, config: ViewConfig
    ) -> None:
        (flow,) = self.project.named([config.dataflow])
        state = view(self.platform.log, config)
        self.log_observation(context, flow.name, {"state": MetadataValue.json(state)})
