"""Compare record fields with folders of the same name, which must hold the same value.

See docs/reference/files.md, Exact values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import BadFile
from partitions.path.hive import NULL_FOLDER, folder_value
from partitions.path.source import SourceFile
from partitions.records.conversions import conversion
from partitions.records.judge import Fault
from resources.sources.files.checked import BadRecord
from resources.sources.files.converting import convert_value, own_type, survives_conversion
from resources.sources.files.custom_formats import read_field
from resources.sources.files.failures import bad_document_error, describe_record
from resources.sources.files.first_values import first_values
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.nanoseconds import as_times
from resources.sources.files.paths import folder_column, folder_names, is_value_of_folder
from resources.sources.files.pinned import PinnedSchema
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType


def folder_fields(path: str, pinned: PinnedSchema) -> dict[str, str]:
    """Return the columns that folders of a path name, each with the folder's spelling."""
    spellings = folder_names([path])
    return {name: spellings[name.lower()] for name in pinned.struct.names if name.lower() in spellings}


def differs_from_folder(value: Column, folder: Column, data_type: DataType) -> Column:
    """Return whether a field differs from the folder's text, cast to the column's type.

    False for a field without a value.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import VariantType

    has_value = value.isNotNull()
    if isinstance(data_type, VariantType):
        has_value &= ~F.is_variant_null(value)
    return has_value & ~is_value_of_folder(value, folder, data_type)


def folder_conflict_fault(column: str, folder_name: str, path: str, value: str | None) -> Fault:
    """Return the fault of a field that differs from the folder above its file."""
    text = folder_value(path, folder_name)
    expected, folder = (
        ("no value", f"{folder_name}={NULL_FOLDER}") if text is None else (text, f"{folder_name}={text}")
    )
    return Fault(
        f"field {column}: expected {expected}, the value in the folder {folder}, found another value",
        value,
        hint="if the field and the folder mean two things, rename the folder, or the placeholder in source.path",
    )


@dataclass(frozen=True)
class FolderFields:
    """The fields of JSON records that folders also name.

    Attributes:
        columns: the types of the columns, by name.
        spellings: the folder's spelling, by the column's name.
        path: the column with the path of a row's file.
        options: the options of the reader.
    """

    columns: Mapping[str, DataType]
    spellings: Mapping[str, str]
    path: Column
    options: Mapping[str, str]

    @classmethod
    def of(
        cls, files: Sequence[SourceFile], pinned: PinnedSchema, path: Column, options: Mapping[str, str]
    ) -> FolderFields:
        """Return the fields for files below folders of the same names."""
        spellings = folder_fields(files[0].path, pinned)
        types = {field.name: field.dataType for field in pinned.struct.fields if field.name in spellings}
        return cls(types, spellings, path, options)

    def values(self, records: Column) -> dict[str, Column]:
        """Return, for each folder column, the first field in an array of records that contradicts the folder.

        Each result is a struct of the record's number, from 1, and the field as text; NULL if no field contradicts.
        """
        return {
            f"folder{place}": self._first(records, name, data_type)
            for place, (name, data_type) in enumerate(self.columns.items())
        }

    def first(self, row: Mapping[str, Any]) -> tuple[int, Fault] | None:
        """Return the number and fault of the first record that contradicts its folder; None if there is none."""
        for place, name in enumerate(self.columns):
            if (mismatch := row[f"folder{place}"]) is not None:
                fault = folder_conflict_fault(name, self.spellings[name], row["path"], mismatch["text"])
                return mismatch["number"], fault
        return None

    def _first(self, records: Column, name: str, data_type: DataType) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        folder = folder_column(self.path, self.spellings[name])
        quoted_name = json.dumps(name, ensure_ascii=False)

        def contradicting(record: Column, place: Column) -> Column:
            # JSON may spell a name with \u escapes, too.
            may_have = record.contains(quoted_name) | record.contains("\\")
            is_different = differs_from_folder(
                read_field(record, name, data_type, self.options), folder, data_type
            )
            text = read_field(record, name, StringType(), self.options)
            return F.when(may_have & is_different, F.struct((place + 1).alias("number"), text.alias("text")))

        return F.try_element_at(F.array_compact(F.transform(records, contradicting)), F.lit(1))


def files_with_folder_conflicts(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    pinned: PinnedSchema,
    *,
    show: bool | None,
) -> dict[str, BadFile]:
    """Return the files with a column that contradicts their folder, by path, for typed formats.

    Reads only files with a column that a folder also names, and only such columns.
    """
    fields = {file.path: folder_fields(file.path, pinned) for file in files}
    columns = {field.name: field for field in pinned.struct.fields}
    own = _shared_columns(form, spark, files, fields, pinned)
    groups: dict[tuple[str, ...], list[SourceFile]] = {}
    for file in files:
        if (columns_to_read := own.get(file.path)) is not None:
            key = (columns_to_read.json(), *(fields[file.path][name] for name in columns_to_read.names))
            groups.setdefault(key, []).append(file)
    bad_files: dict[str, BadFile] = {}
    for same_columns in groups.values():
        spellings = fields[same_columns[0].path]
        for group in form.scanner.scan_groups(same_columns):
            columns_to_read, path = own[group[0].path], form.scanner.path_of(group)
            contradicting_texts = [
                _contradicting(
                    columns_to_read[name], columns[name].dataType, folder_column(path, spellings[name])
                )
                for name in columns_to_read.names
            ]
            for bad_path, place, value in first_values(
                form.scan(spark, group, columns_to_read), path, contradicting_texts
            ):
                name = columns_to_read.names[place]
                fault = folder_conflict_fault(name, spellings[name], bad_path, value)
                why = describe_record(BadRecord.of(fault), show=show)
                bad_files.setdefault(bad_path, bad_document_error(bad_path, f"{why} ({fault.hint})"))
    return bad_files


def _shared_columns(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    fields: Mapping[str, Mapping[str, str]],
    pinned: PinnedSchema,
) -> dict[str, StructType]:
    """Return the columns that stand both in a file and in its folders, as they are read, by path.

    Files without such a column are missing.

    Args:
        form: the format's reader.
        spark: a session.
        files: files of the format.
        fields: by path, the columns that folders name, with the folders' spelling.
        pinned: the schema.
    """
    from pyspark.sql.types import StructType

    files_below = [file for file in files if fields[file.path]]
    names = (form.columns.names_of(spark, files_below, pinned.struct.names) or {}) if files_below else {}
    columns = {field.name: field for field in pinned.struct.fields}
    shared_columns = {
        file.path: StructType(
            [columns[name] for name in fields[file.path] if name.casefold() in names.get(file.path, ())]
        )
        for file in files_below
    }
    shared_columns = {
        path: columns_of_both for path, columns_of_both in shared_columns.items() if columns_of_both.fields
    }
    files_below = [file for file in files_below if file.path in shared_columns]
    own = {
        file.path: (form.schemas([file], shared_columns[file.path]) or {}).get(
            file.path, shared_columns[file.path]
        )
        for file in files_below
    }
    file_schemas = form.own_schemas(spark, files_below, pinned.struct) if files_below else {}
    own = {path: _as_written(schema, file_schemas.get(path, schema)) for path, schema in own.items()}
    # A column without a type has no value.
    return {path: schema for path, schema in own.items() if schema.fields}


def _as_written(columns: StructType, own: StructType) -> StructType:
    """Return the columns, with the file's own type if that never converts to the column's.

    Folders can have a text for such a column, too.
    """
    from pyspark.sql.types import StructField, StructType

    file_fields = {field.name.casefold(): field for field in own.fields}

    def written(field: StructField) -> StructField:
        file_field = file_fields.get(field.name.casefold(), field)
        is_foreign = (
            own_type(field) is None
            and own_type(file_field) is None
            and _is_foreign(file_field, field.dataType)
        )
        return StructField(field.name, file_field.dataType) if is_foreign else field

    return StructType([written(field) for field in columns.fields])


def _is_foreign(file_field: StructField, column: DataType) -> bool:
    return conversion(file_field.dataType.jsonValue(), column.jsonValue()) is None


def _contradicting(file_field: StructField, column: DataType, folder: Column) -> Column:
    """Return the text of a value that contradicts the folder; NULL if it does not."""
    from pyspark.sql import functions as F

    value, own = F.col(quoted(file_field.name)), own_type(file_field)
    if own is None and _is_foreign(file_field, column):
        is_different = differs_from_folder(value, folder, file_field.dataType)
    elif own is None:
        is_different = differs_from_folder(as_times(value, file_field.dataType, column), folder, column)
    else:
        is_different = differs_from_folder(convert_value(value, own, column), folder, column)
        if conversion(own, column.jsonValue()) == "checked":
            is_different |= ~survives_conversion(value, own, column)
    return F.when(is_different, F.make_valid_utf8(value.cast("string")))
