"""Settings that cannot be combined with a stream on Spark's engine.

See docs/reference/streams-on-spark.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from partitions.dataflow_parts import DataflowParts, KindRules, reads_any
from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.sources.several import at_source_key
from partitions.spark_stream import union_join
from partitions.spark_stream.definition import StructuredStream, misplaced_operator
from partitions.stream.operators import (
    Aggregate,
    Join,
    OverWindow,
    window_lengths,
)
from partitions.stream.refusals import file_refusals
from partitions.stream.state import StreamState

_LOADS = {"append": "append", "update": "merge_upsert", "complete": "overwrite"}
"""By output mode: the load that keeps the meaning of Spark's rows."""


def _source_refusals(source: SourceDefinition) -> Iterator[Refusal]:
    """Yield why Spark's engine cannot resume reading the source from a checkpoint."""
    if not source.has_chunks:
        expected = "a source of type files or table (Spark continues where its checkpoint ends)"
        yield Refusal(("source", "type"), source.type, expected)
    if source.holds_files and source.declared_schema is None:
        expected = "a schema (a stream's columns are fixed before its first file)"
        yield Refusal(("source", "schema"), "nothing", expected)


def refusals(parts: DataflowParts[StructuredStream]) -> Iterator[Refusal]:
    """Yield options that a stream on Spark's engine does not support."""
    source, watermark, target, operators = parts.source, parts.watermark, parts.target, parts.operators
    for source_key, part in source.parts.items():
        yield from at_source_key(source_key, _source_refusals(part))
    if (load := _LOADS[watermark.output_mode]) != target.load:
        yield Refusal(("target", "load"), target.load, f"{load} beside output_mode: {watermark.output_mode}")
    if (why := misplaced_operator(operators, len(source.parts))) is not None:
        yield Refusal(
            ("operators",),
            ", ".join(operator.type for operator in operators) or "none",
            why.removeprefix("expected "),
        )
    if any(isinstance(operator, OverWindow) for operator in operators):
        yield Refusal(
            ("operators",), "over", "no over, or engine: splits (Spark's streams have no such windows)"
        )
    if watermark.output_mode != "append" and operators and isinstance(operators[0], Join):
        expected = "append (Spark joins streams only in output mode append)"
        yield Refusal(("watermark", "output_mode"), f"{watermark.output_mode} beside join", expected)
    yield from union_join.refusals(source, watermark.event_time, operators)
    for operator in operators:
        for key, length in window_lengths(operator.window) if isinstance(operator, Aggregate) else ():
            if isinstance(length, int):
                expected = "a duration such as PT5M (Spark's event time is a timestamp)"
                yield Refusal(("operators", "window", key), str(length), expected)
    if target.schema_mode != "strict":
        yield Refusal(
            ("target", "schema_mode"),
            target.schema_mode,
            "strict (the checkpoint fixes the columns of the query)",
        )
    if target.shared:
        yield Refusal(("target", "shared"), "true", "a table of its own beside a stream")
    yield from file_refusals(
        parts.on_bad_file,
        parts.late_files,
        why_stop="Spark reads each file once",
        why_not_late="the event time says what is late",
    )


RULES = KindRules(StreamState, reads_any, refusals)
