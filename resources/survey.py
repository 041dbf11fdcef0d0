"""A look at files that no dataflow reads yet: what ``strandline init --from`` writes a dataflow of. Starts no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

from partitions.ddl import column_name
from partitions.errors import SourceError
from partitions.path.hive import folder_value, partition_columns
from partitions.path.listing_bounds import FromBeginning
from partitions.path.naming import examine
from partitions.path.source import SourceFile
from partitions.sources.formats import FORMATS, Option
from partitions.sources.sniffing import (
    apart,
    ending_of,
    format_of_ending,
    has_decimal_comma,
    is_code,
    is_day_first,
    json_form,
    looks_like_a_date,
    main_format,
    row_tag,
    separator_of,
)
from resources.listing import Budget, list_above
from resources.places import Place
from resources.sources.files.lines import opened

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD = 256 * 1024
"""Bytes of the first file, unpacked, that are looked at."""

_BUDGET = Budget(pages=200, seconds=20.0)


@dataclass(frozen=True)
class Surveyed:
    """Files that belong together.

    Attributes:
        folder: below the place; "" is the place itself.
        form: their format.
        count: of files, of this format.
        size: in bytes, of all.
        complete: whether the listing came to its end.
        endings: as they are spelt, where the format's own do not find all of them; else none.
        skipped: files of other endings, by ending.
        options: of the format.
        columns: names and types of the first file's rows, as far as its beginning tells them; none if the files tell them themselves.
        codes: the columns of text that only looks like numbers, as `007` does.
        commas: the columns of numbers with a decimal comma; they are text until a locale says so.
        days: the columns of dates with the day first, `28.12.2024`; they are text, too.
        partitions: names of hive folders.
        dated: those of them whose values are dates.
        unsorted: why names do not sort by time; none if nothing speaks against it.
    """

    folder: str
    form: str
    count: int
    size: int
    complete: bool
    endings: Sequence[str] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    columns: Sequence[tuple[str, str]] = ()
    codes: Sequence[str] = ()
    commas: Sequence[str] = ()
    days: Sequence[str] = ()
    partitions: Sequence[str] = ()
    dated: Sequence[str] = ()
    unsorted: Sequence[str] = ()


def survey(place: Place) -> list[Surveyed]:
    """Return what files lie below a place, one entry for each dataset.

    Raises:
        SourceError: if it cannot be listed, or no file has the ending of a format that can be read.
    """
    listing = list_above(place, FromBeginning(), ("",), budget=_BUDGET)
    files = {file.path: file for file in listing.listed.files}
    found = [
        seen
        for folder, paths in apart(list(files)).items()
        if (seen := _dataset(place, folder, paths, files, complete=listing.complete)) is not None
    ]
    if not found:
        endings = ", ".join(sorted({ending_of(path) or "none" for path in files})) or "no file"
        known = " ".join(dict.fromkeys(ending for form in FORMATS.values() for ending in form.endings))
        raise SourceError(
            f"{place}: expected files of a format that can be read ({known}; text also packed), found endings: {endings}",
            code="source_missing",
        )
    return found


def _dataset(
    place: Place, folder: str, paths: Sequence[str], files: Mapping[str, SourceFile], *, complete: bool
) -> Surveyed | None:
    form, endings = main_format(paths)
    if form is None:
        return None
    own = [ending for ending in endings if format_of_ending(ending) == form]
    chosen = [path for path in paths if ending_of(path) in own]
    at = {path: files[f"{folder}/{path}" if folder else path] for path in chosen}
    head = _head(place, at[chosen[0]].path) if FORMATS[form].is_text else b""
    text = head.decode("utf-8-sig", "replace")
    if form == "ndjson" and {ending.lower() for ending in own} <= set(FORMATS["json"].all_endings):
        form = json_form(text)
    options = _options(form, text, chosen[0])
    names, separator = partition_columns(chosen), str(options.get("sep", ","))
    columns, codes, table = _columns(form, head, separator)
    return Surveyed(
        folder,
        form,
        len(chosen),
        sum(file.size for file in at.values()),
        complete,
        endings=() if set(own) <= set(FORMATS[form].all_endings) else sorted(own),
        skipped={ending or "no ending": count for ending, count in endings.items() if ending not in own},
        options=options,
        columns=columns,
        codes=codes,
        commas=_texts(table, has_decimal_comma) if form == "csv" else (),
        days=_texts(table, is_day_first) if form == "csv" else (),
        partitions=names,
        dated=[name for name in names if looks_like_a_date(folder_value(path, name) for path in chosen)],
        unsorted=examine(chosen).findings,
    )


def _head(place: Place, path: str) -> bytes:
    """The beginning of a file, unpacked; nothing of one that does not read."""
    with suppress(OSError, EOFError), opened(place, path) as file:
        return file.read(_HEAD)
    return b""


def _options(form: str, head: str, path: str) -> dict[str, Option]:
    if form == "xml":
        return {"rowTag": row_tag(head) or "row"}
    if form == "csv":
        separator = separator_of(head.partition("\n")[0])
        own = "\t" if ".tsv" in ending_of(path).lower() else ","
        return {} if separator == own else {"sep": separator}
    return {}


def _columns(
    form: str, head: bytes, separator: str
) -> tuple[list[tuple[str, str]], list[str], pa.Table | None]:
    """The columns of text, as Arrow reads its whole lines, which of them are codes, and the rows; none if they do not read, or their names do not tell them apart."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    lines, codes = _whole_lines(head), list[str]()
    with suppress(pa.ArrowException, ValueError, TypeError, KeyError):
        if form == "csv":
            table, codes = _csv(lines, separator)
        elif form == "ndjson":
            table = arrow_json.read_json(BytesIO(lines))
        elif form == "json" and len(head) < _HEAD:
            document = json.loads(head)
            table = pa.Table.from_pylist(document if isinstance(document, list) else [document])
        else:
            return [], [], None
        names = table.schema.names
        if all(name and name.isprintable() for name in names) and len(
            {name.lower() for name in names}
        ) == len(names):
            return [(column.name, _type(column.type)) for column in table.schema], codes, table
    return [], [], None


def _texts(table: pa.Table | None, are: Callable[[Iterable[str | None]], bool]) -> list[str]:
    """The columns of text whose values are of one form."""
    import pyarrow as pa

    if table is None:
        return []
    texts = [column.name for column in table.schema if pa.types.is_string(column.type)]
    return [name for name in texts if are(table.column(name).to_pylist())]


def _csv(lines: bytes, separator: str) -> tuple[pa.Table, list[str]]:
    """The rows of a CSV, and the columns with values that a number would change; numbers are only what Spark reads as one."""
    import pyarrow as pa
    from pyarrow import csv

    def read(texts: Sequence[str]) -> pa.Table:
        convert = csv.ConvertOptions(null_values=[""], column_types=dict.fromkeys(texts, pa.string()))
        return csv.read_csv(
            BytesIO(lines), parse_options=csv.ParseOptions(delimiter=separator), convert_options=convert
        )

    guessed = read([])
    numbers = [column.name for column in guessed.schema if _is_number(column.type)]
    as_text = read(numbers)
    values = {name: as_text.column(name).to_pylist() for name in numbers}
    codes = [name for name, texts in values.items() if any(map(is_code, texts))]
    padded = [name for name, texts in values.items() if any(text and text != text.strip() for text in texts)]
    return read([*codes, *padded]), codes


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _whole_lines(head: bytes) -> bytes:
    return head if len(head) < _HEAD else head[: head.rfind(b"\n") + 1]


def _type(kind: pa.DataType) -> str:
    """A type in Spark's words; text where a first look cannot tell."""
    import pyarrow as pa

    known = {pa.int64(): "long", pa.float64(): "double", pa.bool_(): "boolean", pa.date32(): "date"}
    if kind in known:
        return known[kind]
    if pa.types.is_timestamp(kind):
        return "timestamp"
    if pa.types.is_list(kind):
        return f"array<{_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{column_name(each.name)}: {_type(each.type)}' for each in kind)}>"
    return "string"
