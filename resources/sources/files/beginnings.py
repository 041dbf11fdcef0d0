"""Inspect the beginnings of files that no dataflow reads yet: their format, columns and faults.

Any bytes may occur in such files.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from partitions.errors import BadFile, shorten_to_line
from partitions.path.skipped import quote_name
from partitions.path.source import SourceFile
from partitions.records.first_types import (
    FirstTypes,
    UnclearColumns,
    merge_first_types,
    types_of_csv,
    types_of_document,
    types_of_lines,
)
from partitions.sources.first_draft import (
    begins_with_event,
    count_elements_inside_root,
    ending_of,
    infer_json_format,
    infer_row_tag,
    infer_separator,
)
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.lines import describe_archive_fault, open_file
from resources.sources.files.workbook import find_sheets

_HEAD = 256 * 1024
"""The most decompressed bytes of a file that are inspected."""

_MAX_INSPECTED = 20
"""The most files of a dataset that are tried until one can be read."""

_MAX_SAMPLED = 4
"""The most further files that widen the types of the first one."""

_FEWEST_LINES = 2
"""The fewest lines of a CSV file: a header and a record."""

_BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    "parquet": (b"PAR1",),
    "avro": (b"Obj\x01",),
    "excel": (b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"),
}
"""The first bytes of files, by format."""


@dataclass(frozen=True)
class Beginning:
    """The content that the beginning of one file shows, and the fault that ends it.

    ``own_types`` are those of this file alone, if others have widened its ``types``.
    """

    form: str
    options: Mapping[str, Option] = field(default_factory=dict)
    types: FirstTypes = field(default_factory=lambda: FirstTypes(()))
    own_types: FirstTypes | None = None
    elements: Mapping[str, int] = field(default_factory=dict)
    sheets: Sequence[str] = ()
    sheet: str | None = None
    fault: UnclearColumns | None = None


@dataclass(frozen=True)
class UnreadableFile:
    """A file whose beginning does not show its columns.

    Attributes:
        path: relative to its dataset.
        why: the reason.
        effect: as in :class:`partitions.records.first_types.UnclearColumns`.
    """

    path: str
    why: str
    effect: str

    def __str__(self) -> str:
        """Return the path and the reason in one line."""
        return f"{quote_name(self.path)}: {self.why}"


def find_readable(
    place: Place, form: str, files: Mapping[str, SourceFile], *, is_json: bool
) -> tuple[Beginning, Sequence[UnreadableFile]]:
    """Return the content of the first readable file, and the reasons of the files before it.

    If no file is readable, return what the first one that is not empty shows.
    """
    beginnings, unread = list[Beginning](), list[UnreadableFile]()
    for path, file in islice(files.items(), _MAX_INSPECTED):
        beginning = _inspect(place, form, file.path, is_json=is_json)
        if beginning.fault is None:
            others = [other.path for other in files.values() if other.path != file.path]
            return _with_types_of_others(place, form, beginning, others, is_json=is_json), unread
        beginnings.append(beginning)
        unread.append(UnreadableFile(path, str(beginning.fault), beginning.fault.effect))
    filled = [
        beginning
        for beginning in beginnings
        if beginning.fault is not None and beginning.fault.effect != "empty"
    ]
    return next(iter([*filled, *beginnings])), unread


def _with_types_of_others(
    place: Place, form: str, beginning: Beginning, paths: Sequence[str], *, is_json: bool
) -> Beginning:
    """Widen the types of a beginning by those of other files of its form, evenly spread over all.

    A file that cannot be read, or has other options, is left to the first run.
    """
    if not beginning.types.columns or not paths:
        return beginning
    count = min(_MAX_SAMPLED, len(paths))
    sampled = [paths[round(number * (len(paths) - 1) / max(1, count - 1))] for number in range(count)]
    inspected = [_inspect(place, form, path, is_json=is_json) for path in dict.fromkeys(sampled)]
    alike = [
        other.types
        for other in inspected
        if other.fault is None and (other.form, other.options) == (beginning.form, beginning.options)
    ]
    with suppress(UnclearColumns):
        return replace(
            beginning, types=merge_first_types([beginning.types, *alike]), own_types=beginning.types
        )
    return beginning


def _inspect(place: Place, form: str, path: str, *, is_json: bool) -> Beginning:
    """Inspect the beginning of a file, as far as it can be read."""
    beginning = Beginning(form, {"rowTag": "row"} if form == "xml" else {})
    try:
        head = _read_head(place, path)
        if form in _BEGINNINGS:
            _check_beginning(form, head)
            return _with_sheets(beginning, place, path) if form == "excel" else beginning
        if is_json and head.lstrip().startswith(b"["):
            beginning = Beginning("json")  # even if its first line is too long to read
        text, options = _decode(head)
        beginning = Beginning(infer_json_format(text) if is_json else form, beginning.options)
        if beginning.form == "ndjson" and begins_with_event(text):
            return replace(beginning, form="debezium")  # which tells its columns itself, or has encoded ones
        if beginning.form == "ndjson":
            _check_utf8(options)
        beginning = replace(beginning, options={**beginning.options, **options})
        if form == "csv":
            separator = infer_separator(text.partition("\n")[0])
            if separator != ("\t" if ".tsv" in ending_of(path).lower() else ","):
                beginning = replace(beginning, options={"sep": separator, **options})
            _check_lines(text, whole=len(head) < _HEAD)
            return replace(beginning, types=types_of_csv(text, separator))
        if form == "xml":
            elements = count_elements_inside_root(text)
            return replace(
                beginning, options={**beginning.options, "rowTag": _row_tag(elements)}, elements=elements
            )
        if beginning.form == "ndjson":
            return replace(beginning, types=types_of_lines(text))
        # A document cannot be parsed without its end.
        return beginning if len(head) == _HEAD else replace(beginning, types=types_of_document(text))
    except UnclearColumns as fault:
        return replace(beginning, fault=fault)


def _with_sheets(beginning: Beginning, place: Place, path: str) -> Beginning:
    """Add the sheets, and the sheet with the rows; it becomes an option if there are several."""
    try:
        sheets, sheet = find_sheets(place, path)
    except BadFile as bad:
        raise UnclearColumns(bad.why) from None
    options = {"sheet": sheet} if sheet is not None and len(sheets) > 1 else {}
    return replace(beginning, options=options, sheets=sheets, sheet=sheet)


def _check_beginning(form: str, head: bytes) -> None:
    if not head.startswith(_BEGINNINGS[form]):
        raise UnclearColumns(f"its first bytes are not those of the format {form}")


def _check_lines(text: str, *, whole: bool) -> None:
    if not whole and text.count("\n") < _FEWEST_LINES:
        raise UnclearColumns(f"its first record is longer than {_HEAD // 1024} KiB", "long")


def _check_utf8(options: Mapping[str, Option]) -> None:
    if options:
        raise UnclearColumns("it is UTF-16, but JSON with a record on each line must be UTF-8. Convert it")


def _row_tag(elements: Mapping[str, int]) -> str:
    tag = infer_row_tag(elements)
    if tag is None:
        raise UnclearColumns("it has no element inside its root")
    return tag


def _decode(head: bytes) -> tuple[str, Mapping[str, Option]]:
    """Return the complete lines of a beginning, and the encoding option if it is not UTF-8.

    Raises:
        UnclearColumns: the bytes are no text.
    """
    is_wide = head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    encoding, broken = ("utf-16", "\n".encode("utf-16-le")) if is_wide else ("utf-8-sig", b"\n")
    if len(head) == _HEAD and not is_wide:
        head = head[: head.rfind(broken) + 1] or head[: head.rfind(b">") + 1]
        if not head:
            raise UnclearColumns(f"its first line is longer than {_HEAD // 1024} KiB", "long")
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(head, final=len(head) < _HEAD)
    except UnicodeDecodeError as error:
        raise UnclearColumns(
            f"byte {error.start + 1:,} is not UTF-8. Name the encoding of the files, such as options: {{encoding: windows-1252}}"
        ) from None
    if "\0" in text:
        raise UnclearColumns(
            "it contains a NUL byte, so it is not text in UTF-8. Name the encoding if it is UTF-16", "long"
        )
    return text, {"encoding": "UTF-16"} if is_wide else {}


def _read_head(place: Place, path: str) -> bytes:
    """Return the first 256 KiB of a file, decompressed.

    Raises:
        UnclearColumns: the file cannot be read, or is empty.
    """
    try:
        with open_file(place, path) as file:
            data = file.read(_HEAD)
    except PermissionError:
        raise UnclearColumns("no permission to read it") from None
    except Exception as error:  # noqa: BLE001 - bytes of any kind meet the readers of several libraries
        if fault := describe_archive_fault(error):
            raise UnclearColumns(f"it cannot be read: {fault}") from None
        raise UnclearColumns(f"it cannot be read: {shorten_to_line(str(error))[:200]}") from None
    if not data:
        raise UnclearColumns("it is empty", "empty")
    return data
