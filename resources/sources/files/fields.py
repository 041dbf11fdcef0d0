"""Compare the field names of records with a schema (docs/explanation/adr/0012).

Spark silently drops fields that it is not asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from resources.sources.files.footers import find_doubled_name

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

RECORD = "record"
"""The column of a scan that holds a whole record, or a whole document, as a variant."""


def find_case_conflict(schema: StructType, names: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return two dotted names that differ in case only; None if there are none.

    Compares the fields of a schema at any depth, and further names.
    """
    from pyspark.sql.types import StructType

    def walk(prefix: str, data_type: DataType) -> Iterator[str]:
        inner = item_type(data_type)
        for field in inner.fields if isinstance(inner, StructType) else ():
            yield f"{prefix}{field.name}"
            yield from walk(f"{prefix}{field.name}.", field.dataType)

    return find_doubled_name([*walk("", schema), *names])


def item_type(data_type: DataType) -> DataType:
    """Return the type of an array's items; any other type unchanged."""
    from pyspark.sql.types import ArrayType

    return data_type.elementType if isinstance(data_type, ArrayType) else data_type


def find_top_level_names(records: DataFrame, path: Column, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the names, of a given list, that records have at their top level: case-folded, by file path."""
    from pyspark.sql import functions as F

    def keys(value: Column) -> Column:
        return F.map_keys(F.try_variant_get(value, "$", "map<string,variant>"))

    record, names_to_find = F.col(RECORD), F.array(*[F.lit(name.casefold()) for name in names])
    top_names = F.coalesce(keys(record), F.flatten(F.transform(_items(record), keys)), _none())
    folded = F.array_intersect(F.transform(top_names, F.lower), names_to_find)
    names_by_record = records.select(path.alias("path"), F.explode_outer(folded).alias("name"))
    rows = names_by_record.groupBy("path").agg(F.collect_set("name").alias("names")).collect()
    return {row["path"]: frozenset(row["names"]) for row in rows}


def _items(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.try_variant_get(value, "$", "array<variant>")


def _none() -> Column:
    from pyspark.sql import functions as F

    return F.array().cast("array<string>")


def is_leaf(data_type: DataType) -> bool:
    """Return whether a type has no parts, so that one text tells a value."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    return not isinstance(data_type, ArrayType | MapType | StructType | VariantType)
