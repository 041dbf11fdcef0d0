"""Fields of records that the names of folders tell, too: both must say the same value (docs/reference/files.md, Exact values)."""

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
from resources.sources.files.converting import converted, own_type, survives
from resources.sources.files.failures import bad_document, shown_record
from resources.sources.files.first_values import first_values
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.nanoseconds import as_times
from resources.sources.files.own_forms import read_field
from resources.sources.files.paths import folder_column, is_value_of_folder, spellings
from resources.sources.files.pinned import PinnedSchema
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType


def folder_fields(path: str, pinned: PinnedSchema) -> dict[str, str]:
    """Return the columns that folders of a path name, each with the name as it is spelt there."""
    spelt = spellings([path])
    return {name: spelt[name.lower()] for name in pinned.struct.names if name.lower() in spelt}


def contradicts(value: Column, folder: Column, data_type: DataType) -> Column:
    """Return whether a field has another value than the folder, whose text has the column's type; a field without a value has none."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import VariantType

    has_value = value.isNotNull()
    if isinstance(data_type, VariantType):
        has_value &= ~F.is_variant_null(value)
    return has_value & ~is_value_of_folder(value, folder, data_type)


def fault_beside_folder(column: str, spelt: str, path: str, value: str | None) -> Fault:
    """Return what is wrong with a field that has another value than the folder above its file."""
    text = folder_value(path, spelt)
    expected, folder = ("no value", f"{spelt}={NULL_FOLDER}") if text is None else (text, f"{spelt}={text}")
    return Fault(
        f"field {column}: expected {expected}, as the folder {folder} says, found another value",
        value,
        hint="if they are two things, give the folder, or the placeholder in source.path, another name",
    )


@dataclass(frozen=True)
class FolderFields:
    """The fields of JSON records that folders name, too.

    Attributes:
        columns: the types of the columns, by name.
        spelt: how the folder's name is spelt, by the column's name.
        path: the column with the path of a row's file.
        options: of the reader.
    """

    columns: Mapping[str, DataType]
    spelt: Mapping[str, str]
    path: Column
    options: Mapping[str, str]

    @classmethod
    def of(
        cls, files: Sequence[SourceFile], pinned: PinnedSchema, path: Column, options: Mapping[str, str]
    ) -> FolderFields:
        """Return those of files below folders of the same names."""
        spelt = folder_fields(files[0].path, pinned)
        types = {field.name: field.dataType for field in pinned.struct.fields if field.name in spelt}
        return cls(types, spelt, path, options)

    def values(self, records: Column) -> dict[str, Column]:
        """Return for each column the first value in an array of records that is another than the folder's, as text: its number, from 1, and the text; NULL if none is."""
        return {
            f"folder{place}": self._first(records, name, kind)
            for place, (name, kind) in enumerate(self.columns.items())
        }

    def first(self, row: Mapping[str, Any]) -> tuple[int, Fault] | None:
        """Return the number of a record whose field contradicts its folder, and what is wrong with it; None if there is none."""
        for place, name in enumerate(self.columns):
            if (other := row[f"folder{place}"]) is not None:
                fault = fault_beside_folder(name, self.spelt[name], row["path"], other["text"])
                return other["number"], fault
        return None

    def _first(self, records: Column, name: str, kind: DataType) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        folder = folder_column(self.path, self.spelt[name])
        written = json.dumps(name, ensure_ascii=False)

        def contradicting(record: Column, place: Column) -> Column:
            # A name may be written by the numbers of its letters, too.
            may_have = record.contains(written) | record.contains("\\")
            other = contradicts(read_field(record, name, kind, self.options), folder, kind)
            text = read_field(record, name, StringType(), self.options)
            return F.when(may_have & other, F.struct((place + 1).alias("number"), text.alias("text")))

        return F.try_element_at(F.array_compact(F.transform(records, contradicting)), F.lit(1))


def contradicting_files(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    pinned: PinnedSchema,
    *,
    show: bool | None,
) -> dict[str, BadFile]:
    """Return why files with types of their own cannot be loaded for the sake of a column that has another value than their folder, by path.

    Only files that have a column which a folder names are read, and of these only such columns.
    """
    fields = {file.path: folder_fields(file.path, pinned) for file in files}
    columns = {field.name: field for field in pinned.struct.fields}
    own = _columns_of_both(form, spark, files, fields, pinned)
    groups: dict[tuple[str, ...], list[SourceFile]] = {}
    for file in files:
        if (read := own.get(file.path)) is not None:
            key = (read.json(), *(fields[file.path][name] for name in read.names))
            groups.setdefault(key, []).append(file)
    bad_files: dict[str, BadFile] = {}
    for alike in groups.values():
        spelt = fields[alike[0].path]
        for group in form.scanner.together(alike):
            read, path = own[group[0].path], form.scanner.path_of(group)
            others = [
                _contradicting(read[name], columns[name].dataType, folder_column(path, spelt[name]))
                for name in read.names
            ]
            for bad_path, place, value in first_values(form.scan(spark, group, read), path, others):
                name = read.names[place]
                fault = fault_beside_folder(name, spelt[name], bad_path, value)
                why = shown_record(BadRecord.of(fault), show=show)
                bad_files.setdefault(bad_path, bad_document(bad_path, f"{why} ({fault.hint})"))
    return bad_files


def _columns_of_both(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    fields: Mapping[str, Mapping[str, str]],
    pinned: PinnedSchema,
) -> dict[str, StructType]:
    """Return the columns that a file has beside the folder of their name, as they are read, by the paths of files with some.

    Args:
        form: reads the files.
        spark: a session.
        files: of the format.
        fields: the columns that folders name, each as it is spelt there, by path.
        pinned: the schema.
    """
    from pyspark.sql.types import StructType

    below = [file for file in files if fields[file.path]]
    names = (form.columns.names_of(spark, below, pinned.struct.names) or {}) if below else {}
    columns = {field.name: field for field in pinned.struct.fields}
    both = {
        file.path: StructType(
            [columns[name] for name in fields[file.path] if name.casefold() in names.get(file.path, ())]
        )
        for file in below
    }
    both = {path: columns_of_both for path, columns_of_both in both.items() if columns_of_both.fields}
    below = [file for file in below if file.path in both]
    own = {
        file.path: (form.schemas([file], both[file.path]) or {}).get(file.path, both[file.path])
        for file in below
    }
    of_files = form.own_schemas(spark, below, pinned.struct) if below else {}
    own = {path: _as_written(schema, of_files.get(path, schema)) for path, schema in own.items()}
    # A column without a type has no value.
    return {path: schema for path, schema in own.items() if schema.fields}


def _as_written(columns: StructType, own: StructType) -> StructType:
    """Return columns to read, with the file's own types where these never become the column's: folders have texts for them, too."""
    from pyspark.sql.types import StructField, StructType

    of_file = {field.name.casefold(): field for field in own.fields}

    def written(field: StructField) -> StructField:
        other = of_file.get(field.name.casefold(), field)
        is_foreign = (
            own_type(field) is None and own_type(other) is None and _is_foreign(other, field.dataType)
        )
        return StructField(field.name, other.dataType) if is_foreign else field

    return StructType([written(field) for field in columns.fields])


def _is_foreign(read: StructField, column: DataType) -> bool:
    return conversion(read.dataType.jsonValue(), column.jsonValue()) is None


def _contradicting(read: StructField, column: DataType, folder: Column) -> Column:
    """The text of a value that is another than the folder's."""
    from pyspark.sql import functions as F

    value, own = F.col(quoted(read.name)), own_type(read)
    if own is None and _is_foreign(read, column):
        other = contradicts(value, folder, read.dataType)
    elif own is None:
        other = contradicts(as_times(value, read.dataType, column), folder, column)
    else:
        other = contradicts(converted(value, own, column), folder, column)
        if conversion(own, column.jsonValue()) == "checked":
            other |= ~survives(value, own, column)
    return F.when(other, F.make_valid_utf8(value.cast("string")))
