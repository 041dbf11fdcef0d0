"""Settings that cannot be combined with an offset watermark (docs/reference/offsets.md)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.dataflow_parts import DataflowParts, KindRules
from partitions.offset.changes import change_treatment
from partitions.offset.definition import OffsetWatermark
from partitions.offset.state import OffsetState
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.sources.table import TableSource
from partitions.target import Target


def _expected_source(source: type[SourceDefinition]) -> str | None:
    if issubclass(source, TableSource):
        return None
    return "a source of type table (an offset is a position in the log of a table)"


def refusals(parts: DataflowParts[OffsetWatermark]) -> Iterator[Refusal]:
    """Yield why a table's log cannot be read from the source, or loaded into the target."""
    source, target = parts.source, parts.target
    yield from source.windowless_refusals()
    yield from _target_refusals(target)
    if isinstance(source, TableSource):
        yield from _change_refusals(source, target)


def _target_refusals(target: Target) -> Iterator[Refusal]:
    if target.load == "overwrite":
        yield Refusal(
            ("target", "load"),
            target.load,
            "append, merge_upsert, merge_overwrite or scd2 (each run reads only new commits: an overwrite would delete all other rows)",
        )
    if target.replace_by_watermark:
        yield Refusal(
            ("target", "replace_by_watermark"),
            "true beside an offset",
            "no such key (rows do not tell which commit they come from)",
        )


def _change_refusals(source: TableSource, target: Target) -> Iterator[Refusal]:
    """Yield a treatment of changes that the load cannot carry out."""
    treatment = change_treatment(source, target)
    if treatment == "apply" and target.load not in ("merge_upsert", "scd2"):
        yield Refusal(
            ("source", "on_change"),
            f"apply beside load: {target.load}",
            "stop, skip or keep, or load: merge_upsert or scd2 with merge_keys (only keys tell which row an update or delete means)",
        )
    if treatment == "keep" and target.load != "append":
        yield Refusal(
            ("source", "on_change"),
            f"keep beside load: {target.load}",
            "load: append (every change becomes a row of its own), or on_change: apply",
        )


RULES = KindRules(OffsetState, _expected_source, refusals)
