"""Find the columns of Avro files by their headers; Spark gives the types of one file for each header."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.records.conversions import is_special_type
from resources.sources.files.avro_headers import AvroHeaders
from resources.sources.files.converting import struct_of_own_types
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import merge_schemas, nullable
from resources.sources.files.formats.typed import TypedColumns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class AvroColumns(TypedColumns):
    """A finder of the columns of Avro files."""

    def __init__(self, form: FormatReader, headers: AvroHeaders) -> None:
        """Store the parts; read nothing.

        Args:
            form: the format's reader.
            headers: the headers of the files.
        """
        super().__init__(form)
        self._headers = headers

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Return the columns of all files; Spark inspects one file for each distinct schema."""
        bad = {file: self._headers.fault(file) for file in files}
        sound_files = [file for file in files if bad[file] is None]
        for error in () if sound_files else bad.values():
            assert error is not None
            raise error
        groups: dict[str, SourceFile] = {}
        for file in sound_files:
            groups.setdefault(self._headers.schema(file) or "", file)
        columns = merge_schemas(self.columns_of(spark, text, file) for text, file in groups.items())
        return self._form.rules.with_deferred_types(columns.jsonValue())

    @override
    def columns_of(self, spark: SparkSession, text: str, file: SourceFile) -> StructType:
        """Return the columns of one file, from Spark or the header.

        The header is used if Spark would misread some types as numbers.
        """
        own = self._headers.own_types(text) if text else {}
        is_special = any(is_special_type(data_type) for data_type in own.values())
        if is_special and None not in own.values():
            return struct_of_own_types(own)
        return nullable(self._form.scan(spark, [file], None).schema)

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the column names of each file, from its header."""
        written = {
            file.path: self._headers.schema(file) for file in files if self._headers.fault(file) is None
        }
        return {
            path: frozenset(field["name"].casefold() for field in json.loads(text).get("fields", ()))
            for path, text in written.items()
            if text is not None
        }

    @override
    def texts_of(self, files: Sequence[SourceFile]) -> Mapping[str, str]:
        """Return the headers' schemas."""
        schemas = {file.path: self._headers.schema(file) for file in files}
        return {path: text for path, text in schemas.items() if text is not None}

    @override
    def can_be_read(self, file: SourceFile) -> bool:
        """Return whether the header has no fault."""
        return self._headers.fault(file) is None
