"""Reads a file without Spark and without the product: rows with raw values.

:mod:`comparing` compares them with a table.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa
import zstandard

from benchmarks.real_files.comparing import Number, Row
from benchmarks.real_files.sheets import sheets

csv.field_size_limit(1 << 30)


class Unreadable(Exception):
    """The other reader refuses the file, too; the text says why."""


def read(file: Path, form: str, options: Mapping[str, Any], columns: pa.Schema) -> Iterable[Row]:
    """Return the rows of a file.

    Args:
        file: its path.
        form: its format, in the definition's spelling.
        options: the definition's options that say what the text means, such as a separator.
        columns: the table's columns: they tell whether an element of XML is a list or one value.

    Raises:
        Unreadable: if the file is not of this format.
    """
    try:
        return list(_READERS[form](file, options, columns))
    except Unreadable:
        raise
    except Exception as error:  # whatever it is, the reader refuses the file
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def unpacked(file: Path) -> bytes:
    """Return the bytes of a file, unpacked according to its ending."""
    data = file.read_bytes()
    match file.suffix:
        case ".gz":
            return gzip.decompress(data)
        case ".bz2":
            return bz2.decompress(data)
        case ".zst":
            with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as stream:
                return stream.read()
    return data


def _encoding(options: Mapping[str, Any]) -> str:
    return str(options.get("encoding", "utf-8-sig"))


def _csv(file: Path, options: Mapping[str, Any]) -> Iterator[Row]:
    text = unpacked(file).decode(_encoding(options))
    separator = str(options.get("sep", "\t" if ".tsv" in file.name.lower() else ",")).replace("\\t", "\t")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header = next((row for row in rows if row), [])
    names = [name or f"_c{place}" for place, name in enumerate(header)]
    null = options.get("nullValue", "")
    for row in rows:
        if not row or (len(row) == 1 and len(names) > 1 and not row[0].strip()):
            continue
        if len(row) != len(names):
            raise Unreadable(f"line {rows.line_num}: {len(row)} values, and the header has {len(names)}")
        yield {name: None if value in ("", null) else value for name, value in zip(names, row, strict=True)}


def _pairs(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names):
        raise Unreadable(f"a name occurs twice in an object: {names}")
    return dict(pairs)


def _parse(text: str) -> Any:
    def constant(name: str) -> Any:
        raise Unreadable(f"{name} is no JSON")

    return json.loads(
        text, parse_int=Number, parse_float=Number, parse_constant=constant, object_pairs_hook=_pairs
    )


def _json(file: Path, options: Mapping[str, Any]) -> Iterator[Row]:
    document = _parse(unpacked(file).decode(_encoding(options)))
    yield from document if isinstance(document, list) else [document]


def _ndjson(file: Path, options: Mapping[str, Any]) -> Iterator[Row]:
    for line in unpacked(file).decode(_encoding(options)).split("\n"):
        if line.strip():
            yield _parse(line)


def _parquet(file: Path) -> Iterator[Row]:
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file, partitioning=None, coerce_int96_timestamp_unit="us")
        fields = [pa.field(column.name, _in_microseconds(column.type)) for column in table.schema]
        yield from table.cast(pa.schema(fields), safe=False).to_pylist()
    except pa.ArrowException as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time64(kind):
        return pa.time64("us")
    return kind


def _avro(file: Path) -> Iterator[Row]:
    import fastavro
    import polars as pl

    try:
        with file.open("rb") as stream:
            reader = fastavro.reader(stream)
            schema, named = fastavro.parse_schema(reader.writer_schema), dict[str, Any]()
            _collect(schema, named)
            records = list(reader)
    except (UnicodeDecodeError, ValueError):  # metadata that are no text; a codec of another package
        yield from pl.read_avro(file).iter_rows(named=True)
        return
    for record in records:
        if not _is_record(schema):
            raise Unreadable(f"values are no records: {record!r}")
        yield _unions(record, schema, named)


def _is_record(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema["type"] in ("record", "error")


def _collect(schema: Any, named: dict[str, Any]) -> None:
    """Collect the named types that other types refer to."""
    if isinstance(schema, list):
        for part in schema:
            _collect(part, named)
    elif isinstance(schema, Mapping):
        if "name" in schema:
            named[schema["name"]] = schema
        for part in [
            schema.get("items"),
            schema.get("values"),
            *[f["type"] for f in schema.get("fields", ())],
        ]:
            _collect(part, named)
        if not isinstance(schema["type"], str):
            _collect(schema["type"], named)


def _unions(value: Any, schema: Any, named: Mapping[str, Any]) -> Any:
    """Return a value with each union of several types as a structure, as in Spark.

    Its fields are ``member0``, ``member1`` and so on.
    """
    from fastavro.validation import validate

    if isinstance(schema, str):
        return _unions(value, named[schema], named) if schema in named else value
    if isinstance(schema, list):
        branches = [branch for branch in schema if branch != "null"]
        if value is None:
            return None
        if len(branches) == 1:
            return _unions(value, branches[0], named)
        simple = {branch for branch in branches if isinstance(branch, str)}
        if simple in ({"int", "long"}, {"float", "double"}):
            return value
        fitting = [
            index
            for index, branch in enumerate(branches)
            if validate(value, branch, raise_errors=False, strict=True)
        ]
        if not fitting:
            raise Unreadable(f"no type of a union fits {value!r}")
        return {f"member{index}": _unions(value, branches[index], named) for index in fitting[:1]}
    match schema["type"]:
        case "record" | "error":
            return {f["name"]: _unions(value[f["name"]], f["type"], named) for f in schema["fields"]}
        case "array":
            return [_unions(item, schema["items"], named) for item in value]
        case "map":
            return {name: _unions(item, schema["values"], named) for name, item in value.items()}
        case str():
            return value
        case inner:
            return _unions(value, inner, named)


def _excel(file: Path) -> Iterator[Row]:
    """Yield the rows of the first sheet with cells; its first row with a value names the columns."""
    rows: list[list[Any]] = []
    for sheet in _sheets(file):
        rows = [[_plain(value) for value in row] for row in sheet]
        if any(value is not None for row in rows for value in row):
            break
    filled = [row for row in rows if any(value is not None for value in row)]
    header = filled[0] if filled else []
    for row in filled[1:]:
        yield {
            f"_c{place}" if name is None else str(name): value
            for place, (name, value) in enumerate(zip_longest(header, row))
            if name is not None or value is not None
        }


def _sheets(file: Path) -> Iterator[list[list[Any]]]:
    """Yield the values of each sheet, by openpyxl or from the XML of the sheets.

    The latter if openpyxl refuses the workbook for something other than its cells.
    """
    import openpyxl

    try:
        book = openpyxl.load_workbook(file, data_only=True)
    except (KeyError, TypeError):  # of a drawing, a style, or a part that is not there
        yield from sheets(file)
        return
    for sheet in book.worksheets:
        yield [[None if cell.data_type == "e" else cell.value for cell in row] for row in sheet.iter_rows()]


def _plain(value: Any) -> Any:
    if isinstance(value, str) and not value.strip():
        return None
    if isinstance(value, datetime) and value.time().isoformat() == "00:00:00":
        return value.date()
    return value


@dataclass
class Element:
    """An element of XML, with its names as written.

    Attributes:
        name: its name with its prefix.
        attributes: its attributes by name.
        begin: where its tag begins, in bytes.
        children: the elements below it, in order.
        texts: its own texts, separate where an element stands between.
        inner: everything between its tags, as written.
    """

    name: str
    attributes: Mapping[str, str]
    begin: int
    children: list[Element] = field(default_factory=list)
    texts: list[str] = field(default_factory=lambda: [""])
    inner: str = ""

    @property
    def own(self) -> list[str]:
        """Return its own texts, without those of blanks only."""
        return [text for text in self.texts if text.strip(_BLANKS)]


_BLANKS = " \t\r\n"
_TAG = re.compile(rb"""<(?:[^>"']|"[^"]*"|'[^']*')*>""")


def _xml(file: Path, options: Mapping[str, Any], columns: pa.Schema) -> Iterator[Row]:
    tag, data = str(options["rowTag"]), unpacked(file)
    while data.startswith(codecs.BOM_UTF8):
        data = data.removeprefix(codecs.BOM_UTF8)
    fields = {column.name: column.type for column in columns}
    stack: list[Element] = []
    records: list[Element] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if stack or name == tag:
            element = Element(name, attributes, parser.CurrentByteIndex)
            (stack[-1].children if stack else records).append(element)
            if stack:
                stack[-1].texts.append("")
            stack.append(element)

    def end(_: str) -> None:
        if stack:
            element = stack.pop()
            opening = _TAG.match(data, element.begin)
            if opening is not None and element.children:
                element.inner = data[opening.end() : parser.CurrentByteIndex].decode("utf-8", "replace")

    def text(part: str) -> None:
        if stack:
            stack[-1].texts[-1] += part

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.Parse(data, True)
    for record in records:
        yield _structure(record, fields)


def _structure(element: Element, fields: Mapping[str, pa.DataType]) -> dict[str, Any]:
    values: dict[str, Any] = {
        f"_{name}": _of_text(value, fields.get(f"_{name}")) for name, value in element.attributes.items()
    }
    for child in element.children:
        kind = fields.get(child.name)
        if kind is not None and pa.types.is_list(kind):
            values.setdefault(child.name, []).append(_value(child, kind.value_type))
        elif child.name in values:
            raise Unreadable(f"element {child.name} stands twice, and its column holds one")
        else:
            values[child.name] = _value(child, kind)
    if own := element.own:
        are_several = "_VALUE" in fields and pa.types.is_list(fields["_VALUE"])
        values["_VALUE"] = own if are_several else _of_text("".join(own), fields.get("_VALUE"))
    return values


def _of_text(text: str, kind: pa.DataType | None) -> str | None:
    """Return a text for a column; unless it is of texts, blanks around it and empty texts do not count."""
    if kind is not None and pa.types.is_string(kind):
        return text
    return text.strip(_BLANKS) or None


def _value(element: Element, kind: pa.DataType | None) -> Any:
    if kind is not None and pa.types.is_struct(kind):
        return _structure(element, {inner.name: inner.type for inner in kind})
    if element.attributes or (element.children and (kind is None or not pa.types.is_string(kind))):
        return _structure(element, {})
    return element.inner if element.children else _of_text("".join(element.texts), kind)


Reader = Callable[[Path, Mapping[str, Any], pa.Schema], Iterable[Row]]
_READERS: Mapping[str, Reader] = {
    "csv": lambda file, options, _: _csv(file, options),
    "json": lambda file, options, _: _json(file, options),
    "ndjson": lambda file, options, _: _ndjson(file, options),
    "parquet": lambda file, *_: _parquet(file),
    "avro": lambda file, *_: _avro(file),
    "excel": lambda file, *_: _excel(file),
    "xml": _xml,
}
