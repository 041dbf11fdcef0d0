"""The columns of Avro files, by their headers; Spark tells the types of one file of each header."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.records.conversions import is_special_type
from resources.sources.files.avro_headers import AvroHeaders
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import own_struct
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.formats.typed import TypedColumns, taken_columns
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class AvroColumns(TypedColumns):
    """Finds the columns of records with types of their own."""

    def __init__(self, form: FormatReader, headers: AvroHeaders) -> None:
        """Look at no file yet.

        Args:
            form: reads the files.
            headers: of these.
        """
        super().__init__(form)
        self._headers = headers

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Spark looks at one file only, so files with other schemas are asked for apart."""
        bad = {file: self._headers.fault(file) for file in files}
        sound = [file for file in files if bad[file] is None]
        for error in () if sound else bad.values():
            assert error is not None
            raise error
        groups: dict[str, SourceFile] = {}
        for file in sound:
            groups.setdefault(self._headers.schema(file) or "", file)
        columns = merged(self._columns_of(spark, text, file) for text, file in groups.items())
        return self._form.rules.with_deferred_types(columns.jsonValue())

    def _columns_of(self, spark: SparkSession, text: str, file: SourceFile) -> StructType:
        """The columns of one file: by its header if Spark would take some of them for numbers, else by Spark."""
        own = self._headers.own_types(text) if text else {}
        is_special = any(is_special_type(data_type) for data_type in own.values())
        if is_special and None not in own.values():
            return own_struct(own)
        return nullable(self._form.scan(spark, [file], None).schema)

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the headers, without Spark."""
        written = {
            file.path: self._headers.schema(file) for file in files if self._headers.fault(file) is None
        }
        return {
            path: frozenset(field["name"].casefold() for field in json.loads(text).get("fields", ()))
            for path, text in written.items()
            if text is not None
        }

    @override
    def others(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Read the headers, without Spark; of files with the same columns Spark tells the types of one."""
        groups = self.first_of_each([file for file in files if self._headers.fault(file) is None])
        return taken_columns(self.types_by_header(spark, groups), groups, pinned)

    def first_of_each(self, files: Sequence[SourceFile]) -> dict[str, SourceFile]:
        """Return the first of the files with the same header, by that."""
        groups: dict[str, SourceFile] = {}
        for file in files:
            if (text := self._headers.schema(file)) is not None:
                groups.setdefault(text, file)
        return groups

    def types_by_header(
        self, spark: SparkSession, groups: Mapping[str, SourceFile]
    ) -> Mapping[str, StructType]:
        """Return the columns of files in Spark's types, by what tells their columns."""
        return self._types_of(groups, lambda text, file: self._columns_of(spark, text, file))
