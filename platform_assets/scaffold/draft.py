"""The text of a dataflow for files that were looked at, with what was found as comments."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from datetime import date

import yaml

from partitions.ddl import column_name
from partitions.plan import counted
from resources.sources.files.survey import Dataset

_WIDTH = 110
_UNREAD = {
    "bad": "The first run does not load these files, and stops at the first (`on_bad_file: quarantine` passes over it):",
    "empty": "Files without a record, of which nothing is loaded:",
    "long": "Files whose beginning does not tell their columns, as the first run does:",
}
"""What a run does with files that were looked at in vain."""

_NAMED = 8
"""Columns that the line for people names."""


def draft(seen: Dataset, path: str, today: date) -> str:
    """Return the text.

    Args:
        seen: the files.
        path: as the dataflow names it.
        today: for the comment that says when they were looked at.
    """
    lines = [*_head(seen, today), *_unread(seen), "", "layer: bronze", "", "source:", "  type: files"]
    lines += [f"  path: {_text(path)}", f"  format: {seen.form}"]
    if seen.endings:
        lines.append(f"  extensions: [{', '.join(map(_text, seen.endings))}]")
    lines += [f"  # {line}" for line in textwrap.wrap(_record(seen), _WIDTH, break_on_hyphens=False)]
    if seen.options:
        options = ", ".join(f"{name}: {_text(str(value))}" for name, value in seen.options.items())
        lines.append(f"  options: {{{options}}}")
    lines += [*_locale(seen), *_schema(seen)]
    lines += ["", "watermark:", "  type: path", *_tracking(seen), "", "target:", "  load: append"]
    if seen.dated:
        lines.append(f"  partition_by: [{', '.join(seen.dated)}]")
    return "\n".join(lines) + "\n"


def _head(seen: Dataset, today: date) -> list[str]:
    skipped = f" Skipped, by their endings: {counts}." if (counts := _skipped(seen)) else ""
    return [
        f"# {_amount(seen, 'file')}, as they were on {today.isoformat()}.{skipped}",
        "# `strandline validate` checks this file, `strandline plan` shows what a run would do.",
    ]


def _unread(seen: Dataset) -> Iterator[str]:
    """Say which of the files that were looked at tell no columns, and what a run does with them."""
    for effect, title in _UNREAD.items():
        lines = [f"  {each}" for each in seen.unread if each.effect == effect]
        for text in [title, *lines] if lines else []:
            for line in textwrap.wrap(
                text, _WIDTH, break_on_hyphens=False, break_long_words=False, subsequent_indent="    "
            ):
                yield f"# {line}"


def _schema(seen: Dataset) -> list[str]:
    """The columns that were found, to be declared: what a first run infers from a larger sample is mostly better."""
    if not seen.columns:
        return []
    columns = [*((name, "string" if name not in seen.dated else "date") for name in seen.partitions)]
    folders = {name.lower() for name in seen.partitions}
    columns += [column for column in seen.columns if column[0].lower() not in folders]
    if seen.codes:  # nothing widens a declared type later
        columns = [(name, "long" if data_type == "int" else data_type) for name, data_type in columns]
    wrapped = _wrapped([f"{column_name(name)} {data_type}" for name, data_type in columns])
    untyped = (
        f" Without a value so far, and without a type: {_some(seen.valueless)}." if seen.valueless else ""
    )
    if seen.codes:
        return [
            f"  # Declared, since {_some(seen.codes)} would lose digits as a number. The types are those of the first file's beginning.",
            "  schema: >-",
            *(f"    {line}" for line in wrapped),
        ]
    return [
        f"  # Without a schema the first run infers one from a sample, and pins it. As the first file begins it is:{untyped}",
        "  # schema: >-",
        *(f"  #   {line}" for line in wrapped),
    ]


def _locale(seen: Dataset) -> list[str]:
    """What to set for numbers and dates that only a locale reads."""
    says = {"locale: de-DE": (seen.commas, "decimal(12,2)"), "dateFormat: dd.MM.yyyy": (seen.days, "date")}
    found = {option: (names, kind) for option, (names, kind) in says.items() if names}
    if not found:
        return []
    columns = ", ".join(f"{name} {kind}" for names, kind in found.values() for name in names)
    given = [f"{name}: {_text(str(value))}" for name, value in seen.options.items()]
    lines = [
        f"Numbers with a decimal comma, and dates with the day first, are text unless schema declares them: {columns}",
        f"and options read them: {{{', '.join([*given, *found])}}}",
    ]
    return [f"  # {line}" for text in lines for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False)]


def found_in_words(seen: Dataset, flow: str) -> str:
    """Return a line for people that says what was found for a dataflow."""
    names = [*seen.partitions, *(name for name, _ in seen.columns if name not in seen.partitions)]
    columns = f", {counted(len(names), 'column')}: {_some(names)}" if names else ""
    tracked = (
        "; names do not sort by time, so each file is remembered (tracking: set)" if seen.unsorted else ""
    )
    skipped = f"; skipped, by their endings: {counts}" if (counts := _skipped(seen)) else ""
    record = f"; {said[0].lower()}{said[1:]}" if (said := _record(seen)) else ""
    return f"{flow}: {_amount(seen, f'{seen.form} file')}{columns}{record}{tracked}{skipped}"


def _record(seen: Dataset) -> str:
    """Say which element of XML, or sheet of a workbook, is taken for the records, and what stands beside it; "" of another format."""
    if len(seen.sheets) > 1:
        others = [name for name in seen.sheets if name != (seen.sheet or seen.sheets[0])]
        below = f"Records are rows of the sheet {seen.sheet or seen.sheets[0]} (sheet)"
        empty = "" if seen.sheet else ", though no sheet has a header and a row below it"
        return f"{below} of the first file{empty}; its other sheets are passed over: {_some(others)}"
    if not seen.elements:
        return ""
    tag = str(seen.options["rowTag"])
    others = [f"{name} {count:,}" for name, count in seen.elements.items() if name != tag]
    more = f"; of the others no row is made: {_some(others)}" if others else ""
    return f"A record is an element {tag} (rowTag), with {seen.elements[tag]:,} inside the root where the first file begins{more}"


def _amount(seen: Dataset, noun: str) -> str:
    more = "" if seen.complete else " or more"
    return f"{counted(seen.count, noun)}{more}, {_size(seen.size)}"


def _skipped(seen: Dataset) -> str:
    """The files of other endings, counted by ending."""
    return ", ".join(f"{count} {ending}" for ending, count in seen.skipped.items())


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _tracking(seen: Dataset) -> list[str]:
    if not seen.unsorted:
        return ["  # Names sort by time, so the last one says what is loaded."]
    found: Sequence[str] = [
        line
        for finding in seen.unsorted
        for line in textwrap.wrap(finding, _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    return [
        "  tracking: set                     # remembers every file, since:",
        *(f"  #   {line}" for line in found),
    ]


def _wrapped(columns: Sequence[str]) -> list[str]:
    """Return a schema in lines that break between columns only: a name may hold spaces, and the fold of a line is one of them."""
    lines = [""]
    for number, column in enumerate(columns):
        part = column if number == len(columns) - 1 else f"{column},"
        if lines[-1] and len(lines[-1]) + 1 + len(part) > _WIDTH:
            lines.append(part)
        else:
            lines[-1] = f"{lines[-1]} {part}".lstrip()
    return lines


def _text(value: str) -> str:
    """A text as YAML: in quotes if it could be taken for something else."""
    plain = value.replace("/", "").replace(".", "").replace("-", "").replace("_", "")
    is_plain = plain.isalnum() and not value[0].isdigit() and yaml.safe_load(value) == value
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _size(count: int) -> str:
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
