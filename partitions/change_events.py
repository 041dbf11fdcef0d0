"""Sources of change events: what each event says beside its row, and what a load makes of it.

See docs/reference/debezium.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from partitions.dataflow_parts import DataflowParts
from partitions.loads import Load, Order, OrderByColumn, OrderByPath, Scd2
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.sources.event_columns import EVENT_COLUMNS, OPERATION, POSITION, TIME
from partitions.target import ORIGIN_COLUMNS, Target

_IS_DELETE = f"{OPERATION} = 'd'"
_REMEMBERED = timedelta(days=30)
"""How long deleted keys are remembered unless the target says it: an older event of them may come late."""


def target_of_events(target: Target, *, has_step: bool) -> Target:
    """Return a target with what follows from its rows being change events.

    Deletes are applied, and remembered; columns that an event does not tell keep their values.

    Args:
        target: as the user declares it.
        has_step: whether ``sql`` or ``transform`` decides which columns rows have.
    """
    if target.load not in ("merge_upsert", "scd2") or target.insert_only:
        return target
    implied: dict[str, Any] = {}
    own = target.delete_when
    if _IS_DELETE not in (own or ""):
        implied["delete_when"] = f"{_IS_DELETE} OR ({own})" if own else _IS_DELETE
    if target.keep_tombstones is None and not target.shared:
        implied["keep_tombstones"] = _REMEMBERED
    if target.load == "merge_upsert" and not has_step:
        implied["missing_columns"] = "keep"
    if target.load == "scd2" and target.effective_column is None:
        implied["effective_column"] = TIME
    return target.model_copy(update=implied)


def order_of_rows(source: SourceDefinition) -> Order:
    """Return which of two rows of a key is later: change events have a position, others their file."""
    return (OrderByColumn(POSITION),) if source.sends_changes else (OrderByPath(ORIGIN_COLUMNS[0]),)


def load_of_events(source: SourceDefinition, load: Load) -> Load:
    """Return a load in which what an event says beside its row makes no version."""
    if not source.sends_changes or not isinstance(load, Scd2):
        return load
    return replace(load, ignored=(*load.ignored, *EVENT_COLUMNS))


def columns_needed(source: SourceDefinition, target: Target) -> Mapping[str, str]:
    """Return the columns that a step must leave in the rows, each with the reason."""
    if not source.sends_changes or not target.merges:
        return {}
    return {POSITION: "it says which change of a key is later"}


def event_refusals(parts: DataflowParts[Any]) -> Iterator[Refusal]:
    """Yield what change events do not go with."""
    source, target = parts.source, parts.target
    if not source.sends_changes:
        return
    if not parts.watermark.remembers_files:
        yield Refusal(
            ("watermark", "type"),
            f"{parts.watermark.type} beside format: {source.form}",
            "path (events are ordered by their position, in whichever file they are)",
        )
    if target.load in ("overwrite", "merge_overwrite"):
        yield Refusal(
            ("target", "load"),
            f"{target.load} beside format: {source.form}",
            "merge_upsert or scd2, which apply the changes, or append, which keeps them",
        )
    if target.insert_only:
        yield Refusal(
            ("target", "insert_only"),
            f"true beside format: {source.form}",
            "no such key (updates and deletes are applied), or load: append",
        )
    if source.complete:
        yield Refusal(
            ("source", "complete"), f"true beside format: {source.form}", "no such key (changes are no whole)"
        )
