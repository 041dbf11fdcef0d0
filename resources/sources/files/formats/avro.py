"""Avro: files with their own types, and a header that tells them without Spark. Spark's reader comes as a jar of its own."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.conversions import (
    ITEM,
    NANOSECONDS,
    VALUE,
    VOID,
    is_special_type,
)
from partitions.records.forms import Type
from partitions.records.options import by_lower_name
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import own_struct, with_own_types
from resources.sources.files.failures import bad_document, names_twice, unreadable_type
from resources.sources.files.footers import (
    MOST_DIGITS,
    FieldPath,
    doubled,
    paths_of,
    shown,
)
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.formats.typed import TypedFiles, taken_columns, unknown_names
from resources.sources.files.lines import part_of
from resources.sources.files.pinned import PinnedSchema
from resources.spark_runtime import AVRO_PACKAGE
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_HEAD = 64 * 1024
_MAGIC, _SYNC = b"Obj\x01", 16
_CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")
_MOST_HEADERS = 10_000
_NAMED = ("record", "error", "enum", "fixed")


class AvroFiles(TypedFiles):
    """Records with types of their own."""

    READER: ClassVar[str] = "avro"
    PACKAGE: ClassVar[str | None] = AVRO_PACKAGE

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Look at no file yet."""
        super().__init__(place, dataflow, staging)
        self._headers: dict[SourceFile, Header] = {}

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Look at the headers; only of files with columns of other types than the pinned ones values are read."""
        bad = [self._bad_header(file) for file in files]
        bad_files = {error.path: error for error in bad if error is not None}
        sound = [file for file in files if file.path not in bad_files]
        texts = {file.path: self._schema(file) for file in sound if file.size}
        types = {path: self._own_types(text) for path, text in texts.items() if text}
        unknown = self._unknown_fields(sound, pinned)
        return self._check_sound(spark, files, bad_files, types, unknown, pinned)

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Columns of other types than the pinned ones are read as their own."""
        schemas: dict[str, StructType] = {}
        for file in files:
            text = self._schema(file)
            if text is None or self._bad_header(file) is not None:
                continue
            own = {
                name.casefold(): data_type
                for name, data_type in self._own_types(text).items()
                if data_type is not None
            }
            read = with_own_types(data, own)
            cut = [
                name
                for name, data_type in own.items()
                if isinstance(data_type, str) and data_type in NANOSECONDS
            ]
            if read != data:
                self._remark_cut(cut)
                schemas[file.path] = read
        return schemas

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Spark looks at one file only, so files with other schemas are asked for apart."""
        bad = {file: self._bad_header(file) for file in files}
        sound = [file for file in files if bad[file] is None]
        for error in () if sound else bad.values():
            assert error is not None
            raise error
        groups: dict[str, SourceFile] = {}
        for file in sound:
            groups.setdefault(self._schema(file) or "", file)
        columns = merged(self._columns_of(spark, text, file) for text, file in groups.items())
        return self.with_deferred_types(columns.jsonValue())

    def _columns_of(self, spark: SparkSession, text: str, file: SourceFile) -> StructType:
        """The columns of one file: by its header if Spark would take some of them for numbers, else by Spark."""
        own = self._own_types(text) if text else {}
        is_special = any(is_special_type(data_type) for data_type in own.values())
        if is_special and None not in own.values():
            return own_struct(own)
        return nullable(self.scan(spark, [file], None).schema)

    def _unknown_fields(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Mapping[str, list[str]]:
        """Read the headers, without Spark. A header that does not read Spark tells when the file is loaded."""
        texts = {file.path: self._schema(file) for file in files if file.size}
        pinned_paths = paths_of(pinned.struct)
        return {
            path: unknown_names(fields_of(text), self._own_types(text), pinned_paths)
            for path, text in texts.items()
            if text
        }

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the headers, without Spark."""
        written = {file.path: self._schema(file) for file in files if self._bad_header(file) is None}
        return {
            path: frozenset(field["name"].casefold() for field in json.loads(text).get("fields", ()))
            for path, text in written.items()
            if text is not None
        }

    @override
    def other_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Read the headers, without Spark; of files with the same columns Spark tells the types of one."""
        groups = self._first_of_each([file for file in files if self._bad_header(file) is None])
        return taken_columns(self._types_by_header(spark, groups), groups, pinned)

    @override
    def own_schemas(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """The columns of each file."""
        types = self._types_by_header(spark, self._first_of_each(files))
        texts = {file.path: self._schema(file) for file in files}
        return {path: types[text] for path, text in texts.items() if text is not None}

    def _first_of_each(self, files: Sequence[SourceFile]) -> dict[str, SourceFile]:
        """The first of the files with the same header, by that."""
        groups: dict[str, SourceFile] = {}
        for file in files:
            if (text := self._schema(file)) is not None:
                groups.setdefault(text, file)
        return groups

    def _types_by_header(
        self, spark: SparkSession, groups: Mapping[str, SourceFile]
    ) -> Mapping[str, StructType]:
        return self._types_of(groups, lambda text, file: self._columns_of(spark, text, file))

    def _header(self, file: SourceFile) -> Header:
        if file not in self._headers:
            self._headers = dict([*self._headers.items()][-_MOST_HEADERS:])
            self._headers[file] = header_of(self.place, file)
        return self._headers[file]

    def _own_types(self, text: str) -> Mapping[str, Type | None]:
        """The types of the columns of a header; of a union of several none is known if an option names its members."""
        name = "enablestableidentifiersforuniontype"
        return own_types(
            text, are_members_numbered=by_lower_name(self.own_options).get(name, "false").lower() != "true"
        )

    def _schema(self, file: SourceFile) -> str | None:
        return self._header(file).schema

    def _bad_header(self, file: SourceFile) -> BadFile | None:
        """Why a file cannot be loaded, whatever its records are; None if it can."""
        text, fault = self._header(file)
        if fault is not None:
            return bad_document(file.path, fault)
        if text is None:
            return None
        twice, strange = doubled_names(text), unreadable_field(text)
        if twice is not None:
            return names_twice(file.path, *twice)
        return None if strange is None else unreadable_type(file.path, *strange)


class Header(NamedTuple):
    """What the header of a file tells.

    Attributes:
        schema: of its records, as JSON; None if only Spark knows, or nobody.
        fault: why no record of the file can be read; None if that is not known.
    """

    schema: str | None
    fault: str | None = None


class BrokenHeaderError(Exception):
    """A header that is none."""


def header_of(place: Place, file: SourceFile) -> Header:
    """Return what the header of a file tells; nothing of one that the store does not give."""
    import fastavro
    from fastavro.schema import SchemaParseException
    from obstore.exceptions import BaseError

    size = _HEAD
    metadata = None
    try:
        while metadata is None:
            metadata = _metadata(part_of(place, file, 0, size), is_whole=size >= file.size)
            size *= 8
    except BrokenHeaderError as error:
        return Header(None, str(error))
    except (OSError, BaseError):
        return Header(None)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in _CODECS:
        return Header(None, f"expected blocks packed by one of {', '.join(_CODECS)}, found {codec}")
    try:
        content = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError, RecursionError):
        return Header(None, "expected a schema as JSON in its header, found none")
    try:
        return Header(json.dumps(fastavro.parse_schema(content, _write_hint=False)))
    except (SchemaParseException, LookupError, TypeError, ValueError):
        return Header(None)  # Spark may be less strict


def _metadata(head: bytes, *, is_whole: bool) -> dict[str, bytes] | None:
    """The pairs in a header; None if it goes on behind these bytes.

    Raises:
        BrokenHeaderError: it is no header of Avro, or the file ends in it.
    """
    if not head.startswith(_MAGIC):
        raise BrokenHeaderError("expected Avro, found another file")
    pairs: dict[str, bytes] = {}
    data = io.BytesIO(head[len(_MAGIC) :])
    try:
        while count := _number(data):
            if count < 0:  # the size of the block follows
                count = -count
                _number(data)
            for _ in range(count):
                name = _bytes(data).decode("utf-8", "replace")
                pairs[name] = _bytes(data)
        ends = len(data.read(_SYNC)) == _SYNC
    except EOFError:
        ends = False
    if not ends and is_whole:
        raise BrokenHeaderError("its header is damaged, or the file ends in it")
    return pairs if ends else None


def _number(data: io.BytesIO) -> int:
    """A whole number as Avro writes it: seven bits a byte, the lowest first; the lowest of all is the sign."""
    bits = shift = 0
    while True:
        byte = data.read(1)
        if not byte or shift > 63:
            raise EOFError
        bits |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return (bits >> 1) ^ -(bits & 1)


def _bytes(data: io.BytesIO) -> bytes:
    length = _number(data)
    value = data.read(length) if length >= 0 else b""
    if length < 0 or len(value) < length:
        raise EOFError
    return value


@lru_cache(maxsize=64)
def unreadable_field(schema: str) -> tuple[str, str] | None:
    """Return a field of an Avro schema that no table can hold, dotted, and its type.

    Such as a record without fields or that holds itself, a duration, a decimal of more than 38 digits. The field is "" if the values themselves are no records.
    """
    content = json.loads(schema)
    kind = content.get("type") if isinstance(content, dict) else content
    if kind not in ("record", "error"):
        return "", kind if isinstance(kind, str) else "of several types"
    return next(_unreadable((), content, {}, ()), None)


def _unreadable(
    path: FieldPath, kind: Any, named: dict[str, Any], above: Collection[str]
) -> Iterator[tuple[str, str]]:
    if isinstance(kind, list):
        for member in kind:
            yield from _unreadable(path, member, named, above)
        return
    if isinstance(kind, str):
        if kind in above:
            yield shown(path), f"the record {kind}, which holds itself"
            return
        kind = named.get(kind, kind)
    if not isinstance(kind, dict):
        return
    if not isinstance(kind["type"], str):
        yield from _unreadable(path, kind["type"], named, above)
        return
    if kind["type"] in _NAMED:
        named[kind["name"]] = kind
    if kind.get("logicalType") == "duration":
        yield shown(path), "duration"
    elif kind.get("logicalType") == "decimal" and kind.get("precision", 0) > MOST_DIGITS:
        yield shown(path), f"a decimal of {kind['precision']} digits, which is more than {MOST_DIGITS}"
    elif kind["type"] in ("record", "error"):
        if kind["name"] in above:
            yield shown(path), f"the record {kind['name']}, which holds itself"
            return
        if not kind["fields"]:
            yield shown(path), "a record without fields"
        for field in kind["fields"]:
            yield from _unreadable((*path, field["name"]), field["type"], named, (*above, kind["name"]))
    elif kind["type"] in ("array", "map"):
        yield from _unreadable(path, kind.get("items", kind.get("values")), named, above)


@lru_cache(maxsize=64)
def doubled_names(schema: str) -> tuple[str, str] | None:
    """Return two fields of one record whose names differ in upper and lower case only; None if there are none."""
    names: dict[FieldPath, list[str]] = {}
    for path in sorted(fields_of(schema)):
        names.setdefault(path[:-1], []).append(path[-1])
    return next(filter(None, map(doubled, names.values())), None)


@lru_cache(maxsize=64)
def own_types(schema: str, *, are_members_numbered: bool = True) -> Mapping[str, Type | None]:
    """Return the types of an Avro schema's fields in Spark's JSON form (:mod:`partitions.records.conversions`); None of one that only Spark knows.

    Args:
        schema: as JSON.
        are_members_numbered: whether Spark names the members of a union by their places; if not, only Spark knows the type.
    """
    content = json.loads(schema)
    if not isinstance(content, dict) or content.get("type") != "record":
        return {}
    types = _Types({content["name"]: content}, are_members_numbered)
    return {field["name"]: types.of(field["type"]) for field in content["fields"]}


class _Types:
    """The types of one schema.

    Attributes:
        named: its types with a name that were met so far.
        are_members_numbered: whether Spark names the members of a union by their places.
    """

    def __init__(self, named: dict[str, Any], are_members_numbered: bool) -> None:
        self.named, self.are_members_numbered = named, are_members_numbered

    def of(self, kind: Any) -> Type | None:
        """Return a type in Spark's JSON form; None if only Spark knows it."""
        if isinstance(kind, list):
            members = [member for member in kind if member != "null"]
            return self._of_union(members) if len(members) > 1 else self.of((*members, "null")[0])
        if isinstance(kind, str):
            if kind not in self.named:
                return _PRIMITIVES.get(kind)
            kind = self.named[kind]
        if not isinstance(kind["type"], str):
            return self.of(kind["type"])
        if kind["type"] in _NAMED:
            self.named[kind["name"]] = kind
        logical = kind.get("logicalType")
        if logical == "decimal":
            return f"decimal({kind['precision']},{kind.get('scale', 0)})" if kind["precision"] <= 38 else None
        if logical in _LOGICAL:
            return _LOGICAL[logical]
        if kind["type"] in ("record", "error"):
            return _struct_of({field["name"]: self.of(field["type"]) for field in kind["fields"]})
        if kind["type"] == "array":
            item = self.of(kind["items"])
            return None if item is None else {"type": "array", "elementType": item, "containsNull": True}
        if kind["type"] == "map":
            value = self.of(kind["values"])
            if value is None:
                return None
            return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}
        return {"enum": "string", "fixed": "binary"}.get(kind["type"], self.of(kind["type"]))

    def _of_union(self, members: Sequence[Any]) -> Type | None:
        """The type that Spark reads several types as: the wider of two numbers, else a struct with a field for each."""
        plain = {
            member["type"] if isinstance(member, dict) else member for member in members if _is_plain(member)
        }
        for numbers, wider in ((("int", "long"), "long"), (("float", "double"), "double")):
            if len(members) == 2 and plain == set(numbers):
                return wider
        if not self.are_members_numbered:
            return None
        types = [self.of(member) for member in members]
        return _struct_of({f"member{number}": data_type for number, data_type in enumerate(types)})


def _struct_of(types: Mapping[str, Type | None]) -> Type | None:
    """A struct of these fields; None if the type of one is unknown."""
    if None in types.values():
        return None
    fields = [
        {"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in types.items()
    ]
    return {"type": "struct", "fields": fields}


def _is_plain(member: Any) -> bool:
    """Whether a member of a union is a type without parts."""
    return isinstance(member, str) or (isinstance(member, dict) and isinstance(member["type"], str))


_PRIMITIVES: Mapping[str, str] = {
    "null": VOID,
    "boolean": "boolean",
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
}
_LOGICAL: Mapping[str, str] = {
    "date": "date(any)",
    "time-millis": "time(millis)",
    "time-micros": "time(micros)",
    "timestamp-millis": "timestamp(any)",
    "timestamp-micros": "timestamp(any)",
    "timestamp-nanos": "timestamp(nanos)",
    "local-timestamp-millis": "timestamp_ntz(any)",
    "local-timestamp-micros": "timestamp_ntz(any)",
    "local-timestamp-nanos": "timestamp_ntz(nanos)",
}


@lru_cache(maxsize=64)
def fields_of(schema: str) -> frozenset[FieldPath]:
    """Return all fields of an Avro schema, at any depth, as Spark names them. Of a union of several types none is looked into."""
    named: dict[str, Any] = {}
    return frozenset(_fields((), json.loads(schema), named, ()))


def _fields(path: FieldPath, kind: Any, named: dict[str, Any], above: Collection[str]) -> Iterator[FieldPath]:
    if isinstance(kind, list):
        values = [each for each in kind if each != "null"]
        if len(values) == 1:
            yield from _fields(path, values[0], named, above)
        return
    if isinstance(kind, str):
        kind = named.get(kind, kind)
    if not isinstance(kind, dict):
        return
    if kind["type"] in _NAMED:
        named[kind["name"]] = kind
    if kind["type"] in ("record", "error") and kind["name"] not in above:
        for field in kind["fields"]:
            yield (*path, field["name"])
            yield from _fields((*path, field["name"]), field["type"], named, (*above, kind["name"]))
    elif kind["type"] == "array":
        yield from _fields((*path, ITEM), kind["items"], named, above)
    elif kind["type"] == "map":
        yield from _fields((*path, VALUE), kind["values"], named, above)
    elif isinstance(kind["type"], dict | list):
        yield from _fields(path, kind["type"], named, above)
