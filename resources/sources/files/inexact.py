"""Find files whose typed values change in the columns' types; only the columns in question are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.conversions import conversion, displayed_type
from partitions.records.forms import Type
from partitions.schema_types import widens
from resources.sources.files.converting import own_type, survives_conversion
from resources.sources.files.failures import inexact_value_error, type_mismatch_error
from resources.sources.files.first_values import first_values
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.scan_groups import group_for_scans
from resources.sources.files.pinned import PinnedSchema
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


def inexact_files(
    form: FormatReader,
    spark: SparkSession,
    files: Sequence[SourceFile],
    pinned: PinnedSchema,
    *,
    show: bool | None,
) -> dict[str, BadFile]:
    """Return the files with a value that its column's type does not hold exactly, by path."""
    from pyspark.sql import functions as F

    bad_files: dict[str, BadFile] = {}
    columns = {field.name: field.dataType for field in pinned.struct.fields}
    for group, schema in group_for_scans(form, files, pinned):
        checked = [
            (field.name, own, columns[field.name])
            for field in schema.fields
            if (own := own_type(field)) is not None
            and conversion(own, columns[field.name].jsonValue()) == "checked"
        ]
        if not checked:
            continue
        inexact = [
            F.when(
                ~survives_conversion(F.col(quoted(name)), own, column),
                F.make_valid_utf8(F.col(quoted(name)).cast("string")),
            )
            for name, own, column in checked
        ]
        rows, path_column = form.scan(spark, group, schema), form.scanner.path_of(group)
        for path, place, value in first_values(rows, path_column, inexact):
            name, own, column = checked[place]
            bad = inexact_value_error(
                path,
                name,
                column.simpleString(),
                displayed_type(own),
                None if show is False else value,
                may_rescue=form.rules.may_rescue,
            )
            bad_files.setdefault(path, bad)
    return bad_files


def files_with_other_types(
    form: FormatReader,
    files: Sequence[SourceFile],
    types: Mapping[str, Mapping[str, Type | None]],
    pinned: PinnedSchema,
) -> dict[str, BadFile]:
    """Return the files with a column whose type never converts to the pinned one, by path.

    Spark reads some of these silently as other values.

    Args:
        form: the format's reader.
        files: files of the format.
        types: the columns' types, by path and name; None for a type that only Spark knows.
        pinned: the schema.
    """
    bad_files: dict[str, BadFile] = {}
    for file in files:
        own = {name.casefold(): data_type for name, data_type in types.get(file.path, {}).items()}
        for field in form.schema_of_file(file, pinned).data.fields:
            file_type = own.get(field.name.casefold())
            if file_type is not None and conversion(file_type, field.dataType.jsonValue()) is None:
                found_type = f"{form.READER.capitalize()}'s type {displayed_type(file_type)}"
                expected_type = field.dataType.simpleString()
                bad = type_mismatch_error(
                    file.path, field.name, expected_type, found_type, may_rescue=form.rules.may_rescue
                )
                bad_files.setdefault(file.path, bad)
    return bad_files


def with_checked_types(own: StructType, pinned: StructType) -> StructType:
    """Return a file's columns, with the pinned type where :func:`inexact_files` checks the values instead."""
    from pyspark.sql.types import StructField, StructType

    columns = {field.name.casefold(): field.dataType for field in pinned.fields}
    fields: list[StructField] = []
    for field in own.fields:
        column = columns.get(field.name.casefold())
        if column is not None and not widens(column.jsonValue(), field.dataType.jsonValue()):
            is_checked = conversion(field.dataType.jsonValue(), column.jsonValue()) == "checked"
            fields.append(StructField(field.name, column) if is_checked else field)
        else:
            fields.append(field)
    return StructType(fields)
