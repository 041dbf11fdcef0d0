"""Decide which kinds, sources, loads and formats go together, and explain why others do not.

A combination without a sentence works. A new one is a line here, and its code in the module of the kind,
source or format. The kind (``partitions.path.refusals``, ``partitions.window.refusals``) or the source
(``window_refusals``, ``path_refusals``) yields the rules that depend on more than names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from partitions.column import refusals as column
from partitions.column.definition import ColumnWatermark
from partitions.maintenance_periods import Maintenance
from partitions.path import refusals as path
from partitions.path.bad_files import OnBadFile
from partitions.path.definition import PathWatermark
from partitions.records.options import lenient_options
from partitions.refusal import Refusal
from partitions.sources import (
    ApiSource,
    FilesSource,
    JdbcSource,
    PythonSource,
    SeveralSources,
    TableSource,
)
from partitions.sources.definition import SourceDefinition
from partitions.sources.formats import FORMATS as FILE_FORMATS
from partitions.sources.several import at_source_key
from partitions.spark_stream import refusals as spark_stream
from partitions.spark_stream.definition import StructuredStream
from partitions.stream import refusals as stream
from partitions.stream.definition import StreamWatermark
from partitions.stream.operators import Operator, splits_refusals
from partitions.target import Target
from partitions.window import refusals as window
from partitions.window.definition import WindowWatermark

_NEW_FILES = (
    "append or merge_upsert (each run reads new files only: an overwrite would delete the rows of all others)"
)
_NEW_ROWS = "append, merge_upsert or merge_overwrite (each run reads new rows only: an overwrite would delete all others)"
_FILES = "a source of type files (a path watermark needs files)"
_CHUNKS = "a source of type table or files (a stream is read in chunks that do not change: versions of a table, or files)"
_ONE_SOURCE = "one source, or a stream with engine: structured_streaming (which alone joins several)"
_ONLY_GROWS = "append (the table of a stream only grows: rows leave the buffer once, in order)"
_PINNED = "its columns are pinned"
_NOT_SHARED = "format: delta or iceberg, or a table of its own"

_NO_KEYS = (
    "append, overwrite, or merge_overwrite with replace_by_watermark: true (a Parquet table replaces whole files: nothing finds a row by its keys),"
    " or format: delta"
)

ExpectedInstead = Mapping[str, str | None]
"""By the word that a user writes: what is expected instead; None: the word is supported."""


@dataclass(frozen=True)
class Supported:
    """The sources and loads that go together with a kind of watermark."""

    sources: ExpectedInstead
    loads: ExpectedInstead


KINDS: Mapping[str, Supported] = {
    "path": Supported(
        sources={"files": None, "jdbc": _FILES, "api": _FILES, "python": _FILES, "table": _FILES},
        loads={
            "append": None,
            "overwrite": _NEW_FILES,
            "merge_upsert": None,
            "merge_overwrite": None,
            "scd2": None,
        },
    ),
    "column": Supported(
        sources={
            "files": None,
            "jdbc": None,
            "api": None,
            "python": None,
            "table": None,
        },
        loads={
            "append": None,
            "overwrite": _NEW_ROWS,
            "merge_upsert": None,
            "merge_overwrite": None,
            "scd2": None,
        },
    ),
    "window": Supported(
        sources={"files": None, "jdbc": None, "api": None, "python": None, "table": None},
        loads={
            "append": None,
            "overwrite": None,
            "merge_upsert": None,
            "merge_overwrite": None,
            "scd2": None,
        },
    ),
    "stream": Supported(
        sources={
            "table": None,
            "files": None,
            "jdbc": _CHUNKS,
            "api": _CHUNKS,
            "python": _CHUNKS,
        },
        loads={
            "append": None,
            "overwrite": _ONLY_GROWS,
            "merge_upsert": _ONLY_GROWS,
            "merge_overwrite": _ONLY_GROWS,
            "scd2": _ONLY_GROWS,
        },
    ),
}
"""By kind of watermark: its sources and loads."""

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
        "optimize": "no such key (nothing joins files of Parquet tables yet), or format: delta or iceberg",
        "vacuum": None,
    },
}
"""By table format: its maintenance tasks."""

SHARED: ExpectedInstead = {"delta": None, "iceberg": None}
"""Table formats that several dataflows can load; for all others ``_NOT_SHARED`` is expected."""

CAN_SET_RECORDS_ASIDE = ("ndjson", "csv")
"""Source forms whose bad records can be set aside one by one."""

_TYPED = "strict or merge (its values have types of their own, so there is no text to keep)"

RESCUES: ExpectedInstead = {name: form.rescue_refusal for name, form in FILE_FORMATS.items()}
"""By source form: why ``_rescued_data`` cannot keep values that do not fit. Other forms: ``_TYPED``."""

UNKNOWN_FIELDS: ExpectedInstead = {name: form.always_checked for name, form in FILE_FORMATS.items()} | {
    "api": None,
    "a source of type python": None,
}
"""By source form: why fields that the schema lacks cannot be dropped. Other forms: ``_PINNED``."""


@dataclass(frozen=True)
class DataflowParts:
    """The parts of a dataflow that must go together."""

    source: FilesSource | JdbcSource | ApiSource | PythonSource | TableSource | SeveralSources
    watermark: PathWatermark | ColumnWatermark | WindowWatermark | StreamWatermark | StructuredStream
    target: Target
    schedule: str | None
    unknown_fields: str
    on_bad_file: OnBadFile = "stop"
    late_files: str = "ingest"
    maintenance: Maintenance | None = None
    max_bad_records: int = 0
    step: str | None = None
    operators: tuple[Operator, ...] = ()


def refusals(parts: DataflowParts) -> Iterator[Refusal]:
    """Yield the parts that do not go together."""
    source, watermark, target = parts.source, parts.watermark, parts.target
    yield from source.refusals()
    for key, source_part in source.parts.items():
        if isinstance(source_part, TableSource) and not isinstance(watermark, StreamWatermark):
            yield from at_source_key(key, source_part.stream_refusals())
    if isinstance(source, SeveralSources) and not isinstance(watermark, StructuredStream):
        yield Refusal(("source",), source.form, _ONE_SOURCE)
        return
    yield from _fields(source, parts.unknown_fields)
    yield from bad_records_refusals(source.form, watermark.type, parts.max_bad_records)
    yield from _schema_mode(source.form, target, parts.unknown_fields)
    yield from _lenient(source, target.schema_mode)
    if isinstance(watermark, StructuredStream):
        arguments = (source, watermark, parts.operators, target, parts.on_bad_file, parts.late_files)
        yield from spark_stream.refusals(*arguments)
    else:
        yield from _of_kind(parts)
    if (expected := FORMATS[target.format][target.way]) is not None:
        yield Refusal(("target", "load"), f"{target.load} beside format {target.format}", expected)
    if target.shared and (expected := SHARED.get(target.format, _NOT_SHARED)) is not None:
        yield Refusal(("target", "shared"), f"true beside format {target.format}", expected)
    for task in parts.maintenance.periods() if parts.maintenance else ():
        if (expected := MAINTENANCE[target.format][task]) is not None:
            yield Refusal(("maintenance", task), f"{task} beside format {target.format}", expected)
    if target.cluster_by and not (parts.maintenance and parts.maintenance.optimize):
        yield Refusal(
            ("target", "cluster_by"),
            f"{', '.join(target.cluster_by)} without maintenance.optimize",
            "maintenance: {optimize: P1D} beside it, which puts rows together; or no such key",
        )
    yield from target.refusals()
    if isinstance(watermark, PathWatermark):
        yield from path.refusals(source, target, parts.schedule, parts.late_files, parts.on_bad_file)
    elif isinstance(watermark, ColumnWatermark):
        yield from column.refusals(source, watermark, target, parts.on_bad_file)
    elif isinstance(watermark, StreamWatermark):
        yield from stream.refusals(
            source, watermark, target, parts.step, parts.maintenance, parts.on_bad_file, parts.late_files
        )
    elif isinstance(watermark, StructuredStream):
        return
    else:
        yield from window.refusals(source, watermark, target, parts.on_bad_file)


def _of_kind(parts: DataflowParts) -> Iterator[Refusal]:
    """Yield the refusals of a kind with a planner of its own."""
    source, watermark, target = parts.source, parts.watermark, parts.target
    if (refused := source_refusal(watermark.type, source.type)) is not None:
        yield refused
    if (expected := KINDS[watermark.type].loads[target.load]) is not None:
        yield Refusal(("target", "load"), target.load, expected)
    if isinstance(watermark, StreamWatermark):
        yield from splits_refusals(parts.operators, watermark.timeout)
    elif parts.operators:
        names = ", ".join(operator.type for operator in parts.operators)
        expected = "no such key, or a watermark of type stream"
        yield Refusal(("operators",), names, expected)


def source_refusal(kind: str, source: str) -> Refusal | None:
    """Return why a kind cannot read a source; None if it can, or if either word is unknown."""
    expected = KINDS[kind].sources.get(source) if kind in KINDS else None
    if expected is None:
        return None
    return Refusal(("watermark", "type"), f"{kind} beside a source of type {source}", expected)


def bad_records_refusals(form: str, kind: str, max_bad_records: int) -> Iterator[Refusal]:
    """Yield why a slice cannot set bad records aside.

    Args:
        form: the format of the source's files, or the source's type.
        kind: kind of the watermark.
        max_bad_records: ``max_bad_records``.
    """
    if not max_bad_records:
        return
    if kind != "path":
        why = "a path watermark (each file is read once there; else a bad record would be set aside by each read)"
        yield Refusal(("max_bad_records",), f"{max_bad_records} beside a {kind} watermark", f"0, or {why}")
    elif form not in CAN_SET_RECORDS_ASIDE:
        formats = " or ".join(CAN_SET_RECORDS_ASIDE)
        yield Refusal(
            ("max_bad_records",),
            f"{max_bad_records} beside {form}",
            f"0, or format {formats} (whose records are lines, which can be told apart)",
        )


def _schema_mode(form: str, target: Target, unknown_fields: str) -> Iterator[Refusal]:
    mode = target.schema_mode
    if mode == "overwrite" and target.load != "overwrite":
        yield Refusal(
            ("target", "schema_mode"),
            f"overwrite beside load: {target.load}",
            "strict, merge or rescue, or load: overwrite (which replaces all rows; rows that stay keep their columns)",
        )
    if mode == "rescue" and (why := RESCUES.get(form, _TYPED)) is not None:
        yield Refusal(("target", "schema_mode"), f"rescue beside {form}", why)
    if mode in ("merge", "rescue") and unknown_fields == "ignore":
        does = "keeps unknown fields" if mode == "rescue" else "makes columns of unknown fields"
        yield Refusal(
            ("unknown_fields",), f"ignore beside schema_mode: {mode}", f"check (schema_mode: {mode} {does})"
        )


def _lenient(source: SourceDefinition, schema_mode: str) -> Iterator[Refusal]:
    """Yield the options that let Spark accept text that is not JSON.

    A rescued value could not keep such text letter by letter.
    """
    for key, part in source.parts.items() if schema_mode == "rescue" else ():
        if isinstance(part, FilesSource) and part.format in ("json", "ndjson"):
            for name in lenient_options(part.options):
                expected = "JSON as its standard says, whose values are kept letter by letter; leave the option out, or take strict or merge"
                yield Refusal((*key, "options", name), "true beside schema_mode: rescue", expected)


def _fields(source: SourceDefinition, unknown_fields: str) -> Iterator[Refusal]:
    why_of_each = [UNKNOWN_FIELDS.get(source_part.form, _PINNED) for source_part in source.parts.values()]
    left_out = [name for name, reason in UNKNOWN_FIELDS.items() if reason is None and name in FILE_FORMATS]
    if unknown_fields == "ignore" and all(why_of_each):
        yield Refusal(
            ("unknown_fields",),
            f"ignore beside {source.form}",
            f"check (fields are only left out of {', '.join(left_out)}, the answers of an API and the rows of a function; {why_of_each[0]})",
        )
