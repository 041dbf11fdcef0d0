"""Avro: files with their own types, and a header that tells them without Spark. Spark's reader comes as a jar of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.records.conversions import (
    NANOSECONDS,
)
from resources.connections.places import Place
from resources.sources.files.avro_headers import AvroHeaders
from resources.sources.files.avro_schemas import fields_of
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import with_own_types
from resources.sources.files.footers import (
    paths_of,
)
from resources.sources.files.formats.avro_inferring import AvroColumns
from resources.sources.files.formats.typed import TypedFiles, unknown_names
from resources.sources.files.pinned import PinnedSchema
from resources.spark_runtime import AVRO_PACKAGE
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class AvroFiles(TypedFiles):
    """Records with types of their own."""

    READER: ClassVar[str] = "avro"
    PACKAGE: ClassVar[str | None] = AVRO_PACKAGE

    columns: AvroColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Look at no file yet."""
        super().__init__(place, dataflow, staging)
        self._headers = AvroHeaders(place, self.own_options)
        self.columns = AvroColumns(self, self._headers)

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Look at the headers; only of files with columns of other types than the pinned ones values are read."""
        bad = [self._headers.fault(file) for file in files]
        bad_files = {error.path: error for error in bad if error is not None}
        sound = [file for file in files if file.path not in bad_files]
        texts = {file.path: self._headers.schema(file) for file in sound if file.size}
        types = {path: self._headers.own_types(text) for path, text in texts.items() if text}
        unknown = self._unknown_fields(sound, pinned)
        return self._check_sound(spark, files, bad_files, types, unknown, pinned)

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Columns of other types than the pinned ones are read as their own."""
        schemas: dict[str, StructType] = {}
        for file in files:
            text = self._headers.schema(file)
            if text is None or self._headers.fault(file) is not None:
                continue
            own = {
                name.casefold(): data_type
                for name, data_type in self._headers.own_types(text).items()
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

    def _unknown_fields(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Mapping[str, list[str]]:
        """Read the headers, without Spark. A header that does not read Spark tells when the file is loaded."""
        texts = {file.path: self._headers.schema(file) for file in files if file.size}
        pinned_paths = paths_of(pinned.struct)
        return {
            path: unknown_names(fields_of(text), self._headers.own_types(text), pinned_paths)
            for path, text in texts.items()
            if text
        }

    @override
    def own_schemas(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """The columns of each file."""
        types = self.columns.types_by_header(spark, self.columns.first_of_each(files))
        texts = {file.path: self._headers.schema(file) for file in files}
        return {path: types[text] for path, text in texts.items() if text is not None}
