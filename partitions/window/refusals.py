"""Settings that cannot be combined with a window watermark (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from partitions.checks import LEDGER
from partitions.dataflow_parts import DataflowParts, KindRules, reads_any
from partitions.placeholders import two_digit_year
from partitions.refusal import Refusal
from partitions.sources.definition import (
    WHOLE_WINDOW,
    BoundText,
    SourceDefinition,
    rows_identify_work_unit,
)
from partitions.sql_text import groups_rows
from partitions.target import Target
from partitions.window.complete_windows import complete_window_refusals
from partitions.window.definition import WindowWatermark
from partitions.window.state import WindowState
from partitions.window.window_names import (
    ambiguous_bound,
    exceeds_two_digit_years,
    grains,
    inexpressible_end,
    inexpressible_start,
    may_share_place,
)

_ROW_TIME = "the column with a row's time as source.window_column"
_REPLACING = "load: merge_overwrite with replace_by_watermark: true, or merge_upsert"


def refusals(parts: DataflowParts[WindowWatermark]) -> Iterator[Refusal]:
    """Yield the reasons why these windows cannot be read from the source or loaded into the target."""
    source, watermark, target = parts.source, parts.watermark, parts.target
    if parts.on_bad_file == "quarantine":
        yield Refusal(
            ("on_bad_file",),
            "quarantine",
            "stop (a window is read as a whole: a run skips only the window of the bad file, and later runs read it again)",
        )
    timed, fields = watermark.time_entry is not None, watermark.unit_fields
    yield from _unit_name_refusals(watermark)
    yield from source.window_refusals(timed=timed, unit_fields=fields)
    yield from _open_end_refusals(source, watermark)
    yield from _century_refusals(source, watermark)
    shared = list(_place_refusals(source, watermark))
    yield from shared or _bound_refusals(source, watermark)
    adds_again = target.only_adds and not watermark.rereads_whole
    if not source.window_support.by_range and adds_again and watermark.partial and timed:
        yield Refusal(
            ("target", "load"),
            "append",
            f"{_REPLACING}, or watermark.partial: false (it is read as a whole, again while its window goes on)",
        )
    if source.complete:
        yield from complete_window_refusals(watermark)
    yield from _part_refusals(watermark, parts.sql)
    yield from _abstinence_refusals(source, watermark)
    yield from _load_refusals(watermark, target)
    if watermark.refreshes and source.lake_table is None:
        yield Refusal(
            ("watermark", "refresh"),
            f"changed beside {source.form}, which has no commits to read",
            "no such key, with a grace for rows that come late; or a source of type table",
        )
    if target.only_adds or not (
        target.merges or rows_identify_work_unit(source, timed=timed, unit_fields=fields)
    ):
        yield from _moving_bound_refusals(watermark)


def _unit_name_refusals(watermark: WindowWatermark) -> Iterator[Refusal]:
    """Refuse units with different names.

    A unit with fewer names than another may hold its rows, which would be loaded for both.
    """
    listed_units = watermark.unit_entry.listed if watermark.unit_entry else ()
    odd = next((unit for unit in listed_units if set(unit) != set(listed_units[0])), None)
    if odd is not None:
        yield Refusal(
            ("watermark", "definition"),
            f"a unit of {', '.join(odd)} beside one of {', '.join(listed_units[0])}",
            "units that all have values of the same names (a row could belong to two of them)",
        )


def _open_end_refusals(source: SourceDefinition, watermark: WindowWatermark) -> Iterator[Refusal]:
    """Refuse formats that are too coarse for the end of an open window, which is now.

    The source would return rows only up to an earlier time, and the rest would count as read.
    """
    if watermark.time_entry is None or not watermark.partial or source.row_columns.window is not None:
        return
    floor = watermark.time_range.to_floor
    for text in source.bound_texts(watermark.zone):
        if floor is not None and text.name == "end" and text.wording.is_coarser_than(floor):
            yield Refusal(
                ("watermark", "partial"),
                f"true beside {text.form}, which cannot express the end of a window that is still growing",
                "partial: false, {end} or a finer form, or the column with a row's time as source.window_column",
            )


def _part_refusals(watermark: WindowWatermark, sql: str | None) -> Iterator[Refusal]:
    """Refuse a GROUP BY over parts of windows: each part would have rows of its own."""
    if sql is None or "reread" in watermark.model_fields_set:
        return
    if watermark.reads_parts and groups_rows(sql):
        part = "a growing window" if watermark.partial else "a window within its grace"
        yield Refusal(
            ("sql",),
            f"GROUP BY over {part}, which is read in parts: each part would have rows of its own",
            f"{watermark.whole_windows}; or reread: rest, if no group lies in two parts",
        )


def _place_refusals(source: SourceDefinition, watermark: WindowWatermark) -> Iterator[Refusal]:
    """Refuse placeholders that give two windows the same place: both would read it."""
    if watermark.time_entry is None or not source.placeholders & WHOLE_WINDOW:
        return
    if source.window_placeholders and may_share_place(source.window_placeholders, watermark):
        first = next(
            placeholder for placeholder in source.window_placeholders if placeholder.name in WHOLE_WINDOW
        )
        yield Refusal(
            ("source", source.placeholder_location[0]),
            f"{first.text}, which is the same for several {' and '.join(grains(watermark))} windows",
            "{start} with each field from the year down to the length of a window, such as {start:%Y-%m-%d} for days and {start:%Y-%m-%dT%H} for hours"
            + ("" if source.holds_files else "; or the column with a row's time as source.window_column"),
        )


def _century_refusals(source: SourceDefinition, watermark: WindowWatermark) -> Iterator[Refusal]:
    """Refuse two-digit years if windows span more than a hundred years: two would have the same text."""
    short = (
        two_digit_year((*source.window_placeholders, *source.request_placeholders))
        if watermark.time_entry is not None
        else None
    )
    if short is not None and exceeds_two_digit_years(watermark):
        yield Refusal(
            ("source", source.placeholder_location[0]),
            f"{short.text} beside windows before 1970 or after 2068, which a two-digit year cannot express",
            "%Y instead of %y",
        )


def _bound_refusals(source: SourceDefinition, watermark: WindowWatermark) -> Iterator[Refusal]:
    """Refuse the first bound that a text cannot express, or whose text means two instants."""
    if watermark.time_entry is None:
        return
    refused = (_bound_refusal(source, watermark, text) for text in source.bound_texts(watermark.zone))
    yield from islice(filter(None, refused), 1)


def _bound_refusal(source: SourceDefinition, watermark: WindowWatermark, text: BoundText) -> Refusal | None:
    """Return why a text is no bound of these windows; None if it is one, or if rows are filtered."""
    by_range, is_named_by_start = source.window_support
    filters = source.row_columns.window is not None
    names_place = is_named_by_start and text.key == ("source", source.placeholder_location[0])
    if not filters and (refusal := _inexpressible_bound(watermark, text)) is not None:
        return refusal
    if (filters and not names_place) or (names_place and text.wording.is_coarser_than("hour")):
        return None
    bound = ambiguous_bound(watermark, text.wording, whole=names_place or not by_range)
    if bound is None:
        return None
    is_format = text.key[-1] == "watermark_param_format"
    exact = (
        "iso, timestamp or timestamp_ms"
        if is_format
        else "{start} and {end} without a form, or forms with %z"
    )
    return Refusal(
        text.key,
        f"{text.form} without an offset, which means two instants when clocks go back, as at {bound.isoformat()}",
        f"{exact}; {'{end} beside it, and ' if names_place else ''}{_ROW_TIME}; or a zone that repeats no hour, such as UTC",
    )


def _inexpressible_bound(watermark: WindowWatermark, text: BoundText) -> Refusal | None:
    """Return the refusal of a text that is too coarse for the start or the end of a window."""
    if (start := inexpressible_start(watermark, text.wording)) is not None:
        problem = f"{text.form}, which cannot express {start.isoformat()}, the start of a window"
        return Refusal(
            text.key, problem, f"a finer form, windows whose starts the form can express, or {_ROW_TIME}"
        )
    if text.name == "end" and (end := inexpressible_end(watermark, text.wording)) is not None:
        problem = f"{text.form}, which cannot express {end.isoformat()}, the end of the last window"
        expected = f"a finer form, a `to` that the form can express, partial: false, or {_ROW_TIME}"
        return Refusal(text.key, problem, expected)
    return None


def _abstinence_refusals(source: SourceDefinition, watermark: WindowWatermark) -> Iterator[Refusal]:
    rereads_whole = watermark.rereads_whole
    if (
        watermark.abstinent
        and not rereads_whole
        and source.window_support.by_range
        and not watermark.abstinent_skips
    ):
        yield Refusal(
            ("watermark", "abstinent"),
            "a period without abstinent_skips",
            "abstinent_skips: true beside it (rows are read by range, so no run reads the rows within "
            "the period), or no abstinent",
        )


def _load_refusals(watermark: WindowWatermark, target: Target) -> Iterator[Refusal]:
    if target.load == "merge_overwrite" and not target.replace_by_watermark:
        yield Refusal(
            ("target", "replace_by_watermark"),
            "nothing",
            "true (with load: merge_overwrite, the rows read replace the window), or load: merge_upsert",
        )
    if target.load == "overwrite" and (watermark.time_entry or watermark.unit_fields):
        yield Refusal(
            ("target", "load"),
            "overwrite beside windows or units",
            f"{_REPLACING} (an overwrite would delete the rows of other windows and units), or an empty "
            "watermark.definition (each run reads the whole source)",
        )
    if target.load != "merge_overwrite" and target.replace_by_watermark:
        yield Refusal(("target", "load"), target.load, "merge_overwrite beside replace_by_watermark")
    if not target.only_adds:
        return
    if watermark.grace and not watermark.rereads_whole:
        yield Refusal(
            ("watermark", "grace"),
            "a grace beside load: append",
            f"{_REPLACING} (append would add the rows a second time), or no grace",
        )
    if not watermark.time_entry:
        yield Refusal(
            ("target", "load"),
            "append",
            f"{_REPLACING} (without a datetime entry each run reads every unit again)",
        )


def _moving_bound_refusals(watermark: WindowWatermark) -> Iterator[Refusal]:
    """Refuse windows that start elsewhere every day, since all of them are new every day.

    Only a delete by columns of the rows would find what they held before.
    """
    for key, text in watermark.time_range.moving_bounds() if watermark.time_entry else ():
        yield Refusal(
            ("watermark", *key),
            f"{text!r}, which is relative to now",
            "a constant time; or whole days (P30D) from a midnight on, or whole hours from a full hour "
            f"on; or {_REPLACING} beside columns that tell a row's window and unit (other times would "
            "cut new windows every day, and add their rows a second time)",
        )


RULES = KindRules(WindowState, reads_any, refusals, checks=lambda _: (LEDGER,))
