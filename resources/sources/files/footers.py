"""What the footers of Parquet files say of their columns, read without Spark: all names, and the times with nanoseconds.

Spark's reader leaves columns out that it is not asked for, and takes no TIMESTAMP(NANOS), which is what pandas writes. It does read these
as whole numbers, so they are read so, and made microseconds exactly (:func:`resources.sources.files.nanoseconds.as_times`).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from partitions.path.source import SourceFile
from partitions.records.conversions import VOID, is_special_type
from partitions.records.forms import Type
from resources.places import Place

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.types import StructType

FieldPath = tuple[str, ...]
"""Where a field is: the names above it and its own, as they are spelt; ``ITEM``, ``KEY`` and ``VALUE`` in arrays and maps."""

ITEM, KEY, VALUE = "[]", "{key}", "{value}"

_TAIL = 64 * 1024
_THREADS = 16


@dataclass(frozen=True)
class Footer:
    """The columns of one file.

    Attributes:
        fields: all of them, at any depth.
        nanoseconds: those with times in nanoseconds, and whether these are instants; if not, they are local times.
        columns: names and types, as text that is the same for files with the same columns.
        types: those of the columns by their names, in Spark's JSON form (:mod:`partitions.records.conversions`); None of one that only Spark knows.
        unreadable: columns with a type that Spark cannot read, and its name.
        twice: two columns whose names differ in upper and lower case only, or not at all; None if there are none.
    """

    fields: frozenset[FieldPath] = frozenset()
    nanoseconds: Mapping[FieldPath, bool] = field(default_factory=dict)
    columns: str = ""
    types: Mapping[str, Type | None] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    twice: tuple[str, str] | None = None

    @property
    def needs_own_types(self) -> bool:
        """Whether Spark cannot tell the types: of times of day, and of columns without a value."""
        return any(is_special_type(data_type) for data_type in self.types.values())


def footers(place: Place, files: Sequence[SourceFile]) -> dict[str, Footer]:
    """The footers of files, by their paths. A file without one that reads is left out: Spark tells why when it is loaded."""
    filled = [file for file in files if file.size > 0]
    with ThreadPoolExecutor(min(_THREADS, max(1, len(filled)))) as pool:
        read = list(pool.map(lambda file: _footer(place, file), filled))
    return {file.path: footer for file, footer in zip(filled, read, strict=True) if footer is not None}


def _footer(place: Place, file: SourceFile) -> Footer | None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from obstore.exceptions import BaseError

    try:
        tail = _tail(place, file, _TAIL)
        longer = int.from_bytes(tail[-8:-4], "little") + 8
        if longer > len(tail):
            tail = _tail(place, file, longer)
        metadata = pq.read_metadata(pa.BufferReader(tail))
        return footer_of(metadata.schema)
    except (OSError, ValueError, BaseError, pa.ArrowException):
        return None


def _tail(place: Place, file: SourceFile, size: int) -> bytes:
    start = max(0, file.size - size)
    if place.local is None:
        return bytes(place.store.get_range(file.path, start=start, end=file.size))
    with (place.local / file.path).open("rb") as opened:
        opened.seek(start)
        return opened.read()


def footer_of(schema: pq.ParquetSchema) -> Footer:
    """What a Parquet schema says."""
    leaves = [schema.column(index) for index in range(len(schema))]
    fields: set[FieldPath] = set()
    nanoseconds: dict[FieldPath, bool] = {}
    nodes = (each for top in schema.to_arrow_schema() for each in _walk((top.name,), top.type))
    number = 0
    for path, is_field, is_leaf in nodes:
        if is_field:
            fields.add(path)
        if is_leaf:
            instant = _nanoseconds(leaves[number])
            number += 1
            if instant is not None:
                nanoseconds[path] = instant
    arrow = schema.to_arrow_schema()
    old_times = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    types = {column.name: _type_of(column.type, column.name in old_times) for column in arrow}
    return Footer(
        frozenset(fields),
        nanoseconds,
        arrow.remove_metadata().to_string(),
        types,
        {column.name: "float16" for column in arrow if _has_halves(column.type)},
        _twice([column.name for column in arrow]),
    )


def _twice(names: Sequence[str]) -> tuple[str, str] | None:
    spellings: dict[str, str] = {}
    for name in names:
        if name.casefold() in spellings:
            return spellings[name.casefold()], name
        spellings[name.casefold()] = name
    return None


def _has_halves(kind: pa.DataType) -> bool:
    import pyarrow as pa

    inner = [kind.field(place).type for place in range(kind.num_fields)] if kind.num_fields else []
    return pa.types.is_float16(kind) or any(_has_halves(below) for below in inner)


def _type_of(kind: pa.DataType, is_old_time: bool = False) -> Type | None:
    """A type of Arrow in Spark's JSON form; None of one that only Spark knows."""
    import pyarrow as pa

    of = pa.types
    if is_old_time:
        return "timestamp"
    if of.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if of.is_time(kind):
        return {"ms": "time(millis)", "us": "time(micros)", "ns": "time(nanos)"}.get(kind.unit)
    if of.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if kind.scale >= 0 and kind.precision <= 38 else None
    if of.is_dictionary(kind):
        return _type_of(kind.value_type)
    if of.is_struct(kind):
        inner = {below.name: _type_of(below.type) for below in kind}
        if None in inner.values():
            return None
        fields = [
            {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in inner.items()
        ]
        return {"type": "struct", "fields": fields}
    if of.is_map(kind):
        key, value = _type_of(kind.key_type), _type_of(kind.item_type)
        if key is None or value is None:
            return None
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if of.is_list(kind) or of.is_large_list(kind):
        item = _type_of(kind.value_type)
        return None if item is None else {"type": "array", "elementType": item, "containsNull": True}
    return _PLAIN.get(str(kind))


_PLAIN: Mapping[str, str] = {
    "null": VOID,
    "bool": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "uint8": "short",
    "uint16": "integer",
    "uint32": "long",
    "uint64": "decimal(20,0)",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}
"""Types without parameters, by Arrow's names; Spark reads numbers without a sign as the next wider type."""


def _walk(path: FieldPath, kind: pa.DataType) -> Iterator[tuple[FieldPath, bool, bool]]:
    """A type and all below it, in the order of the file: path, whether it is a field, whether it holds values itself."""
    import pyarrow as pa

    is_field = path[-1] not in (ITEM, KEY, VALUE)
    inner: list[tuple[str, Any]] = []
    if pa.types.is_struct(kind):
        inner = [(each.name, each.type) for each in kind]
    elif pa.types.is_map(kind):
        inner = [(KEY, kind.key_type), (VALUE, kind.item_type)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = [(ITEM, kind.value_type)]
    yield path, is_field, not inner
    for name, below in inner:
        yield from _walk((*path, name), below)


def _nanoseconds(column: pq.ColumnSchema) -> bool | None:
    """Whether a column's times are instants; None if it has no nanoseconds. Those of old Hive and Spark (INT96) Spark reads itself."""
    if column.physical_type != "INT64" or column.logical_type.type != "TIMESTAMP":
        return None
    logical = json.loads(column.logical_type.to_json())
    return bool(logical["isAdjustedToUTC"]) if logical["timeUnit"] == "nanoseconds" else None


def paths_of(schema: StructType) -> frozenset[FieldPath]:
    """All fields of a schema at any depth, without upper case, which tells no columns of Parquet apart."""
    from pyspark.sql.types import ArrayType, DataType, MapType, StructType

    def walk(path: FieldPath, kind: DataType) -> Iterator[FieldPath]:
        yield path
        if isinstance(kind, StructType):
            for each in kind.fields:
                yield from walk((*path, each.name.casefold()), each.dataType)
        elif isinstance(kind, ArrayType):
            yield from walk((*path, ITEM), kind.elementType)
        elif isinstance(kind, MapType):
            yield from walk((*path, KEY), kind.keyType)
            yield from walk((*path, VALUE), kind.valueType)

    return frozenset(walk((), schema))


def unknown_columns(fields: Iterable[FieldPath], known: Collection[FieldPath]) -> list[FieldPath]:
    """The columns of a file that are not known, without those inside them."""
    folded = {tuple(part.casefold() for part in path): path for path in fields}
    return sorted(path for key, path in folded.items() if key not in known and key[:-1] in known)


class FooterCache:
    """The footers of the Parquet files of a slice, each read once."""

    def __init__(self, place: Place) -> None:
        """Use the root of the files."""
        self._place = place
        self._known: dict[SourceFile, Footer] = {}

    def read(self, files: Sequence[SourceFile]) -> dict[str, Footer]:
        """Return the footers of these files by path, without those that do not read; what other files had is forgotten."""
        missing = [file for file in files if file not in self._known]
        read = footers(self._place, missing)
        kept = {file: self._known[file] for file in files if file in self._known}
        self._known = kept | {file: read[file.path] for file in missing if file.path in read}
        return {file.path: footer for file, footer in self._known.items()}
