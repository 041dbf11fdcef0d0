"""The text of a dataflow for surveyed files, with the findings as comments."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from datetime import date

import yaml

from partitions.ddl import ddl_name
from partitions.plan import pluralize
from partitions.spelling import first_few
from resources.sources.files.survey import Dataset

_WIDTH = 110
_UNREAD = {
    "bad": "The first run cannot load these files, and stops at the first one (`on_bad_file: quarantine` skips it):",
    "empty": "Files without records; nothing is loaded from them:",
    "long": "Files whose beginning does not show their columns; the first run finds them:",
}
"""How a run treats files whose columns the survey could not find."""

_NAMED = 8
"""The most columns that the line for people names."""


def draft_dataflow(dataset: Dataset, path: str, today: date) -> str:
    """Return the text of a dataflow.

    Args:
        dataset: the survey of the files.
        path: the path in the dataflow's spelling.
        today: the day of the survey, for a comment.
    """
    lines = [*_head(dataset, today), *_unread(dataset), "", "layer: bronze", "", "source:", "  type: files"]
    lines += [f"  path: {_yaml_text(path)}", f"  format: {dataset.form}"]
    if dataset.endings:
        lines.append(f"  extensions: [{', '.join(map(_yaml_text, dataset.endings))}]")
    lines += [f"  # {line}" for line in textwrap.wrap(_record(dataset), _WIDTH, break_on_hyphens=False)]
    if dataset.options:
        options = ", ".join(f"{name}: {_yaml_text(str(value))}" for name, value in dataset.options.items())
        lines.append(f"  options: {{{options}}}")
    lines += [*_locale(dataset), *_schema(dataset)]
    lines += ["", "watermark:", "  type: path", *_tracking(dataset), "", "target:", "  load: append"]
    if dataset.dated:
        lines.append(f"  partition_by: [{', '.join(dataset.dated)}]")
    return "\n".join(lines) + "\n"


def _head(dataset: Dataset, today: date) -> list[str]:
    skipped = f" Skipped, by their endings: {counts}." if (counts := _skipped(dataset)) else ""
    return [
        f"# {_amount(dataset, 'file')}, as they were on {today.isoformat()}.{skipped}",
        "# `strandline validate` checks this file, `strandline plan` shows what a run would do.",
    ]


def _unread(dataset: Dataset) -> Iterator[str]:
    """Yield comments about the surveyed files without columns, and how a run treats them."""
    for effect, title in _UNREAD.items():
        lines = [f"  {file}" for file in dataset.unread if file.effect == effect]
        for text in [title, *lines] if lines else []:
            for line in textwrap.wrap(
                text, _WIDTH, break_on_hyphens=False, break_long_words=False, subsequent_indent="    "
            ):
                yield f"# {line}"


def _schema(dataset: Dataset) -> list[str]:
    """Return the surveyed columns as a schema, as a comment unless they must be declared.

    A first run infers from a larger sample, which is mostly better.
    """
    if not dataset.columns:
        return []
    wrapped = _wrap_columns(surveyed_columns(dataset))
    untyped = (
        f" Without a value so far, and without a type: {first_few(dataset.valueless, _NAMED)}."
        if dataset.valueless
        else ""
    )
    empty_texts = [
        f"  # {line}" for line in textwrap.wrap(_empty_texts(dataset), _WIDTH, break_on_hyphens=False)
    ]
    if dataset.codes:
        return [
            f"  # Declared, since {first_few(dataset.codes, _NAMED)} would lose digits as a number. The types are those of the beginnings of some files.",
            *empty_texts,
            "  schema: >-",
            *(f"    {line}" for line in wrapped),
        ]
    return [
        f"  # Without a schema the first run infers one from a sample, and pins it. The beginnings of some files fit this one:{untyped}",
        *empty_texts,
        "  # schema: >-",
        *(f"  #   {line}" for line in wrapped),
    ]


def surveyed_columns(dataset: Dataset) -> list[str]:
    """Return the surveyed columns as DDL, those of folders first; empty if files carry their types."""
    if not dataset.columns:
        return []
    columns = [*((name, "string" if name not in dataset.dated else "date") for name in dataset.partitions)]
    folders = {name.lower() for name in dataset.partitions}
    columns += [column for column in dataset.columns if column[0].lower() not in folders]
    if dataset.codes:  # a declared type never widens
        columns = [(name, "long" if data_type == "int" else data_type) for name, data_type in columns]
    return [f"{ddl_name(name)} {data_type}" for name, data_type in columns]


def _empty_texts(dataset: Dataset) -> str:
    """Return a comment on text columns without a value; "" if there are none."""
    if not dataset.empty_texts:
        return ""
    return f"Without a value in the first file, so text: {first_few(dataset.empty_texts, _NAMED)}. If numbers or dates will come, declare their types here before the first run."


def _locale(dataset: Dataset) -> list[str]:
    """Return comments with the settings for numbers and dates that need a locale."""
    column_types = {
        "locale: de-DE": (dataset.commas, "decimal(12,2)"),
        "dateFormat: dd.MM.yyyy": (dataset.days, "date"),
    }
    locale_options = {option: (names, kind) for option, (names, kind) in column_types.items() if names}
    if not locale_options:
        return []
    columns = ", ".join(f"{name} {kind}" for names, kind in locale_options.values() for name in names)
    set_options = [f"{name}: {_yaml_text(str(value))}" for name, value in dataset.options.items()]
    lines = [
        f"Numbers with a decimal comma, and dates with the day first, are text unless schema declares them: {columns}",
        f"and options read them: {{{', '.join([*set_options, *locale_options])}}}",
    ]
    return [f"  # {line}" for text in lines for line in textwrap.wrap(text, _WIDTH, break_on_hyphens=False)]


def survey_in_words(dataset: Dataset, flow: str) -> str:
    """Return the survey of a dataflow's files as a line for people."""
    names = [*dataset.partitions, *(name for name, _ in dataset.columns if name not in dataset.partitions)]
    columns = f", {pluralize(len(names), 'column')}: {first_few(names, _NAMED)}" if names else ""
    tracking = (
        "; names do not sort by time, so each file is remembered (tracking: set)" if dataset.unsorted else ""
    )
    skipped = f"; skipped, by their endings: {counts}" if (counts := _skipped(dataset)) else ""
    record = f"; {record_text[0].lower()}{record_text[1:]}" if (record_text := _record(dataset)) else ""
    empty_texts = (
        f"; without a value, so text unless `schema` declares another type: {first_few(dataset.empty_texts, _NAMED)}"
        if dataset.empty_texts
        else ""
    )
    return (
        f"{flow}: {_amount(dataset, f'{dataset.form} file')}{columns}{empty_texts}{record}{tracking}{skipped}"
    )


def _record(dataset: Dataset) -> str:
    """Return which XML element or workbook sheet holds the records, and what is left out.

    "" for other formats.
    """
    if len(dataset.sheets) > 1:
        other_sheets = [name for name in dataset.sheets if name != (dataset.sheet or dataset.sheets[0])]
        record_source = f"Records are rows of the sheet {dataset.sheet or dataset.sheets[0]} (sheet)"
        empty = "" if dataset.sheet else ", though no sheet has a header and a row below it"
        return f"{record_source} of the first file{empty}; its other sheets are skipped: {first_few(other_sheets, _NAMED)}"
    if not dataset.elements:
        return ""
    tag = str(dataset.options["rowTag"])
    other_elements = [f"{name} {count:,}" for name, count in dataset.elements.items() if name != tag]
    more = f"; other elements make no rows: {first_few(other_elements, _NAMED)}" if other_elements else ""
    return f"A record is an element {tag} (rowTag), with {dataset.elements[tag]:,} inside the root where the first file begins{more}"


def _amount(dataset: Dataset, noun: str) -> str:
    more = "" if dataset.complete else " or more"
    return f"{pluralize(dataset.count, noun)}{more}, {_size_in_words(dataset.size)}"


def _skipped(dataset: Dataset) -> str:
    """Return the number of skipped files by ending, in words."""
    return ", ".join(f"{count} {ending}" for ending, count in dataset.skipped.items())


def _tracking(dataset: Dataset) -> list[str]:
    if not dataset.unsorted:
        return ["  # Names sort by time, so the last one says what is loaded."]
    reasons: Sequence[str] = [
        line
        for finding in dataset.unsorted
        for line in textwrap.wrap(finding, _WIDTH, break_long_words=False, break_on_hyphens=False)
    ]
    return [
        "  tracking: set                     # remembers every file, since:",
        *(f"  #   {line}" for line in reasons),
    ]


def _wrap_columns(columns: Sequence[str]) -> list[str]:
    """Return a schema in lines that break between columns only.

    A name may hold spaces, and YAML folds a line break to a space.
    """
    lines = [""]
    for number, column in enumerate(columns):
        part = column if number == len(columns) - 1 else f"{column},"
        if lines[-1] and len(lines[-1]) + 1 + len(part) > _WIDTH:
            lines.append(part)
        else:
            lines[-1] = f"{lines[-1]} {part}".lstrip()
    return lines


def _yaml_text(value: str) -> str:
    """Return a text as YAML, in quotes if it could be read as another type."""
    plain = value.replace("/", "").replace(".", "").replace("-", "").replace("_", "")
    is_plain = plain.isalnum() and not value[0].isdigit() and yaml.safe_load(value) == value
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _size_in_words(count: int) -> str:
    size, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
