"""Read the footers of Parquet files without Spark: all columns, their types, and times in nanoseconds.

Spark's reader drops columns that it is not asked for, and refuses TIMESTAMP(NANOS), which pandas writes. It
reads these as whole numbers, which are then converted to microseconds
(:func:`resources.sources.files.nanoseconds.as_times`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from partitions.path.source import SourceFile
from partitions.records.conversions import (
    ITEM,
    KEY,
    UUID,
    VALUE,
    VARIANT,
    VOID,
    WIDE_RANGE_TYPES,
    is_special_type,
)
from partitions.records.forms import Type
from resources.connections.places import Place
from resources.sources.files.field_paths import FieldPath, dotted_name
from resources.sources.files.lines import read_range

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_DIGITS = 38
"""The most digits of a decimal that a table can hold."""

_EPOCH = date(1970, 1, 1).toordinal()

_DIGITS_OF_LONG = 18

_INTERVAL = "an interval, which no table can hold"

_TAIL = 64 * 1024
_THREADS = 16
_SIGNATURE = 28
"""Bytes of the signature behind the footer of a file with encrypted columns."""


@dataclass(frozen=True)
class Footer:
    """The columns of one file.

    Attributes:
        fields: all fields, at any depth.
        nanoseconds: the fields with times in nanoseconds, and whether these are instants; if not, they are
            local times.
        columns: names and types, as text that is equal for files with the same columns.
        types: the columns' types by name, in Spark's JSON form (:mod:`partitions.records.conversions`); None
            for a type that only Spark knows.
        unreadable: the dotted names of fields with a type that Spark cannot read or no table can hold, with
            the type's name.
        doubled_names: two sibling fields whose names are equal or differ in case only; None if there are
            none.
        fault: why the footer cannot be read; None if it can.
        is_empty: whether the file has no rows.
    """

    fields: frozenset[FieldPath] = frozenset()
    nanoseconds: Mapping[FieldPath, bool] = field(default_factory=dict)
    columns: str = ""
    types: Mapping[str, Type | None] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    doubled_names: tuple[str, str] | None = None
    fault: str | None = None
    is_empty: bool = False

    @property
    def needs_own_types(self) -> bool:
        """Whether Spark cannot tell the types: for times of day, and for columns without a value."""
        return any(is_special_type(data_type) for data_type in self.types.values())


def read_footers(place: Place, files: Sequence[SourceFile]) -> dict[str, Footer]:
    """Return the footers of files, by path.

    A file that the store does not return is left out: Spark reports why when it is loaded.
    """
    nonempty_files = [file for file in files if file.size > 0]
    with ThreadPoolExecutor(min(_THREADS, max(1, len(nonempty_files)))) as pool:
        results = list(pool.map(lambda file: _read_footer(place, file), nonempty_files))
    return {
        file.path: footer for file, footer in zip(nonempty_files, results, strict=True) if footer is not None
    }


def _read_footer(place: Place, file: SourceFile) -> Footer | None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from obstore.exceptions import BaseError

    try:
        tail = read_range(place, file, file.size - _TAIL, file.size)
        length = int.from_bytes(tail[-8:-4], "little")
        if tail[-4:] == b"PARE":
            return Footer(fault="it is encrypted")
        if tail[-4:] != b"PAR1":
            return Footer(
                fault="expected a Parquet file, which ends with PAR1, found another format or a part of a file"
            )
        if length + 12 > file.size:
            return Footer(fault="its footer is damaged: it is longer than the file")
        if length + 8 > len(tail):
            tail = read_range(place, file, file.size - length - 8, file.size)
    except (OSError, ValueError, BaseError):
        return None
    try:
        metadata = pq.read_metadata(pa.BufferReader(tail))
        if length - metadata.serialized_size == _SIGNATURE:  # pyarrow would end this process at such a column
            return Footer(fault="some of its columns are encrypted")
        return parse_footer(metadata)
    except (OSError, ValueError, pa.ArrowException) as error:
        if "logical type" in str(error).lower():
            return Footer(fault="its footer gives a column an invalid type")
        return Footer(fault="its footer is damaged")


def parse_footer(metadata: pq.FileMetaData) -> Footer:
    """Return the footer for the metadata of a Parquet file."""
    schema = metadata.schema
    arrow = schema.to_arrow_schema()
    fields: set[FieldPath] = set()
    nanoseconds: dict[FieldPath, bool] = {}
    leaves: dict[FieldPath, Type] = {}
    unreadable: dict[str, str] = {}
    doubled_names: tuple[str, str] | None = None
    number = 0
    for path, arrow_type, below in (node for top in arrow for node in _walk((top.name,), top.type)):
        if path[-1] not in (ITEM, KEY, VALUE):
            fields.add(path)
        if any("\0" in part for part in path):
            unreadable.setdefault(dotted_name(path).replace("\0", r"\0"), "a name with a NUL")
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
        why = _INTERVAL if is_interval else _unreadable(path, arrow_type, leaves.get(path))
        if why is not None:
            unreadable.setdefault(dotted_name(path), why)
        doubled_names = doubled_names or find_doubled_name(below or ())
    variants = _variants(metadata)
    types = {
        column.name: VARIANT if column.name in variants else _type_of((column.name,), column.type, leaves)
        for column in arrow
    }
    doubtful = sorted(dotted_name(path) for path, own in leaves.items() if own in WIDE_RANGE_TYPES)
    return Footer(
        frozenset(path for path in fields if len(path) == 1 or path[0] not in variants),
        nanoseconds,
        "\n".join([arrow.remove_metadata().to_string(), f"VARIANT {variants}", f"doubtful {doubtful}"]),
        types,
        unreadable,
        find_doubled_name([column.name for column in arrow]) or doubled_names,
        is_empty=metadata.num_rows == 0,
    )


def find_doubled_name(names: Sequence[str]) -> tuple[str, str] | None:
    """Return two of these names that are equal or differ in case only; None if there are none."""
    spellings: dict[str, str] = {}
    for name in names:
        if name.casefold() in spellings:
            return spellings[name.casefold()], name
        spellings[name.casefold()] = name
    return None


_GROUP = re.compile(r"^  (?:required|optional) group field_id=\S+ (.+) \(Variant\(\d+\)\) \{$", re.MULTILINE)
_SPARK_ROW = b"org.apache.spark.sql.parquet.row.metadata"


def _variants(metadata: pq.FileMetaData) -> list[str]:
    """Return the names of VARIANT columns, also of those that Spark 4.0 wrote before Parquet had the type."""
    names = set(_GROUP.findall(str(metadata.schema)))
    row = (metadata.metadata or {}).get(_SPARK_ROW)
    if row is not None:
        names |= {field["name"] for field in json.loads(row)["fields"] if field["type"] == VARIANT}
    return sorted(names)


def _own_type(metadata: pq.FileMetaData, number: int) -> Type | None:
    """Return the type of a leaf column in Spark's JSON form, if Arrow's type is not enough; else None."""
    leaf = metadata.schema.column(number)
    logical = leaf.logical_type.type
    if leaf.physical_type == "INT96":
        return "timestamp(any)"
    if logical == "UUID":
        return UUID
    is_decimal = "DECIMAL" in (logical, leaf.converted_type)
    if is_decimal and leaf.physical_type == "BYTE_ARRAY" and leaf.precision <= _DIGITS_OF_LONG:
        return f"decimal({MAX_DIGITS},{leaf.scale})"  # Spark's vectorized reader takes no shorter one
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
    """Return whether all times lie in the years 1 to 9999; False if the bounds are unknown.

    ``parts`` is the number of the column's time units in a day.
    """
    return bounds is not None and bounds[0] >= _FIRST_DAY * parts and bounds[1] < (_LAST_DAY + 1) * parts


def _bounds(metadata: pq.FileMetaData, leaf: int) -> tuple[int, int] | None:
    """Return the lowest and highest raw value of a leaf column; None if the statistics lack them."""
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


def _unreadable(path: FieldPath, arrow_type: pa.DataType, own: Type | None) -> str | None:
    """Return why Spark cannot read a field's type, or no table can hold it; None if both can."""
    import pyarrow as pa

    if pa.types.is_float16(arrow_type):
        return "float16"
    if pa.types.is_decimal(arrow_type) and arrow_type.precision > MAX_DIGITS:
        return f"decimal({arrow_type.precision},{arrow_type.scale}), which has more than {MAX_DIGITS} digits"
    if path[-1] == KEY and (pa.types.is_time(arrow_type) or own == UUID):
        return f"{arrow_type} as the key of a map"
    if pa.types.is_struct(arrow_type) and not arrow_type.num_fields:
        return "a group without fields"
    return None


def _type_of(path: FieldPath, arrow_type: pa.DataType, leaves: Mapping[FieldPath, Type]) -> Type | None:
    """Return an Arrow type in Spark's JSON form; None for one that only Spark knows."""
    import pyarrow as pa

    arrow_types = pa.types
    if path in leaves:
        return leaves[path]
    if isinstance(arrow_type, pa.BaseExtensionType):
        return _type_of(path, arrow_type.storage_type, leaves)
    if arrow_types.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz is not None else "timestamp_ntz"
    if arrow_types.is_time(arrow_type):
        return {"ms": "time(millis)", "us": "time(micros)", "ns": "time(nanos)"}.get(arrow_type.unit)
    if arrow_types.is_decimal(arrow_type):
        return (
            f"decimal({arrow_type.precision},{arrow_type.scale})"
            if arrow_type.scale >= 0 and arrow_type.precision <= 38
            else None
        )
    if arrow_types.is_dictionary(arrow_type):
        return _type_of(path, arrow_type.value_type, leaves)
    if arrow_types.is_struct(arrow_type):
        inner = {below.name: _type_of((*path, below.name), below.type, leaves) for below in arrow_type}
        if None in inner.values():
            return None
        fields = [
            {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in inner.items()
        ]
        return {"type": "struct", "fields": fields}
    if arrow_types.is_map(arrow_type):
        key = _type_of((*path, KEY), arrow_type.key_type, leaves)
        value = _type_of((*path, VALUE), arrow_type.item_type, leaves)
        if key is None or value is None:
            return None
        key = WIDE_RANGE_TYPES.get(key, key) if isinstance(key, str) else key
        return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}
    if _is_list(arrow_type):
        item = _type_of((*path, ITEM), arrow_type.value_type, leaves)
        return None if item is None else {"type": "array", "elementType": item, "containsNull": True}
    return _PLAIN.get(str(arrow_type))


def _is_list(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    arrow_types = pa.types
    return bool(
        arrow_types.is_list(arrow_type)
        or arrow_types.is_large_list(arrow_type)
        or arrow_types.is_fixed_size_list(arrow_type)
    )


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
"""Types without parameters, by Arrow's names; Spark reads unsigned numbers as the next wider type."""


def _walk(
    path: FieldPath, arrow_type: pa.DataType
) -> Iterator[tuple[FieldPath, pa.DataType, Sequence[str] | None]]:
    """Yield a type and all types below it, in the order of the file.

    Each item is the path, the type, and the names below it; None if it is a leaf.
    """
    import pyarrow as pa

    if isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    inner: list[tuple[str, Any]] = []
    if pa.types.is_struct(arrow_type):
        inner = [(child.name, child.type) for child in arrow_type]
    elif pa.types.is_map(arrow_type):
        inner = [(KEY, arrow_type.key_type), (VALUE, arrow_type.item_type)]
    elif _is_list(arrow_type):
        inner = [(ITEM, arrow_type.value_type)]
    yield path, arrow_type, [name for name, _ in inner] if inner or pa.types.is_struct(arrow_type) else None
    for name, below in inner:
        yield from _walk((*path, name), below)


def _nanoseconds(column: pq.ColumnSchema) -> bool | None:
    """Return whether a column's nanoseconds are instants; None if it has none.

    Spark reads INT96 times itself.
    """
    if column.physical_type != "INT64" or column.logical_type.type != "TIMESTAMP":
        return None
    logical = json.loads(column.logical_type.to_json())
    return bool(logical["isAdjustedToUTC"]) if logical["timeUnit"] == "nanoseconds" else None


class FooterCache:
    """A cache of the footers of a slice's files."""

    def __init__(self, place: Place) -> None:
        """Start with an empty cache for files below a root."""
        self._place = place
        self._footers: dict[SourceFile, Footer] = {}

    def read(self, files: Sequence[SourceFile]) -> dict[str, Footer]:
        """Return the footers of these files by path, without unreadable ones, and drop those of other files."""
        missing = [file for file in files if file not in self._footers]
        new_footers = read_footers(self._place, missing)
        cached_footers = {file: self._footers[file] for file in files if file in self._footers}
        self._footers = cached_footers | {
            file: new_footers[file.path] for file in missing if file.path in new_footers
        }
        return {file.path: footer for file, footer in self._footers.items()}
