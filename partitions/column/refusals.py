"""Settings that cannot be combined with a column watermark (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.column.definition import TRANSACTIONS, ColumnWatermark
from partitions.column.lookback import LookBack
from partitions.column.state import ColumnState
from partitions.dataflow_parts import DataflowParts, KindRules, reads_any
from partitions.refusal import Refusal
from partitions.target import Target

_LOADS_THAT_REPLACE = "load: merge_upsert, or merge_overwrite with replace_by_watermark: true"


def refusals(parts: DataflowParts[ColumnWatermark]) -> Iterator[Refusal]:
    """Yield the settings of a dataflow that cannot be combined with its column watermark.

    Covers the source, the target, ``on_bad_file`` and the watermark's own settings.
    """
    source, watermark, target = parts.source, parts.watermark, parts.target
    yield from source.windowless_refusals()
    yield from source.parameter_refusals(watermark.columns, watermark.nulls)
    if target.load == "overwrite":
        yield Refusal(
            ("target", "load"),
            target.load,
            "append, merge_upsert or merge_overwrite (each run reads only new rows: an overwrite would delete all others)",
        )
    if parts.on_bad_file == "quarantine":
        yield Refusal(
            ("on_bad_file",),
            "quarantine",
            "stop (rows of a file that is repaired later may lie below the stored value, and no run "
            "would read them)",
        )
    if watermark.settle == TRANSACTIONS and not source.incremental_support.shows_transactions:
        yield Refusal(
            ("watermark", "settle"),
            f"{TRANSACTIONS} beside a source of type {source.type}",
            "a duration such as PT5M, or, for numbers, backward: {by: 1000} with target.merge_keys (only PostgreSQL shows its open transactions)",
        )
    if target.only_adds:
        yield from _append_refusals(watermark)
    yield from replace_by_watermark_refusals(target, watermark.backward)
    yield from _reread_refusals(watermark, target)


def replace_by_watermark_refusals(target: Target, look_back: LookBack | None) -> Iterator[Refusal]:
    """Yield why a target with ``replace_by_watermark`` cannot replace the rows of a look-back.

    It needs ``load: merge_overwrite`` and a look-back; zero days count as one. See
    docs/reference/loads.md.
    Public because a conformance test calls it.
    """
    if not target.replace_by_watermark:
        return
    if target.load != "merge_overwrite":
        yield Refusal(("target", "load"), target.load, "merge_overwrite beside replace_by_watermark")
    if look_back is None:
        yield Refusal(
            ("target", "replace_by_watermark"),
            "true without a look-back",
            "watermark.backward beside it, or in the connection (the load replaces the rows that are read again)",
        )


def _reread_refusals(watermark: ColumnWatermark, target: Target) -> Iterator[Refusal]:
    """Yield settings that re-read rows although the load cannot match them by key."""
    if watermark.boundary == "inclusive" and not target.merge_keys:
        yield Refusal(
            ("watermark", "boundary"),
            "inclusive without target.merge_keys",
            "exclusive, or load: merge_upsert with merge_keys (each run reads the rows at the stored value again)",
        )
    if watermark.nulls == "read" and not target.merges:
        yield Refusal(
            ("watermark", "nulls"),
            f"read beside load: {target.load}",
            "first, skip or fail, or load: merge_upsert with merge_keys (each run reads these rows again, and only keys find them in the table)",
        )


def _append_refusals(watermark: ColumnWatermark) -> Iterator[Refusal]:
    """Yield settings that would make append add a row twice."""
    if watermark.looks_back:
        yield Refusal(
            ("watermark", "backward"),
            "a look-back beside load: append",
            f"{_LOADS_THAT_REPLACE} (append would add these rows a second time), or no look-back (`backward: {{}}` turns off the connection's)",
        )
    if len(watermark.columns) > 1:
        yield Refusal(
            ("watermark", "columns"),
            ", ".join(watermark.columns),
            f"one column beside load: append (a row whose values fall into two runs would be added twice), or {_LOADS_THAT_REPLACE}",
        )


RULES = KindRules(ColumnState, reads_any, refusals)
