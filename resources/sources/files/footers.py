"""What the footers of Parquet files say of their columns, read without Spark: all names, and the times with nanoseconds.

Spark's reader leaves columns out that it is not asked for, and takes no TIMESTAMP(NANOS), which is what pandas writes. It does read these
as whole numbers, so they are read so, and made microseconds exactly (:func:`resources.sources.files.nanoseconds.as_times`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from partitions.path.source import SourceFile
from partitions.records.conversions import DOUBTFUL, ITEM, KEY, UUID, VALUE, VARIANT, VOID, is_special_type
from partitions.records.forms import Type
from resources.connections.places import Place
from resources.sources.files.lines import part_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql.types import StructType

FieldPath = tuple[str, ...]
"""Where a field is: the names above it and its own, as they are spelt; ``ITEM``, ``KEY`` and ``VALUE`` in arrays and maps."""

MOST_DIGITS = 38
"""Of a decimal, in any table."""

_EPOCH = date(1970, 1, 1).toordinal()

_DIGITS_OF_LONG = 18

_INTERVAL = "an interval, which no table holds"

_TAIL = 64 * 1024
_THREADS = 16
_SIGNATURE = 28
"""Bytes behind the footer of a file with encrypted columns."""


@dataclass(frozen=True)
class Footer:
    """The columns of one file.

    Attributes:
        fields: all of them, at any depth.
        nanoseconds: those with times in nanoseconds, and whether these are instants; if not, they are local times.
        columns: names and types, as text that is the same for files with the same columns.
        types: those of the columns by their names, in Spark's JSON form (:mod:`partitions.records.conversions`); None of one that only Spark knows.
        unreadable: fields with a type that Spark cannot read or no table holds, dotted, and its name.
        twice: two fields beside each other whose names differ in upper and lower case only, or not at all; None if there are none.
        fault: why the file has no footer that reads; None if it has.
        is_empty: whether the file has no rows.
    """

    fields: frozenset[FieldPath] = frozenset()
    nanoseconds: Mapping[FieldPath, bool] = field(default_factory=dict)
    columns: str = ""
    types: Mapping[str, Type | None] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    twice: tuple[str, str] | None = None
    fault: str | None = None
    is_empty: bool = False

    @property
    def needs_own_types(self) -> bool:
        """Whether Spark cannot tell the types: of times of day, and of columns without a value."""
        return any(is_special_type(data_type) for data_type in self.types.values())


def footers(place: Place, files: Sequence[SourceFile]) -> dict[str, Footer]:
    """The footers of files, by their paths. A file that the store does not give is left out: Spark tells why when it is loaded."""
    filled = [file for file in files if file.size > 0]
    with ThreadPoolExecutor(min(_THREADS, max(1, len(filled)))) as pool:
        read = list(pool.map(lambda file: _footer(place, file), filled))
    return {file.path: footer for file, footer in zip(filled, read, strict=True) if footer is not None}


def _footer(place: Place, file: SourceFile) -> Footer | None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from obstore.exceptions import BaseError

    try:
        tail = part_of(place, file, file.size - _TAIL, file.size)
        length = int.from_bytes(tail[-8:-4], "little")
        if tail[-4:] == b"PARE":
            return Footer(fault="it is encrypted")
        if tail[-4:] != b"PAR1":
            return Footer(
                fault="expected Parquet, which ends with PAR1, found another file, or a part of one"
            )
        if length + 12 > file.size:
            return Footer(fault="its footer is damaged: it is longer than the file")
        if length + 8 > len(tail):
            tail = part_of(place, file, file.size - length - 8, file.size)
    except (OSError, ValueError, BaseError):
        return None
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
        if length - metadata.serialized_size == _SIGNATURE:  # pyarrow would end this process at such a column
            return Footer(fault="columns of it are encrypted")
        return footer_of(metadata)
    except (OSError, ValueError, pa.ArrowException) as error:
        if "logical type" in str(error).lower():
            return Footer(fault="its footer gives a column a type that Parquet does not have there")
        return Footer(fault="its footer is damaged")


def footer_of(metadata: pq.FileMetaData) -> Footer:
    """What the metadata of a Parquet file say of its columns."""
    schema = metadata.schema
    arrow = schema.to_arrow_schema()
    fields: set[FieldPath] = set()
    nanoseconds: dict[FieldPath, bool] = {}
    leaves: dict[FieldPath, Type] = {}
    unreadable: dict[str, str] = {}
    twice: tuple[str, str] | None = None
    number = 0
    for path, kind, below in (each for top in arrow for each in _walk((top.name,), top.type)):
        if path[-1] not in (ITEM, KEY, VALUE):
            fields.add(path)
        if any("\0" in part for part in path):
            unreadable.setdefault(shown(path).replace("\0", r"\0"), "a name with a NUL")
        leaf = None
        if below is None:
            leaf = schema.column(number)
            instant = _nanoseconds(leaf)
            if instant is not None:
                nanoseconds[path] = instant
            elif (own := _own_type(metadata, number)) is not None:
                leaves[path] = own
            number += 1
        is_interval = leaf is not None and leaf.converted_type == "INTERVAL"
        why = _INTERVAL if is_interval else _unreadable(path, kind, leaves.get(path))
        if why is not None:
            unreadable.setdefault(shown(path), why)
        twice = twice or doubled(below or ())
    variants = _variants(metadata)
    types = {
        column.name: VARIANT if column.name in variants else _type_of((column.name,), column.type, leaves)
        for column in arrow
    }
    doubtful = sorted(shown(path) for path, own in leaves.items() if own in DOUBTFUL)
    return Footer(
        frozenset(path for path in fields if len(path) == 1 or path[0] not in variants),
        nanoseconds,
        "\n".join([arrow.remove_metadata().to_string(), f"VARIANT {variants}", f"doubtful {doubtful}"]),
        types,
        unreadable,
        doubled([column.name for column in arrow]) or twice,
        is_empty=metadata.num_rows == 0,
    )


def doubled(names: Sequence[str]) -> tuple[str, str] | None:
    """Return two of these names that are the same, but for upper and lower case; None if there are none."""
    spellings: dict[str, str] = {}
    for name in names:
        if name.casefold() in spellings:
            return spellings[name.casefold()], name
        spellings[name.casefold()] = name
    return None


_GROUP = re.compile(r"^  (?:required|optional) group field_id=\S+ (.+) \(Variant\(\d+\)\) \{$", re.MULTILINE)
_SPARK_ROW = b"org.apache.spark.sql.parquet.row.metadata"


def _variants(metadata: pq.FileMetaData) -> list[str]:
    """The columns that are VARIANT: Parquet says so, or Spark 4.0 did, which wrote them before Parquet had them."""
    names = set(_GROUP.findall(str(metadata.schema)))
    row = (metadata.metadata or {}).get(_SPARK_ROW)
    if row is not None:
        names |= {field["name"] for field in json.loads(row)["fields"] if field["type"] == VARIANT}
    return sorted(names)


def _own_type(metadata: pq.FileMetaData, number: int) -> Type | None:
    """The type of a column of values where Arrow's type does not tell it: in Spark's JSON form."""
    leaf = metadata.schema.column(number)
    logical = leaf.logical_type.type
    if leaf.physical_type == "INT96":
        return "timestamp(any)"
    if logical == "UUID":
        return UUID
    is_decimal = "DECIMAL" in (logical, leaf.converted_type)
    if is_decimal and leaf.physical_type == "BYTE_ARRAY" and leaf.precision <= _DIGITS_OF_LONG:
        return f"decimal({MOST_DIGITS},{leaf.scale})"  # Spark's reader of whole columns takes no shorter one
    if logical == "DATE":
        return None if _lie_within(_bounds(metadata, number), 1) else "date(any)"
    if logical == "TIMESTAMP" and leaf.physical_type == "INT64":
        described = json.loads(leaf.logical_type.to_json())
        parts = {"milliseconds": 86_400_000, "microseconds": 86_400_000_000}.get(described["timeUnit"])
        if parts is not None and not _lie_within(_bounds(metadata, number), parts):
            return "timestamp(any)" if described["isAdjustedToUTC"] else "timestamp_ntz(any)"
    return None


_FIRST_DAY, _LAST_DAY = (date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH)


def _lie_within(bounds: tuple[int, int] | None, parts: int) -> bool:
    """Whether all times lie in the years 1 to 9999, counted in so many parts of a day; not if it is not known where they lie."""
    return bounds is not None and bounds[0] >= _FIRST_DAY * parts and bounds[1] < (_LAST_DAY + 1) * parts


def _bounds(metadata: pq.FileMetaData, leaf: int) -> tuple[int, int] | None:
    """The least and the highest value of a column of values, as they are counted; None if the statistics do not tell them."""
    least, highest = 0, 0
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(leaf).statistics
        if statistics is None:
            return None
        if statistics.has_min_max:
            least, highest = min(least, statistics.min_raw), max(highest, statistics.max_raw)
        elif not statistics.has_null_count or statistics.num_values:
            return None
    return least, highest


def _unreadable(path: FieldPath, kind: pa.DataType, own: Type | None) -> str | None:
    """Why a field has a type that Spark cannot read, or no table holds; None if it has not."""
    import pyarrow as pa

    if pa.types.is_float16(kind):
        return "float16"
    if pa.types.is_decimal(kind) and kind.precision > MOST_DIGITS:
        return f"decimal({kind.precision},{kind.scale}), which has more than {MOST_DIGITS} digits"
    if path[-1] == KEY and (pa.types.is_time(kind) or own == UUID):
        return f"{kind} as the key of a map"
    if pa.types.is_struct(kind) and not kind.num_fields:
        return "a group without fields"
    return None


def _type_of(path: FieldPath, kind: pa.DataType, leaves: Mapping[FieldPath, Type]) -> Type | None:
    """A type of Arrow in Spark's JSON form; None of one that only Spark knows."""
    import pyarrow as pa

    of = pa.types
    if path in leaves:
        return leaves[path]
    if isinstance(kind, pa.BaseExtensionType):
        return _type_of(path, kind.storage_type, leaves)
    if of.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if of.is_time(kind):
        return {"ms": "time(millis)", "us": "time(micros)", "ns": "time(nanos)"}.get(kind.unit)
    if of.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})" if kind.scale >= 0 and kind.precision <= 38 else None
    if of.is_dictionary(kind):
        return _type_of(path, kind.value_type, leaves)
    if of.is_struct(kind):
        inner = {below.name: _type_of((*path, below.name), below.type, leaves) for below in kind}
        if None in inner.values():
            return None
        fields = [
            {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in inner.items()
        ]
        return {"type": "struct", "fields": fields}
    if of.is_map(kind):
        key = _type_of((*path, KEY), kind.key_type, leaves)
        value = _type_of((*path, VALUE), kind.item_type, leaves)
        if key is None or value is None:
            return None
        key = DOUBTFUL.get(key, key) if isinstance(key, str) else key
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if _is_list(kind):
        item = _type_of((*path, ITEM), kind.value_type, leaves)
        return None if item is None else {"type": "array", "elementType": item, "containsNull": True}
    return _PLAIN.get(str(kind))


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    of = pa.types
    return bool(of.is_list(kind) or of.is_large_list(kind) or of.is_fixed_size_list(kind))


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


def _walk(
    path: FieldPath, kind: pa.DataType
) -> Iterator[tuple[FieldPath, pa.DataType, Sequence[str] | None]]:
    """A type and all below it, in the order of the file: path, type, and the names below it; None if it holds values itself."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    inner: list[tuple[str, Any]] = []
    if pa.types.is_struct(kind):
        inner = [(each.name, each.type) for each in kind]
    elif pa.types.is_map(kind):
        inner = [(KEY, kind.key_type), (VALUE, kind.item_type)]
    elif _is_list(kind):
        inner = [(ITEM, kind.value_type)]
    yield path, kind, [name for name, _ in inner] if inner or pa.types.is_struct(kind) else None
    for name, below in inner:
        yield from _walk((*path, name), below)


def _nanoseconds(column: pq.ColumnSchema) -> bool | None:
    """Whether a column's times are instants; None if it has no nanoseconds. Those of old Hive and Spark (INT96) Spark reads itself."""
    if column.physical_type != "INT64" or column.logical_type.type != "TIMESTAMP":
        return None
    logical = json.loads(column.logical_type.to_json())
    return bool(logical["isAdjustedToUTC"]) if logical["timeUnit"] == "nanoseconds" else None


def shown(path: FieldPath) -> str:
    """A field for people: dotted, without the words for what is in an array or a map."""
    return ".".join(part for part in path if part not in (ITEM, KEY, VALUE))


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
