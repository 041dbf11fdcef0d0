"""Avro files: typed, with a header that is read without Spark. Spark's reader is a separate jar."""

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
from resources.sources.files.avro_schemas import field_paths_of
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import with_own_types
from resources.sources.files.field_paths import field_paths
from resources.sources.files.formats.avro_inferring import AvroColumns
from resources.sources.files.formats.typed import TypedFiles, unknown_names
from resources.sources.files.pinned import PinnedSchema
from resources.spark_runtime import AVRO_PACKAGE
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class AvroFiles(TypedFiles):
    """A reader of Avro files."""

    READER: ClassVar[str] = "avro"
    PACKAGE: ClassVar[str | None] = AVRO_PACKAGE

    columns: AvroColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; read nothing."""
        super().__init__(place, dataflow, staging)
        self._headers = AvroHeaders(place, self.own_options)
        self.columns = AvroColumns(self, self._headers)

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Check the headers; read values only of files whose types differ from the pinned ones."""
        bad = [self._headers.fault(file) for file in files]
        bad_files = {error.path: error for error in bad if error is not None}
        sound_files = [file for file in files if file.path not in bad_files]
        texts = {file.path: self._headers.schema(file) for file in sound_files if file.size}
        types = {path: self._headers.own_types(text) for path, text in texts.items() if text}
        unknown = self._unknown_fields(sound_files, pinned)
        return self._check_sound(spark, files, bad_files, types, unknown, pinned)

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Return the schemas of files with other types than the pinned ones, in the files' own types."""
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
            file_schema = with_own_types(data, own)
            cut = [
                name
                for name, data_type in own.items()
                if isinstance(data_type, str) and data_type in NANOSECONDS
            ]
            if file_schema != data:
                self._note_cut_times(cut)
                schemas[file.path] = file_schema
        return schemas

    def _unknown_fields(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Mapping[str, list[str]]:
        """Return the fields that the schema lacks, by path, from the headers.

        Spark reports a header that cannot be read when it loads the file.
        """
        texts = {file.path: self._headers.schema(file) for file in files if file.size}
        pinned_paths = field_paths(pinned.struct)
        return {
            path: unknown_names(field_paths_of(text), self._headers.own_types(text), pinned_paths)
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
        """Return the columns of each file."""
        types = self.columns.types_of(spark, self.columns.first_files(files))
        return {path: types[text] for path, text in self.columns.texts_of(files).items()}
