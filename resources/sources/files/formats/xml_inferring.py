"""Infer the columns of XML: elements and attributes, with the first types that hold all their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.records.forms import TextOptions
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.failures import bad_records_error, case_conflict_error
from resources.sources.files.fields import find_case_conflict
from resources.sources.files.formats.format import CORRUPT, FileColumns, FormatReader
from resources.sources.files.formats.variants import (
    case_sensitive_names,
    columns_of_records,
    struct_of,
    wider_numbers,
)
from resources.sources.files.formats.xml_documents import DocumentCache, broken_record
from resources.sources.files.formats.xml_options import XmlOptions
from resources.sources.files.inferring import type_of_sample, types_of_texts
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.text_values import trim
from resources.sources.files.xml_check import leaf_texts
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class XmlColumns(FileColumns):
    """A finder of the columns of XML records."""

    def __init__(self, form: FormatReader, documents: DocumentCache, options: XmlOptions) -> None:
        """Store the parts; read nothing.

        Args:
            form: the format's reader.
            documents: the parsed documents.
            options: the source's options.
        """
        super().__init__(form)
        self._documents, self._options = documents, options

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of the first file with records, with types that hold their texts in all files.

        A text in a later file alone changes no type, and is refused when the file is checked, as is an element that
        occurs twice where the first file has one.
        """
        from pyspark.sql.types import StructType

        for file in files:
            options = {"inferSchema": "false", "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
            with case_sensitive_names(spark):
                schema = self.infer_by_spark(spark, [file], **options)
            texts = StructType([field for field in schema.fields if field.name != CORRUPT])
            if texts.fields:
                if (spellings := find_case_conflict(texts)) is not None:
                    raise case_conflict_error(file.path, *spellings, None, may_be_ignored=False)
                types = self._types_of_leaves(spark, [file], texts)
                if len(files) > 1:
                    sample = self._types_of_leaves(spark, files, texts)
                    types = {path: type_of_sample(types[path], sample[path]) for path in types}
                self.valueless = [".".join(path) for path, data_type in types.items() if data_type is None]
                known_types = {path: data_type or "string" for path, data_type in types.items()}
                return struct_of(with_types(texts.jsonValue(), (), known_types))
            xml_error = self._documents.document(file).error
            if xml_error is not None:
                raise bad_records_error(
                    file.path, [broken_record(xml_error)], show=self._form.dataflow.show_bad_records
                )
        self._documents.note_missing_tag(files)
        return None

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the column names of each file, from all records."""
        rules = self._options.name_rules
        return {
            file.path: frozenset(
                name.casefold() for name in rules.columns(self._documents.document(file).names)
            )
            for file in files
        }

    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Return the pinned columns plus new ones from records.

        Only loadable files with unknown fields are read.
        """
        checked = check()
        bad = {*checked.bad_files, *(path for path, _ in checked.bad_records)}
        files_with_unknown_fields = [
            file for file in files if file.path in checked.unknown and file.path not in bad
        ]
        return columns_of_records(
            self._form, spark, files_with_unknown_fields, pinned, self._options.names[0]
        )

    def wider_integers(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wide enough integers, from all records."""
        return wider_numbers(self._form, spark, files, pinned)

    def _types_of_leaves(
        self, spark: SparkSession, files: Sequence[SourceFile], texts: StructType
    ) -> Mapping[tuple[str, ...], str | None]:
        """Return the types of texts by the paths of elements and attributes; None without a text."""
        from pyspark.sql import functions as F

        rows = self._form.scan(spark, files, texts, mode="PERMISSIVE")
        leaves = [
            ((field.name, *path), column)
            for field in texts.fields
            for path, column in leaf_texts(F.col(quoted(field.name)), field.dataType)
        ]
        texts_with_values = [
            F.transform(column, lambda text: F.nullif(trim(text), F.lit(""))) for _, column in leaves
        ]
        reading = TextOptions.of(self._form.source.options, inferred=True)
        types = types_of_texts(rows, texts_with_values, self._form.source.options, reading, several=True)
        return dict(zip([path for path, _ in leaves], types, strict=True))


def with_types(data_type: Any, path: tuple[str, ...], types: Mapping[tuple[str, ...], str]) -> Any:
    """Return a type in Spark's JSON form with these leaf types."""
    if isinstance(data_type, str):
        return types.get(path, data_type)
    if data_type["type"] == "struct":
        fields = [
            {**field, "type": with_types(field["type"], (*path, field["name"]), types)}
            for field in data_type["fields"]
        ]
        return {**data_type, "fields": fields}
    return {**data_type, "elementType": with_types(data_type["elementType"], path, types)}
