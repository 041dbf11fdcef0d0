"""Avro: files with their own types, and a header that tells them without Spark. Spark's reader comes as a jar of its own."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from resources.places import Place
from resources.sources.files.footers import ITEM, VALUE, FieldPath, paths_of, unknown_columns
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.nanoseconds import shown
from resources.sources.files.pinned import PinnedSchema
from resources.spark_runtime import AVRO_PACKAGE
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_HEAD = 64 * 1024
_NAMED = ("record", "error", "enum", "fixed")


class AvroFiles(FormatReader):
    """Records with types of their own. A file reads, or it does not: it has no bad records."""

    READER: ClassVar[str] = "avro"
    PACKAGE: ClassVar[str | None] = AVRO_PACKAGE

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Look at no file yet."""
        super().__init__(place, dataflow, staging)
        self._types: dict[str, StructType] = {}

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Spark looks at one file only, so files with other schemas are asked for apart."""
        groups: dict[str, list[SourceFile]] = {}
        for file in files:
            groups.setdefault(writer_schema(self.place, file) or "", []).append(file)
        return merged(
            {group[0].path: nullable(self.scan(spark, group[:1], None).schema) for group in groups.values()}
        )

    def unknown_fields(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
    ) -> Mapping[str, list[str]]:
        """Read the headers, without Spark. A header that does not read Spark tells when the file is loaded."""
        known = paths_of(pinned.struct)
        unknown: dict[str, list[str]] = {}
        for file in files:
            text = writer_schema(self.place, file) if file.size else None
            names = unknown_columns(fields_of(text), known) if text else ()
            if names:
                unknown[file.path] = [shown(name) for name in names]
        return unknown

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the headers, without Spark."""
        written = {file.path: writer_schema(self.place, file) for file in files}
        return {
            path: frozenset(field["name"].casefold() for field in json.loads(text).get("fields", ()))
            for path, text in written.items()
            if text is not None
        }

    def other_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, StructType]:
        """Read the headers, without Spark; of files with the same columns Spark tells the types of one."""
        groups = self._first_of_each(files)
        types = self._types_of(spark, groups)
        return {file.path: types[text] for text, file in groups.items()}

    def own_schemas(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """The columns of each file."""
        types = self._types_of(spark, self._first_of_each(files))
        texts = {file.path: writer_schema(self.place, file) for file in files}
        return {path: types[text] for path, text in texts.items() if text is not None}

    def _first_of_each(self, files: Sequence[SourceFile]) -> dict[str, SourceFile]:
        """The first of the files with the same header, by that."""
        groups: dict[str, SourceFile] = {}
        for file in files:
            if (text := writer_schema(self.place, file)) is not None:
                groups.setdefault(text, file)
        return groups

    def _types_of(self, spark: SparkSession, groups: Mapping[str, SourceFile]) -> Mapping[str, StructType]:
        """The columns of some files in Spark's types; those of the files before are forgotten."""
        known = self._types
        self._types = {
            text: known.get(text) or nullable(self.scan(spark, [file], None).schema)
            for text, file in groups.items()
        }
        return self._types


def writer_schema(place: Place, file: SourceFile) -> str | None:
    """Return the schema in a file's header, as JSON; None if the header does not read."""
    import fastavro
    from obstore.exceptions import BaseError

    size = _HEAD
    while True:
        try:
            return json.dumps(fastavro.reader(io.BytesIO(_head(place, file, size))).writer_schema)
        except (OSError, BaseError, LookupError, TypeError):
            return None
        except (ValueError, EOFError):  # no header; or a longer one
            if size >= file.size:
                return None
            size *= 8


def _head(place: Place, file: SourceFile, size: int) -> bytes:
    if place.local is None:
        return bytes(place.store.get_range(file.path, start=0, end=min(size, file.size)))
    with (place.local / file.path).open("rb") as opened:
        return opened.read(size)


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
