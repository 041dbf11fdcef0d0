"""Build ``_rescued_data``: values without a pinned column, or of another type, as JSON.

See docs/reference/schemas.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partitions.records.conversions import WIDE_RANGE_TYPES
from partitions.records.forms import TextOptions
from partitions.schema_merging import RESCUED_DATA
from partitions.target import ABSENT_COLUMN
from resources.sources.files.absent_fields import absent_names
from resources.sources.files.converting import lies_within_years
from resources.sources.files.exact_members import exact_part, fits_exactly, is_null
from resources.sources.files.paths import is_value_of_folder
from resources.sources.files.text_lines import TEXT
from resources.sources.files.type_conversion import holds_type
from resources.sources.files.written_members import written_members
from resources.sql import any_of, quoted
from resources.tables.row_columns import as_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField, StructType

_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?(?![\s\S])"

_EXACT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Spark's own forms cut times to milliseconds."""

Parse = Callable[["StructField", "StructField"], "Column | None"]
"""Makes a value of the second column of one of the first; None if nothing can."""


class FolderValue(NamedTuple):
    """A pinned column whose value a folder gives; a field of its name with another value is rescued.

    Attributes:
        field: the column.
        text: the folder's value.
    """

    field: StructField
    text: Column


def rescued_columns(
    rows: DataFrame, read: StructType, data: StructType, folders: Sequence[FolderValue], parse: Parse
) -> DataFrame:
    """Return the pinned columns of typed files, and ``_rescued_data`` with the values that do not fit.

    Args:
        rows: the rows of files that have the same columns.
        read: the columns of the files.
        data: the pinned columns.
        folders: the pinned columns that folders give.
        parse: converts a column of another type.
    """
    from pyspark.sql import functions as F

    own = {field.name.casefold(): field for field in read.fields}
    columns: list[Column] = []
    rescued: list[tuple[str, Column]] = []

    def fitting(file_field: StructField, field: StructField) -> Column:
        value = F.col(quoted(file_field.name))
        if holds_type(field.dataType, file_field.dataType):
            own_type = file_field.dataType.typeName()
            if own_type in WIDE_RANGE_TYPES.values():  # a year beyond 9999 is none that a column holds
                value = F.when(lies_within_years(value, own_type), value)
            return as_type(value, file_field.dataType, field.dataType)
        parsed = parse(file_field, field)
        return F.lit(None).cast(field.dataType) if parsed is None else parsed

    for field in data.fields:
        file_field = own.pop(field.name.casefold(), None)
        if file_field is None:
            columns.append(F.lit(None).cast(field.dataType).alias(field.name))
            continue
        fits = fitting(file_field, field)
        columns.append(fits.alias(field.name))
        rescued.append((file_field.name, F.when(fits.isNull(), F.col(quoted(file_field.name)))))
    for field, text in folders:
        if (file_field := own.pop(field.name.casefold(), None)) is not None:
            is_other = ~is_value_of_folder(fitting(file_field, field), text, field.dataType)
            rescued.append((file_field.name, F.when(is_other, F.col(quoted(file_field.name)))))
    rescued += [(field.name, F.col(quoted(field.name))) for field in own.values()]
    return rows.select(*columns, _as_json(rescued).alias(RESCUED_DATA))


def rescued_records(
    texts: DataFrame,
    data: StructType,
    folders: Sequence[FolderValue],
    options: Mapping[str, str],
    *,
    marks_absent: bool = False,
) -> DataFrame:
    """Return the pinned columns of JSON records, and ``_rescued_data`` with the values that do not fit.

    Rescued values keep their spelling and order.

    Args:
        texts: the objects, in the column ``TEXT``.
        data: the pinned columns.
        folders: the pinned columns that folders give.
        options: the reader's options.
        marks_absent: whether rows also get ``ABSENT_COLUMN``, with the columns that their record lacks.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructType

    text = F.ltrim(F.col(TEXT), F.lit("\ufeff"))
    records = texts.where(F.trim(F.regexp_replace(text, r"[\t\r\n]", " ")) != "").withColumn("item", text)
    readable_schema = StructType(
        [_readable(field) for field in [*data.fields, *[folder.field for folder in folders]]]
    )
    # Separate columns: Spark parses each record twice, and not again for each member and column.
    parsed = records.withColumns(
        {
            "parsed": F.from_json("item", readable_schema, {**options, "mode": "PERMISSIVE"}),
            "members": F.try_variant_get(F.parse_json("item"), "$", "map<string,variant>"),
        }
    )
    members = F.col("members")
    written = written_members(F.col("item"))
    data_types = {field.name: field.dataType for field in data.fields}
    reading = TextOptions.of(options)
    rescued = _misfits_as_written(data, folders, members, written, reading)
    columns = [
        exact_part(members, _parsed_value(name, data_type), name, data_type, reading).alias(name)
        for name, data_type in data_types.items()
        if not isinstance(data_type, StringType)
    ]
    columns += [
        _text_as_written(
            F.try_element_at(members, F.lit(name)), F.col("parsed").getField(name), name, written
        ).alias(name)
        for name, data_type in data_types.items()
        if isinstance(data_type, StringType)
    ]
    added = {RESCUED_DATA: rescued}
    if marks_absent:
        added[ABSENT_COLUMN] = absent_names(members, data.names)
    rows = parsed.select(*columns, *[column.alias(name) for name, column in added.items()])
    return rows.select(*map(quoted, data_types), *added)


def _readable(field: StructField) -> StructField:
    """Return a column with text instead of binary, at any depth.

    Spark's parser drops the whole record if a text is not base64.
    """
    from pyspark.sql.types import StructField

    return StructField(field.name, _readable_type(field.dataType))


def _readable_type(data_type: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StringType, StructType

    match data_type:
        case BinaryType():
            return StringType()
        case StructType():
            return StructType([_readable(field) for field in data_type.fields])
        case ArrayType():
            return ArrayType(_readable_type(data_type.elementType))
        case MapType():
            return MapType(data_type.keyType, _readable_type(data_type.valueType))
    return data_type


def _parsed_value(name: str, data_type: DataType) -> Column:
    """Return the value of a column that was read with :func:`_readable`; NULL if it does not fit the type."""
    from pyspark.sql import functions as F

    return _with_binary(F.col("parsed").getField(name), data_type)


def _with_binary(value: Column, data_type: DataType) -> Column:
    """Return a value with binary in place of the texts that stand for it; NULL for one that is not base64."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, BinaryType, MapType, StructType

    if _readable_type(data_type) == data_type:
        return value
    match data_type:
        case BinaryType():
            return F.when(value.rlike(_BASE64), F.unbase64(value))
        case StructType():
            fields = [
                _with_binary(value.getField(field.name), field.dataType).alias(field.name)
                for field in data_type.fields
            ]
            return F.when(value.isNotNull(), F.struct(*fields))
        case ArrayType():
            return F.transform(value, lambda item: _with_binary(item, data_type.elementType))
        case MapType():
            return F.transform_values(value, lambda _, item: _with_binary(item, data_type.valueType))
    return value


def _misfits_as_written(
    data: StructType, folders: Sequence[FolderValue], members: Column, written: Column, reading: TextOptions
) -> Column:
    """Return the members of a record that no pinned column holds, as a JSON object; NULL if all fit.

    A record that is no object is returned whole.

    Args:
        data: the pinned columns, which ``parsed`` holds as Spark has read them.
        folders: the pinned columns that folders give; ``parsed`` holds them, too.
        members: the record's members, by name, as variants.
        written: the same, from :func:`resources.sources.files.written_members.written_members`.
        reading: how Spark reads values.
    """
    from pyspark.sql import functions as F

    names = [*data.names, *(folder.field.name for folder in folders)]

    def fits(value: Column, field: StructField) -> Column:
        return fits_exactly(value, _parsed_value(field.name, field.dataType), field.dataType, reading)

    def is_misfit(name: Column) -> Column:
        value = F.try_element_at(members, name)
        ill_fitting = [(name == field.name) & ~fits(value, field) for field in data.fields]
        contradicting = [
            (name == field.name)
            & ~(
                fits(value, field)
                & is_value_of_folder(_parsed_value(field.name, field.dataType), text, field.dataType)
            )
            for field, text in folders
        ]
        return ~is_null(value) & (~name.isin(*names) | any_of([*ill_fitting, *contradicting]))

    misfits = F.filter(written, lambda member: is_misfit(member["name"]))
    as_members = F.transform(misfits, lambda member: F.concat(member["quoted"], F.lit(":"), member["text"]))
    as_object = F.concat(F.lit("{"), F.array_join(as_members, ","), F.lit("}"))
    no_object = F.when(members.isNull(), F.col("item"))
    has_misfit = F.size(F.filter(F.map_keys(members), is_misfit)) > 0
    return F.coalesce(no_object, F.when(has_misfit, as_object))


def add_folders(rescued: Column, folders: Mapping[str, Column]) -> Column:
    """Add the values of folders to ``_rescued_data``.

    If a rescued field has the name of a folder, the folder's key is ``name=``.
    """
    from pyspark.sql import functions as F

    if not folders:
        return rescued
    names = F.coalesce(F.json_object_keys(rescued), F.array().cast("array<string>"))
    members = [
        F.struct(
            F.when(F.array_contains(names, name), f"{name}=").otherwise(name).alias("name"),
            value.alias("text"),
        )
        for name, value in folders.items()
    ]
    with_values = F.filter(F.array(*members), lambda member: member["text"].isNotNull())
    as_object = F.when(F.size(with_values) > 0, F.to_json(F.map_from_entries(with_values)))
    without_end = F.substr(rescued, F.lit(1), F.length(rescued) - F.lit(1))
    merged = F.concat(without_end, F.lit(","), F.substr(as_object, F.lit(2)))
    return F.coalesce(merged, rescued, as_object)


def _text_as_written(value: Column, parsed: Column, name: str, written: Column) -> Column:
    """Return the value of a text column; numbers and objects as they are spelled in the record.

    Spark's own parser would respell them.
    """
    from pyspark.sql import functions as F

    own = F.filter(written, lambda member: member["name"] == name)
    letters = F.try_element_at(F.transform(own, lambda member: member["text"]), F.lit(1))
    is_text = F.schema_of_variant(value) == "STRING"
    return F.when(~is_null(value), F.when(is_text, parsed).otherwise(letters))


def _as_json(values: list[tuple[str, Column]]) -> Column:
    """Return the values that are not NULL as a JSON object; NULL if there are none."""
    from pyspark.sql import functions as F

    if not values:
        return F.lit(None).cast("string")
    has_any = any_of([value.isNotNull() for _, value in values])
    return F.when(has_any, F.to_json(F.struct(*[value.alias(name) for name, value in values]), _EXACT_TIMES))
