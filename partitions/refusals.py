"""Parts of a dataflow that fit no other: combinations that are refused before anything runs (spec 05, spec 09)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partitions.sources import FilesSource, JdbcSource, TableSource
from partitions.window.definition import WindowWatermark

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow

_WHOLE = {"start", "end"}
_REPLACING = "load: merge_overwrite with replace_by_watermark: true"


class Refusal(NamedTuple):
    """One combination that is refused.

    Attributes:
        key: of the part that is to blame.
        found: in words.
        expected: in words, with the reason.
    """

    key: tuple[str, ...]
    found: str
    expected: str

    def __str__(self) -> str:
        """In a sentence that begins with the key."""
        return f"{'.'.join(self.key)}: expected {self.expected}, found {self.found}"


class PartsDoNotFit(ValueError):
    """All combinations of a dataflow that are refused: pydantic passes them on together."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        """Keep each of them; the text has them all."""
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = tuple(refusals)


def refusals(flow: Dataflow) -> Iterator[Refusal]:
    """What does not fit."""
    watermark = flow.watermark
    yield from _fields(flow)
    if isinstance(watermark, WindowWatermark):
        yield from _unit_names(watermark)
        yield from _source(flow, watermark)
        yield from _abstinence(flow, watermark)
        yield from _load(flow, watermark)
        yield from _moving(flow, watermark)
        return
    if not isinstance(flow.source, FilesSource):
        yield Refusal(
            ("watermark", "type"),
            f"path beside a source of type {flow.source.type}",
            "a source of type files (a path watermark needs files)",
        )
    elif flow.source.missing is not None:
        yield Refusal(
            ("source", "missing"), flow.source.missing, "no such key (only windows have folders of their own)"
        )
    yield from _path_target(flow)
    if flow.schedule:
        yield Refusal(("schedule",), "one", "no schedule (a path watermark has a sensor)")


def _fields(flow: Dataflow) -> Iterator[Refusal]:
    form = (
        flow.source.format if isinstance(flow.source, FilesSource) else f"a source of type {flow.source.type}"
    )
    if flow.unknown_fields == "ignore" and form not in ("ndjson", "json", "parquet"):
        why = "the header of a csv file must be the schema's" if form == "csv" else "its columns are pinned"
        yield Refusal(
            ("unknown_fields",),
            f"ignore beside {form}",
            f"check (fields are only left out of ndjson, json and parquet; {why})",
        )


def _path_target(flow: Dataflow) -> Iterator[Refusal]:
    target, why = flow.target, "(files above a path watermark are appended)"
    if target.load != "append":
        yield Refusal(("target", "load"), target.load, f"append {why}")
    if target.replace_by_watermark:
        yield Refusal(("target", "replace_by_watermark"), "true", f"no such key {why}")
    if target.merge_keys:
        yield Refusal(("target", "merge_keys"), ", ".join(target.merge_keys), f"no such key {why}")


def _unit_names(watermark: WindowWatermark) -> Iterator[Refusal]:
    """A unit with fewer names than another may hold its rows, which would be loaded for both."""
    given = watermark.unit_entry.listed if watermark.unit_entry else ()
    odd = next((unit for unit in given if set(unit) != set(given[0])), None)
    if odd is not None:
        yield Refusal(
            ("watermark", "definition"),
            f"a unit of {', '.join(odd)} beside one of {', '.join(given[0])}",
            "units that all have values of the same names (a row could belong to two of them)",
        )


def _source(flow: Dataflow, watermark: WindowWatermark) -> Iterator[Refusal]:
    """Something must tell the source which window and which units are asked for."""
    source = flow.source
    if isinstance(source, FilesSource):
        yield from _folders(flow, source, watermark)
        return
    told = source.placeholders
    if watermark.time_entry and source.window_column is None and not told >= _WHOLE:
        or_query = ", or a query with {start} and {end}" if isinstance(source, JdbcSource) else ""
        yield Refusal(
            ("source", "window_column"),
            "nothing",
            f"the column with a row's time{or_query} (windows are read)",
        )
    if not watermark.time_entry and source.window_column is not None:
        yield Refusal(("source", "window_column"), source.window_column, _NO_TIME)
    if not watermark.time_entry and told & _WHOLE:
        yield Refusal(("source", "query"), f"{{{min(told & _WHOLE)}}}", _NO_TIME)
    yield from _units(source, watermark.unit_fields)


def _folders(flow: Dataflow, source: FilesSource, watermark: WindowWatermark) -> Iterator[Refusal]:
    """The path must say which folder holds a window of a unit."""
    key, told = ("source", "path"), source.placeholders
    if watermark.time_entry and "start" not in told:
        yield Refusal(
            key, source.path, "a path with {start}, such as ./landing/{start:%Y-%m-%d}, beside windows"
        )
    if not watermark.time_entry and told & _WHOLE:
        yield Refusal(key, f"{{{min(told & _WHOLE)}}}", _NO_TIME)
    for name in watermark.unit_fields:
        if f"unit.{name}" not in told:
            yield Refusal(key, source.path, f"a path with {{unit.{name}}} (each unit has its folder)")
    unknown = sorted({name.removeprefix("unit.") for name in told - _WHOLE} - set(watermark.unit_fields))
    if unknown:
        known = ", ".join(watermark.unit_fields) or "it has none"
        yield Refusal(key, f"{{unit.{unknown[0]}}}", f"names of the definition's units ({known})")
    if flow.target.load == "append" and watermark.partial and watermark.time_entry:
        yield Refusal(
            ("target", "load"),
            "append",
            f"{_REPLACING}, or watermark.partial: false (a folder is read as a whole, again while its window goes on)",
        )


_NO_TIME = "a datetime entry in watermark.definition beside it (without one there are no windows)"


def _units(source: JdbcSource | TableSource, fields: Sequence[str]) -> Iterator[Refusal]:
    """Each value of a unit reaches the source, and the source names no others."""
    told, names = source.placeholders - _WHOLE, ", ".join(fields) or "it has none"
    for name in fields:
        if name not in source.unit_columns and f"unit.{name}" not in told:
            or_query = f", or {{unit.{name}}} in the query" if isinstance(source, JdbcSource) else ""
            yield Refusal(
                ("source", "unit_columns", name), "nothing", f"the column with a row's {name}{or_query}"
            )
    for name, column in source.unit_columns.items():
        if name not in fields:
            yield Refusal(
                ("source", "unit_columns", name),
                f"the column {column}",
                f"a name of the definition's units: {names}",
            )
    unknown = sorted(told - {f"unit.{name}" for name in fields})
    if unknown:
        yield Refusal(("source", "query"), f"{{{unknown[0]}}}", f"a name of the definition's units: {names}")


def _abstinence(flow: Dataflow, watermark: WindowWatermark) -> Iterator[Refusal]:
    by_range = not isinstance(flow.source, FilesSource) and (
        flow.source.window_column is not None or flow.source.placeholders >= _WHOLE
    )
    if watermark.abstinent and by_range and not watermark.abstinent_skips:
        yield Refusal(
            ("watermark", "abstinent"),
            "a period without abstinent_skips",
            "abstinent_skips: true beside it (rows are read by range, so what lies in the period is never read), or no abstinent",
        )


def _load(flow: Dataflow, watermark: WindowWatermark) -> Iterator[Refusal]:
    target = flow.target
    if target.load == "merge_overwrite" and not target.replace_by_watermark:
        yield Refusal(
            ("target", "replace_by_watermark"),
            "nothing",
            "true (with load: merge_overwrite a window is replaced by what is read of it)",
        )
    if target.load != "merge_overwrite" and target.replace_by_watermark:
        yield Refusal(("target", "load"), target.load, "merge_overwrite beside replace_by_watermark")
    if target.load != "append":
        return
    if watermark.grace:
        yield Refusal(
            ("watermark", "grace"),
            "a grace beside load: append",
            f"{_REPLACING} (append adds what is read again a second time), or no grace",
        )
    if target.merge_keys:
        yield Refusal(
            ("target", "merge_keys"),
            ", ".join(target.merge_keys),
            "no such key beside load: append (it compares nothing), or load: merge_overwrite",
        )
    if not watermark.time_entry:
        yield Refusal(
            ("target", "load"),
            "append",
            f"{_REPLACING} (without a datetime entry each run reads every unit again)",
        )


def _moving(flow: Dataflow, watermark: WindowWatermark) -> Iterator[Refusal]:
    """Windows that start elsewhere every day are new every day: only a delete by the columns of rows finds what they held before."""
    if flow.target.load == "merge_overwrite" and not flow.tagged:
        return
    for key, text in watermark.moving():
        yield Refusal(
            ("watermark", *key),
            f"{text!r}, which counts from now",
            "a constant bound of windows, or days from a midnight on (P30D) or hours from a full hour on (every day others would be cut, and their"
            f" rows added a second time); or {_REPLACING} beside columns that tell a row's window and unit",
        )
