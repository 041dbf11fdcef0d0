"""Decide which kinds, sources, loads and formats can be combined, and explain why others cannot.

A combination without a refusal works. Here are the rules of table formats, and those that hold for every
kind. A kind's own rules are in its room (``partitions.path.refusals``), a source's in its definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from partitions.change_events import event_refusals
from partitions.checks import COMMON, RECONCILED, check_refusals
from partitions.complete_source import complete_refusals
from partitions.dataflow_parts import DataflowParts
from partitions.delete_when import delete_refusals
from partitions.keyed_options import option_refusals
from partitions.kinds import KINDS, definition_class
from partitions.reconcile.settings import reconcile_refusals
from partitions.refusal import Refusal
from partitions.rules.definition import Rule, rule_refusals
from partitions.sources import SOURCES
from partitions.sources.definition import SourceDefinition, version_refusals
from partitions.sources.formats import FORMATS as FILE_FORMATS
from partitions.sources.several import at_source_key
from partitions.stream.operators import Operator
from partitions.target import Target
from partitions.watermark_definition import WatermarkDefinition

_ONE_SOURCE = "one source, or a stream with engine: structured_streaming (only this engine joins several)"
_NOT_SHARED = "format: delta or iceberg, or a table of its own"

_NO_KEYS = (
    "append, overwrite, or merge_overwrite with replace_by_watermark: true (a Parquet table replaces "
    "whole files and cannot find a row by its keys), or format: delta"
)

ExpectedInstead = Mapping[str, str | None]
"""By the word that a user writes: what is expected instead; None: the word is supported."""

_ALL_WAYS: ExpectedInstead = dict.fromkeys(
    ("append", "overwrite", "merge_upsert", "merge_overwrite", "replace_by_watermark", "scd2")
)

FORMATS: Mapping[str, ExpectedInstead] = {
    "delta": _ALL_WAYS,
    "iceberg": _ALL_WAYS,
    "parquet": {
        "append": None,
        "overwrite": None,
        "merge_upsert": _NO_KEYS,
        "merge_overwrite": _NO_KEYS,
        "replace_by_watermark": None,
        "scd2": _NO_KEYS,
    },
}
"""By table format: its loads, as ``Target.way`` names them."""

MAINTENANCE: Mapping[str, ExpectedInstead] = {
    "delta": {"optimize": None, "vacuum": None},
    "iceberg": {"optimize": None, "vacuum": None},
    "parquet": {
        "optimize": "no such key (nothing compacts files of Parquet tables yet), or format: delta or iceberg",
        "vacuum": None,
    },
}
"""By table format: its maintenance tasks."""

SHARED: ExpectedInstead = {"delta": None, "iceberg": None}
"""Table formats that several dataflows can load; for all others ``_NOT_SHARED`` is expected."""


def refusals(parts: DataflowParts[Any]) -> Iterator[Refusal]:
    """Yield the settings that cannot be combined."""
    source, watermark = parts.source, parts.watermark
    yield from source.refusals()
    has_version_keys = watermark.reads_versions and not watermark.streams_with_spark
    for key, part in source.parts.items() if not has_version_keys else ():
        yield from at_source_key(key, version_refusals(part))
    if len(source.parts) > 1 and not watermark.streams_with_spark:
        yield Refusal(("source",), source.form, _ONE_SOURCE)
        return
    yield from _field_refusals(source, parts.unknown_fields)
    yield from bad_records_refusals(source, watermark, parts.max_bad_records)
    if parts.max_bad_files is not None and parts.on_bad_file != "quarantine":
        beside = f"{parts.max_bad_files} beside on_bad_file: {parts.on_bad_file}"
        yield Refusal(("max_bad_files",), beside, "no such key, or on_bad_file: quarantine")
    yield from _schema_mode_refusals(source, parts.target, parts.unknown_fields)
    rules = KINDS[type(watermark)]
    if (expected := rules.expected_source(type(source))) is not None:
        yield _source_refusal(watermark.type, source.type, expected)
    if parts.operators and not watermark.takes_operators:
        names = ", ".join(operator.type for operator in parts.operators)
        yield Refusal(("operators",), names, "no such key, or a watermark of type stream")
    yield from _format_refusals(parts)
    yield from parts.target.refusals(pairs_changes=watermark.pairs_changes(source))
    yield from delete_refusals(parts.target, sends_changes=source.sends_changes)
    yield from event_refusals(parts)
    yield from option_refusals(parts)
    yield from complete_refusals(parts)
    yield from rules.refusals(parts)
    yield from rule_refusals(parts.rules)
    yield from reconcile_refusals(parts.reconcile, watermark, parts.target.load, parts.step)
    is_reconciled = parts.reconcile is not None
    checks = check_names(watermark, parts.operators, parts.rules, is_reconciled=is_reconciled)
    yield from check_refusals(parts.checks, checks)


def check_names(
    watermark: WatermarkDefinition,
    operators: Sequence[Operator],
    rules: Sequence[Rule] = (),
    *,
    is_reconciled: bool = False,
) -> Sequence[str]:
    """Return the names of the checks that a dataflow has."""
    reconciled = (RECONCILED,) if is_reconciled else ()
    own = KINDS[type(watermark)].checks(operators)
    return (*COMMON, *reconciled, *own, *(rule.check for rule in rules))


def source_refusal(kind: str, source: str) -> Refusal | None:
    """Return why a kind cannot read a source; None if it can, or if either word is unknown."""
    definition = definition_class(kind)
    if definition is None or source not in SOURCES:
        return None
    expected = KINDS[definition].expected_source(SOURCES[source])
    return None if expected is None else _source_refusal(kind, source, expected)


def _source_refusal(kind: str, source: str, expected: str) -> Refusal:
    return Refusal(("watermark", "type"), f"{kind} beside a source of type {source}", expected)


def bad_records_refusals(
    source: SourceDefinition, watermark: WatermarkDefinition, max_bad_records: int
) -> Iterator[Refusal]:
    """Yield why a slice cannot set bad records aside; nothing if it need not."""
    if not max_bad_records:
        return
    if not watermark.remembers_files:
        why = "a path watermark (it reads each file once; other reads would set the same record aside again)"
        beside = f"{max_bad_records} beside a {watermark.type} watermark"
        yield Refusal(("max_bad_records",), beside, f"0, or {why}")
    elif not source.record_support.are_lines:
        formats = " or ".join(name for name, form in FILE_FORMATS.items() if form.records_are_lines)
        yield Refusal(
            ("max_bad_records",),
            f"{max_bad_records} beside {source.form}",
            f"0, or format {formats} (whose records are lines, which can be told apart)",
        )


def _format_refusals(parts: DataflowParts[Any]) -> Iterator[Refusal]:
    """Yield what the table format cannot do."""
    target, maintenance = parts.target, parts.maintenance
    if (expected := FORMATS[target.format][target.way]) is not None:
        yield Refusal(("target", "load"), f"{target.load} beside format {target.format}", expected)
    if target.shared and (expected := SHARED.get(target.format, _NOT_SHARED)) is not None:
        yield Refusal(("target", "shared"), f"true beside format {target.format}", expected)
    for task in maintenance.periods() if maintenance else ():
        if (expected := MAINTENANCE[target.format][task]) is not None:
            yield Refusal(("maintenance", task), f"{task} beside format {target.format}", expected)
    if target.cluster_by and not (maintenance and maintenance.optimize):
        yield Refusal(
            ("target", "cluster_by"),
            f"{', '.join(target.cluster_by)} without maintenance.optimize",
            "maintenance: {optimize: P1D} beside it, which clusters the rows; or no such key",
        )


def _schema_mode_refusals(source: SourceDefinition, target: Target, unknown_fields: str) -> Iterator[Refusal]:
    mode = target.schema_mode
    if mode == "overwrite" and target.load != "overwrite":
        yield Refusal(
            ("target", "schema_mode"),
            f"overwrite beside load: {target.load}",
            "strict, merge or rescue, or load: overwrite (which replaces all rows; rows that stay keep "
            "their columns)",
        )
    if mode == "rescue":
        yield from _rescue_refusals(source)
    if mode in ("merge", "rescue") and unknown_fields == "ignore":
        does = "keeps unknown fields" if mode == "rescue" else "makes columns of unknown fields"
        yield Refusal(
            ("unknown_fields",), f"ignore beside schema_mode: {mode}", f"check (schema_mode: {mode} {does})"
        )


def _rescue_refusals(source: SourceDefinition) -> Iterator[Refusal]:
    """Yield why ``_rescued_data`` cannot keep values that do not fit.

    It could not keep text that is not JSON letter by letter.
    """
    if (expected := source.record_support.rescue_refusal) is not None:
        yield Refusal(("target", "schema_mode"), f"rescue beside {source.form}", expected)
    for key, part in source.parts.items():
        for name in part.record_support.lenient_options:
            expected = "standard JSON, whose values are kept character by character; remove the option, or use strict or merge"
            yield Refusal((*key, "options", name), "true beside schema_mode: rescue", expected)


def _field_refusals(source: SourceDefinition, unknown_fields: str) -> Iterator[Refusal]:
    reasons = [part.record_support.always_checked for part in source.parts.values()]
    left_out = [name for name, form in FILE_FORMATS.items() if form.always_checked is None]
    if unknown_fields == "ignore" and all(reasons):
        yield Refusal(
            ("unknown_fields",),
            f"ignore beside {source.form}",
            f"check (only {', '.join(left_out)}, the answers of an API and the rows of a function can ignore fields; {reasons[0]})",
        )
