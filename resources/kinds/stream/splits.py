"""Decisions that remove or merge splits of a stream (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.sentinels import serialise
from partitions.stream.epoch import state_with_merged_splits, state_without_splits
from partitions.stream.splits import SplitOptions
from partitions.stream.state import StreamState
from resources.decisions.draft import Draft, DraftBuilder, draft_entry, require_current_definition
from resources.kinds.state_of_entry import state_of
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry


def remove_splits(reason: str, names: Sequence[str]) -> DraftBuilder:
    """Return the builder of a decision: the global watermark no longer waits for some splits.

    Raises:
        ConfigurationError: the dataflow is no stream, lacks a split, or declares one of them: the
            next epoch would wait for it again.
    """
    return _build_change(
        reason, names, names, lambda state, splits: state_without_splits(state, splits, names)
    )


def merge_splits(reason: str, names: Sequence[str], into: str) -> DraftBuilder:
    """Return the builder of a decision: splits become one, with the highest of their watermarks.

    Raises:
        ConfigurationError: the dataflow is no stream, lacks a split, or declares one that disappears:
            the next epoch would wait for it again.
    """
    leaving = [name for name in names if name != into]
    return _build_change(
        reason, names, leaving, lambda state, splits: state_with_merged_splits(state, splits, names, into)
    )


def _build_change(
    reason: str,
    names: Sequence[str],
    leaving: Sequence[str],
    change: Callable[[StreamState, SplitOptions], StreamState],
) -> DraftBuilder:
    """Return the builder of a decision that changes the splits of a state.

    Args:
        reason: the operator's reason.
        names: the splits that the operator names.
        leaving: those of them that disappear, which the definition must not declare.
        change: returns the state after the decision.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        definition = dataflow.stream
        last = require_current_definition(platform, dataflow, last)
        state = state_of(StreamState, dataflow, last)
        if not names:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected names of splits, found none",
                choices=(f"strandline state show {dataflow.name} --full",),
            )
        declared = sorted(set(leaving) & definition.policy.declared)
        if declared:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected splits that watermark.splits does not declare, found "
                f"{', '.join(declared)}: the next epoch would wait for "
                f"{'it' if len(declared) == 1 else 'them'} again. Remove {', '.join(declared)} from "
                f"watermark.splits (dataflows/{dataflow.name}.yaml), then run this command again"
            )
        unknown = sorted(set(names) - set(state.splits))
        if unknown:
            split_names = ", ".join(sorted(state.splits)[:20]) or "none"
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected splits of the stream, which has {split_names}; found {', '.join(unknown)}",
                choices=(f"strandline state show {dataflow.name} --full",),
            )
        watermark = serialise(change(state, definition.policy).watermark())
        return Draft(draft_entry(platform, dataflow, last, "splits", reason, watermark=watermark))

    return build_draft
