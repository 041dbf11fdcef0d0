"""Decide which types of a pinned schema hold a file's own type, and convert its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from partitions.records.conversions import conversion
from partitions.records.forms import Type
from partitions.schema_types import widens
from resources.sources.files.converting import convert_value, survives_conversion
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructField


def convert_exactly(file_field: StructField, pinned_field: StructField) -> Column | None:
    """Return a value of a file's type as the pinned column's; NULL if it does not fit exactly.

    None if no value of the file's type fits.
    """
    from pyspark.sql import functions as F

    if not _holds_type_by(
        pinned_field.dataType,
        file_field.dataType,
        lambda file_type, pinned_type: conversion(file_type, pinned_type) is not None,
    ):
        return None
    value, own = F.col(quoted(file_field.name)), file_field.dataType.jsonValue()
    return F.when(
        survives_conversion(value, own, pinned_field.dataType),
        convert_value(value, own, pinned_field.dataType),
    )


def holds_type(pinned: DataType, file_type: DataType) -> bool:
    """Return whether a pinned type holds every value of another type."""
    return _holds_type_by(
        pinned,
        file_type,
        lambda file_type, pinned_type: bool(file_type == pinned_type) or widens(file_type, pinned_type),
    )


def _holds_type_by(pinned: DataType, file_type: DataType, fits: Callable[[Type, Type], bool]) -> bool:
    """Return whether a pinned type has all parts of another type, each of a fitting type."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(pinned, StructType) and isinstance(file_type, StructType):
        own = {field.name.casefold(): field.dataType for field in pinned.fields}
        return all(
            field.name.casefold() in own and _holds_type_by(own[field.name.casefold()], field.dataType, fits)
            for field in file_type.fields
        )
    if isinstance(pinned, ArrayType) and isinstance(file_type, ArrayType):
        return _holds_type_by(pinned.elementType, file_type.elementType, fits)
    if isinstance(pinned, MapType) and isinstance(file_type, MapType):
        return pinned.keyType == file_type.keyType and _holds_type_by(
            pinned.valueType, file_type.valueType, fits
        )
    return fits(file_type.jsonValue(), pinned.jsonValue())
