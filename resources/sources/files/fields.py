"""Names of fields in records: Spark's reader is told the columns that it shall give, and leaves others out without a word (docs/explanation/adr/0012)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from resources.sources.files.footers import doubled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

RECORD = "record"
"""The column of a scan that holds a whole record, or a whole document, as a variant."""


def spelt_in_two_cases(schema: StructType, names: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return two that differ in upper and lower case only, of the fields of a schema at any depth and other names, dotted; None if there are none."""
    from pyspark.sql.types import StructType

    def walk(above: str, kind: DataType) -> Iterator[str]:
        inner = item_type(kind)
        for field in inner.fields if isinstance(inner, StructType) else ():
            yield f"{above}{field.name}"
            yield from walk(f"{above}{field.name}.", field.dataType)

    return doubled([*walk("", schema), *names])


def item_type(data_type: DataType) -> DataType:
    """Return the type of an array's items; another type as it is."""
    from pyspark.sql.types import ArrayType

    return data_type.elementType if isinstance(data_type, ArrayType) else data_type


def names_found(records: DataFrame, path: Column, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return which of these names records have at their top, case-folded, by the path of their file."""
    from pyspark.sql import functions as F

    def keys(value: Column) -> Column:
        return F.map_keys(F.try_variant_get(value, "$", "map<string,variant>"))

    record, wanted = F.col(RECORD), F.array(*[F.lit(name.casefold()) for name in names])
    found = F.coalesce(keys(record), F.flatten(F.transform(_items(record), keys)), _none())
    folded = F.array_intersect(F.transform(found, F.lower), wanted)
    each = records.select(path.alias("path"), F.explode_outer(folded).alias("name"))
    rows = each.groupBy("path").agg(F.collect_set("name").alias("names")).collect()
    return {row["path"]: frozenset(row["names"]) for row in rows}


def _items(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.try_variant_get(value, "$", "array<variant>")


def _none() -> Column:
    from pyspark.sql import functions as F

    return F.array().cast("array<string>")


def is_leaf(data_type: DataType) -> bool:
    """Return whether a type has no parts, and its values are told by one text each."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    return not isinstance(data_type, ArrayType | MapType | StructType | VariantType)
