"""Settings that cannot be combined with a stream over splits (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from partitions.checks import EPOCH_BOUNDS, SORTED, SPLIT_DRIFT
from partitions.dataflow_parts import DataflowParts, KindRules
from partitions.path.bad_files import OnBadFile
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.stream.definition import StreamWatermark
from partitions.stream.operators import Operator, OverWindow, splits_refusals
from partitions.stream.state import StreamState
from partitions.target import Target


def _expected_source(source: type[SourceDefinition]) -> str | None:
    if source.has_chunks:
        return None
    return "a source of type table or files (a stream reads chunks that never change: versions of a table, or files)"


def refusals(parts: DataflowParts[StreamWatermark]) -> Iterator[Refusal]:
    """Yield why a stream cannot be read from the source, or loaded into the target."""
    source, watermark, step = parts.source, parts.watermark, parts.step
    yield from splits_refusals(parts.operators, watermark.timeout)
    yield from source.windowless_refusals()
    yield from source.append_refusals()
    yield from _split_refusals(watermark)
    for key in () if source.holds_files else StreamWatermark.FILES_ONLY:
        if key in watermark.model_fields_set:
            yield Refusal(
                ("watermark", key),
                f"{key} beside a source of type {source.type}",
                "no such key, or a source of type files",
            )
    if step is not None:
        yield Refusal(
            (step,), f"{step} beside a stream watermark", "no step (a stream loads rows as they are)"
        )
    yield from _target_refusals(parts.target)
    if parts.maintenance is not None and "optimize" in parts.maintenance.periods():
        yield Refusal(
            ("maintenance", "optimize"),
            "optimize",
            "no such key (joining files breaks the order of their rows)",
        )
    yield from file_refusals(
        parts.on_bad_file,
        parts.late_files,
        why_stop="the rows of a file that is repaired later would be late",
        why_not_late="the event time says which rows are late: watermark.late",
    )


def file_refusals(
    on_bad_file: OnBadFile, late_files: str, *, why_stop: str, why_not_late: str
) -> Iterator[Refusal]:
    """Yield options for bad and late files that no stream supports; the reasons depend on its engine."""
    if on_bad_file != "stop":
        yield Refusal(("on_bad_file",), on_bad_file, f"stop ({why_stop})")
    if late_files != "ingest":
        yield Refusal(("late_files",), late_files, f"no such key ({why_not_late})")


def _target_refusals(target: Target) -> Iterator[Refusal]:
    """Yield why the rows of a stream cannot be loaded into a target."""
    if not target.only_adds:
        yield Refusal(
            ("target", "load"),
            target.load,
            "append (the table of a stream only grows: rows leave the buffer once, in order)",
        )
    if target.shared:
        yield Refusal(("target", "shared"), "true", "a table of its own (its rows are ordered by event time)")
    if target.format == "parquet":
        yield Refusal(
            ("target", "format"),
            "parquet",
            "delta or iceberg (a Parquet table moves files after its entry, and side tables have no entries)",
        )
    if target.partition_by:
        columns = ", ".join(target.partition_by)
        yield Refusal(
            ("target", "partition_by"),
            columns,
            "no such key (files are ordered by event time and do not overlap)",
        )
    if target.schema_mode != "strict":
        yield Refusal(
            ("target", "schema_mode"), target.schema_mode, "strict (the buffer holds rows of one schema)"
        )


def _split_refusals(watermark: StreamWatermark) -> Iterator[Refusal]:
    """Yield conflicts between keys of splits and types of spans."""
    if watermark.splits and watermark.split is None:
        yield Refusal(
            ("watermark", "splits"),
            ", ".join(watermark.splits),
            "watermark.split beside it (the column that holds a row's split)",
        )
    spans = {"timeout": watermark.timeout, "max_ahead": watermark.max_ahead}
    if "max_drift" in watermark.buffer.model_fields_set:
        spans["buffer.max_drift"] = watermark.buffer.max_drift
    kinds = {isinstance(span, int) for span in spans.values() if span is not None}
    if len(kinds) > 1:
        yield Refusal(
            ("watermark", "timeout"),
            ", ".join(f"{name} {span}" for name, span in spans.items() if span is not None),
            "durations in all of them for a timestamp, or whole numbers in all of them for a whole number",
        )


def _checks(operators: Sequence[Operator]) -> Sequence[str]:
    is_over_window = any(isinstance(operator, OverWindow) for operator in operators)
    return (EPOCH_BOUNDS, SPLIT_DRIFT) if is_over_window else (EPOCH_BOUNDS, SORTED, SPLIT_DRIFT)


RULES = KindRules(StreamState, _expected_source, refusals, checks=_checks)
