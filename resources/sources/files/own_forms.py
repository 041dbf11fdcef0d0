"""Values in forms that options name, which only Spark reads: whether their column holds them exactly (docs/reference/files.md, Exact values)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.records.forms import DECIMAL, Reading, Type
from partitions.records.judge import Fault, shown
from resources.sources.files.converting import lies_within_years
from resources.sources.files.formats.format import CORRUPT

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_MOST_DIGITS = 38
_GROUPED = r"^[^0-9]*+(?:[0-9]++|[0-9]{1,3}(?:[^0-9][0-9]{2,3})*[^0-9][0-9]{3})(?:[^0-9][0-9]*+)?+(?![\s\S])"
"""Digits, perhaps in groups, perhaps with a fraction, and a sign before them."""


def has_own_form(data_type: Type, reading: Reading) -> bool:
    """Return whether a value of a type, or one at any depth of it, stands in a form that options name."""
    if not isinstance(data_type, str):
        inner = [field["type"] for field in data_type.get("fields", ())]
        inner += [data_type[part] for part in ("elementType", "valueType") if part in data_type]
        return any(has_own_form(part, reading) for part in inner)
    if DECIMAL.fullmatch(data_type):
        return reading.own_numbers
    return (
        reading.own_dates if data_type == "date" else reading.own_times and data_type.startswith("timestamp")
    )


@dataclass(frozen=True)
class OwnForms:
    """The columns of JSON whose values stand in forms that options name.

    Attributes:
        types: their types in Spark's JSON form, by name.
        options: of the reader.
    """

    types: Mapping[str, Type]
    options: Mapping[str, str]

    @classmethod
    def of(cls, schema: Mapping[str, Any] | None, options: Mapping[str, str]) -> OwnForms:
        """Return those of a schema in Spark's JSON form; of none without one."""
        reading, fields = Reading.of(options), () if schema is None else schema["fields"]
        return cls(
            {field["name"]: field["type"] for field in fields if has_own_form(field["type"], reading)},
            options,
        )

    def values(self, records: Column) -> dict[str, Column]:
        """Return for each column what is misread first in an array of records, each as text: its number, from 1, and the text; NULL if all is read."""
        return {
            f"own{place}": self._first(records, name, kind)
            for place, (name, kind) in enumerate(self.types.items())
        }

    def first(self, row: Mapping[str, Any]) -> tuple[int, Fault] | None:
        """Return the number of a record with a value that is misread, and what is wrong with it; None if there is none."""
        for place, (name, kind) in enumerate(self.types.items()):
            if (misread_value := row[f"own{place}"]) is not None:
                return misread_value["number"], fault(name, kind, misread_value["text"])
        return None

    def _first(self, records: Column, name: str, kind: Type) -> Column:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType

        def misread_in(record: Column, place: Column) -> Column:
            text = read_field(record, name, StringType(), self.options)
            wrong = misread(
                lambda data_type: read_field(record, name, data_type, self.options), data_type_of(kind)
            )
            return F.when(text.isNotNull() & wrong, F.struct((place + 1).alias("number"), text.alias("text")))

        return F.try_element_at(F.array_compact(F.transform(records, misread_in)), F.lit(1))


def read_field(record: Column, name: str, data_type: DataType, options: Mapping[str, str]) -> Column:
    """Return a field of a JSON record as a type; NULL if Spark cannot read it as one."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructType

    schema = StructType().add(name, data_type).add(CORRUPT, StringType())
    permissive = {**options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    read = F.from_json(record, schema, permissive)
    return F.when(read.getField(CORRUPT).isNull(), read.getField(name))


def misread(read: Callable[[DataType], Column], data_type: DataType) -> Column:
    """Return whether Spark does not read a value, or reads another one; it must be there.

    Args:
        read: reads it as a type; NULL if it cannot.
        data_type: of its column.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    value, kind = read(data_type), data_type.jsonValue()
    wide_type = data_type_of(_wide(kind))
    fits = value.isNotNull()
    if wide_type != data_type:  # a decimal with fewer places is rounded
        texts = [F.to_json(F.struct(wide.alias("c"))) for wide in (value.cast(wide_type), read(wide_type))]
        fits &= texts[0] == texts[1]
    if isinstance(kind, str) and DECIMAL.fullmatch(kind):
        fits &= _is_grouped_as_read(read(StringType()), value)
    if isinstance(kind, str) and (kind == "date" or kind.startswith("timestamp")):
        fits &= lies_within_years(value, kind)
    return ~F.coalesce(fits, F.lit(False))


def _is_grouped_as_read(text: Column, value: Column) -> Column:
    """Return whether the signs between the digits of a number can mean its value: Java takes any sign of thousands for nothing, so ``1.5`` is 15 to a German.

    Thousands have three digits behind their sign, in India two or three; what has another number of digits behind its last sign is a fraction.
    """
    from pyspark.sql import functions as F

    digits = F.regexp_replace(text, "[^0-9]+$", "")
    last = F.regexp_extract(digits, "[^0-9]([0-9]+)$", 1)
    before = F.regexp_replace(F.regexp_replace(digits, "[^0-9][0-9]+$", ""), "[^0-9]|^0+(?=[0-9])", "")
    whole = F.floor(F.abs(value)).cast("string")
    is_fraction = ~F.length(last).isin(0, 3)
    return digits.rlike(_GROUPED) & (
        ~is_fraction | (F.ltrim(before, F.lit("0")) == F.ltrim(whole, F.lit("0")))
    )


def data_type_of(kind: Type) -> DataType:
    """Return a type in Spark's JSON form as Spark's own."""
    from pyspark.sql.types import StructType

    field = {"name": "c", "type": kind, "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]}).fields[0].dataType


def fault(name: str, data_type: Type, value: str | None) -> Fault:
    """Return what is wrong with a value that is misread."""
    option = "locale"
    if not isinstance(data_type, str) or DECIMAL.fullmatch(data_type) is None:
        option = "dateFormat" if data_type == "date" else "timestampFormat"
    why = (
        f"expected {shown(data_type)} in the form of options.{option}, found other text, or digits beyond it"
    )
    return Fault(f"field {name}: {why}", value)


def _wide(kind: Type) -> Type:
    """The type with decimals of as many places behind the point as there may be."""
    if not isinstance(kind, str):
        wide = dict(kind)
        if "fields" in kind:
            wide["fields"] = [{**field, "type": _wide(field["type"])} for field in kind["fields"]]
        return wide | {part: _wide(kind[part]) for part in ("elementType", "valueType") if part in kind}
    match = DECIMAL.fullmatch(kind)
    if match is None:
        return kind
    before = int(match[1]) - int(match[2])
    return f"decimal({_MOST_DIGITS},{_MOST_DIGITS - before})"
