"""Avro: files with their own types, and a header that tells them without Spark. Spark's reader comes as a jar of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.conversions import (
    NANOSECONDS,
    is_special_type,
)
from partitions.records.forms import Type
from partitions.records.options import by_lower_name
from resources.connections.places import Place
from resources.sources.files.avro_headers import Header, header_of
from resources.sources.files.avro_schemas import doubled_names, fields_of, own_types, unreadable_field
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import own_struct, with_own_types
from resources.sources.files.failures import bad_document, names_twice, unreadable_type
from resources.sources.files.footers import (
    paths_of,
)
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.formats.typed import TypedFiles, taken_columns, unknown_names
from resources.sources.files.pinned import PinnedSchema
from resources.spark_runtime import AVRO_PACKAGE
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


_MOST_HEADERS = 10_000


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
            if len(self._headers) >= _MOST_HEADERS:
                del self._headers[next(iter(self._headers))]
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
