"""Check values in formats that options name, which only Spark can read.

See docs/reference/files.md, Exact values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.records.forms import DECIMAL, TextOptions, Type
from partitions.records.judge import Fault, sql_type_name
from resources.sources.files.converting import lies_within_years
from resources.sources.files.formats.format import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_MAX_DIGITS = 38
_GROUPED = r"^[^0-9]*+(?:[0-9]++|[0-9]{1,3}(?:[^0-9][0-9]{2,3})*[^0-9][0-9]{3})(?:[^0-9][0-9]*+)?+(?![\s\S])"
"""An optional sign, digits that may be grouped, and an optional fraction."""


def has_custom_format(data_type: Type, reading: TextOptions) -> bool:
    """Return whether options name the format of a type, or of a type inside it."""
    if not isinstance(data_type, str):
        inner = [field["type"] for field in data_type.get("fields", ())]
        inner += [data_type[part] for part in ("elementType", "valueType") if part in data_type]
        return any(has_custom_format(part, reading) for part in inner)
    if DECIMAL.fullmatch(data_type):
        return reading.own_numbers
    return (
        reading.own_dates if data_type == "date" else reading.own_times and data_type.startswith("timestamp")
    )


@dataclass(frozen=True)
class CustomFormats:
    """The JSON columns whose values have a format that options name.

    Attributes:
        types: the types in Spark's JSON form, by name.
        options: the options of the reader.
    """

    types: Mapping[str, Type]
    options: Mapping[str, str]

    @classmethod
    def of(cls, schema: Mapping[str, Any] | None, options: Mapping[str, str]) -> CustomFormats:
        """Return the columns of a schema in Spark's JSON form; none without a schema."""
        reading, fields = TextOptions.of(options), () if schema is None else schema["fields"]
        return cls(
            {field["name"]: field["type"] for field in fields if has_custom_format(field["type"], reading)},
            options,
        )

    def values(self, records: Column) -> dict[str, Column]:
        """Return, for each column, the first misread value in an array of records; NULL if there is none.

        Each is a struct of the record's number, from 1, and the value as text.
        """
        return {
            f"own{place}": self._first(records, name, json_type)
            for place, (name, json_type) in enumerate(self.types.items())
        }

    def first(self, row: Mapping[str, Any]) -> tuple[int, Fault] | None:
        """Return the number of a record with a misread value, and its fault; None if there is none."""
        for place, (name, json_type) in enumerate(self.types.items()):
            if (misread_value := row[f"own{place}"]) is not None:
                return misread_value["number"], misread_fault(name, json_type, misread_value["text"])
        return None

    def _first(self, records: Column, name: str, json_type: Type) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        def misread_in(record: Column, place: Column) -> Column:
            text = read_field(record, name, StringType(), self.options)
            is_wrong = is_misread(
                lambda data_type: read_field(record, name, data_type, self.options), data_type_of(json_type)
            )
            return F.when(
                text.isNotNull() & is_wrong, F.struct((place + 1).alias("number"), text.alias("text"))
            )

        return F.try_element_at(F.array_compact(F.transform(records, misread_in)), F.lit(1))


def read_field(record: Column, name: str, data_type: DataType, options: Mapping[str, str]) -> Column:
    """Return a field of a JSON record as a type; NULL if Spark cannot read it so."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructType

    schema = StructType().add(name, data_type).add(CORRUPT, StringType())
    permissive = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    read = F.from_json(record, schema, permissive)
    return F.when(read.getField(CORRUPT).isNull(), read.getField(name))


def is_misread(read: Callable[[DataType], Column], data_type: DataType) -> Column:
    """Return whether Spark cannot read a value, or reads a different one; the value must not be NULL.

    Args:
        read: reads the value as a type; NULL if it cannot.
        data_type: the type of the column.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    value, json_type = read(data_type), data_type.jsonValue()
    wide_type = data_type_of(_widen_decimals(json_type))
    fits = value.isNotNull()
    if wide_type != data_type:  # a decimal with a smaller scale would be rounded
        texts = [F.to_json(F.struct(wide.alias("c"))) for wide in (value.cast(wide_type), read(wide_type))]
        fits &= texts[0] == texts[1]
    if isinstance(json_type, str) and DECIMAL.fullmatch(json_type):
        fits &= _is_grouped_as_read(read(StringType()), value)
    if isinstance(json_type, str) and (json_type == "date" or json_type.startswith("timestamp")):
        fits &= lies_within_years(value, json_type)
    return ~F.coalesce(fits, F.lit(False))


def _is_grouped_as_read(text: Column, value: Column) -> Column:
    """Return whether the separators in a number fit the value that was read.

    Java ignores any thousands separator, so a German reads ``1.5`` as 15. Thousands have three digits behind their
    separator, in India two or three. A last group of another length is a fraction.
    """
    from pyspark.sql import functions as F

    digits = F.regexp_replace(text, "[^0-9]+$", "")
    last = F.regexp_extract(digits, "[^0-9]([0-9]+)$", 1)
    integer_digits = F.regexp_replace(
        F.regexp_replace(digits, "[^0-9][0-9]+$", ""), "[^0-9]|^0+(?=[0-9])", ""
    )
    integer_part = F.floor(F.abs(value)).cast("string")
    is_fraction = ~F.length(last).isin(0, 3)
    return digits.rlike(_GROUPED) & (
        ~is_fraction | (F.ltrim(integer_digits, F.lit("0")) == F.ltrim(integer_part, F.lit("0")))
    )


def data_type_of(json_type: Type) -> DataType:
    """Return Spark's type for its JSON form."""
    from pyspark.sql.types import StructType

    field = {"name": "c", "type": json_type, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType


def misread_fault(name: str, data_type: Type, value: str | None) -> Fault:
    """Return the fault of a misread value."""
    option = "locale"
    if not isinstance(data_type, str) or DECIMAL.fullmatch(data_type) is None:
        option = "dateFormat" if data_type == "date" else "timestampFormat"
    why = f"expected {sql_type_name(data_type)} in the format of options.{option}, found other text, or more digits"
    return Fault(f"field {name}: {why}", value)


def _widen_decimals(json_type: Type) -> Type:
    """Return the type with decimals of the largest possible scale."""
    if not isinstance(json_type, str):
        wide = dict(json_type)
        if "fields" in json_type:
            wide["fields"] = [
                {**field, "type": _widen_decimals(field["type"])} for field in json_type["fields"]
            ]
        return wide | {
            part: _widen_decimals(json_type[part])
            for part in ("elementType", "valueType")
            if part in json_type
        }
    match = DECIMAL.fullmatch(json_type)
    if match is None:
        return json_type
    integer_digits = int(match[1]) - int(match[2])
    return f"decimal({_MAX_DIGITS},{_MAX_DIGITS - integer_digits})"
