"""Fields that stand in JSON or XML and that a schema lacks: Spark's reader is told the columns that it shall give, and leaves others out without a word.

Every record is parsed a second time, as a variant, which shows all its names; beside the parse in the same scan it costs more, not less
(docs/adr/0012). Names are compared at any depth of structs, arrays and maps that the schema knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from resources.sources.files.footers import doubled

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


class Strays(NamedTuple):
    """What a file has that a schema does not take.

    Attributes:
        names: of the fields of a record that it lacks, dotted.
        nils: elements of a record that ``xsi:nil`` makes none, though their column is a text, which would be an empty one; dotted.
    """

    names: Sequence[str]
    nils: Sequence[str] = ()


RECORD = "record"
"""The column of a scan that holds a whole record, or a whole document, as a variant."""

_HOLLOW = r"^(?:(?:ARRAY|OBJECT)<|`?[^<>`:]*`?: |, |>)*$"
"""The type of an object without any value, such as ``OBJECT<>``. An inferred schema has no such field: there is nothing to infer."""


@dataclass(frozen=True)
class _Look:
    """What is looked for.

    Attributes:
        prefix: of the names of attributes; if it is empty, they are not told from elements.
        value_tag: the name of the text beside attributes.
        exact: whether objects without a value are told apart, too.
    """

    prefix: str
    value_tag: str
    exact: bool

    @property
    def no_fields(self) -> str:
        """The pattern of names that stand for no value of a record."""
        return f"^{re.escape(self.prefix)}(?:xmlns(?:$|:)|xsi:)"

    @property
    def nil(self) -> str:
        """The name of the attribute that says of an element that it has no value."""
        return f"{self.prefix}xsi:nil"


def unknown_fields(
    records: DataFrame, schema: StructType, path: Column, prefix: str, value_tag: str
) -> dict[str, Strays]:
    """What a schema does not take of each file that has some of it, by the path of the file.

    Args:
        records: with the column ``RECORD``.
        schema: of all columns.
        path: of a record's file.
        prefix: of the names of attributes. Declarations of namespaces, and ``xsi:type`` and its like, are no fields.
        value_tag: the name of the text beside attributes.
    """
    from pyspark.sql import functions as F

    record = F.col(RECORD)
    exact, hasty = (_Look(prefix, value_tag, exact) for exact in (True, False))
    # Objects without a value are told apart in few records only: functions over arrays are slow.
    suspect = records.where(F.size(_in_document(record, schema, hasty)) > 0)
    rows = suspect.select(path.alias("path"), _in_document(record, schema, exact).alias("names"))

    def least(is_nil: bool) -> Column:
        kept = F.filter("names", lambda name: name.endswith(f".{exact.nil}") == F.lit(is_nil))
        return F.coalesce(F.min(F.when(F.size(kept) > 0, kept)), _none())

    stray = rows.where(F.size("names") > 0).groupBy("path")
    found = stray.agg(least(False).alias("names"), least(True).alias("nils")).collect()
    return {row["path"]: Strays(list(row["names"]), list(row["nils"])) for row in found}


def spelt_in_two_cases(schema: StructType, names: Sequence[str] = ()) -> tuple[str, str] | None:
    """Return two that differ in upper and lower case only, of the fields of a schema at any depth and other names, dotted; None if there are none."""
    from pyspark.sql.types import ArrayType, StructType

    def walk(above: str, kind: DataType) -> Iterator[str]:
        inner = kind.elementType if isinstance(kind, ArrayType) else kind
        for field in inner.fields if isinstance(inner, StructType) else ():
            yield f"{above}{field.name}"
            yield from walk(f"{above}{field.name}.", field.dataType)

    return doubled([*walk("", schema), *names])


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


def _in_document(value: Column, schema: StructType, look: _Look) -> Column:
    """Of an object, or of an array of objects."""
    from pyspark.sql import functions as F

    return F.coalesce(
        _in_object(value, schema, look),
        _in_each(_items(value), schema, look),
        _none(),
    )


def _in_object(value: Column, schema: StructType, look: _Look) -> Column:
    """The unknown names of an object and of all that its known fields hold; NULL if it is no object."""
    from pyspark.sql import functions as F

    members = F.try_variant_get(value, "$", "map<string,variant>")
    unknown = F.array_except(F.map_keys(members), F.array(*[F.lit(name) for name in schema.fieldNames()]))
    unknown = F.filter(unknown, lambda name: ~name.rlike(look.no_fields))
    if look.exact:
        unknown = F.filter(
            unknown, lambda name: ~F.schema_of_variant(F.try_element_at(members, name)).rlike(_HOLLOW)
        )
    parts = [unknown]
    for field in schema.fields:
        if not field.name.startswith(look.prefix) or _has_parts(field.dataType):
            inner = _in_value(F.try_element_at(members, F.lit(field.name)), field.dataType, look)
            parts.append(_below(field.name, inner))
    return F.concat(*parts) if len(parts) > 1 else unknown


def _has_parts(kind: DataType) -> bool:
    from pyspark.sql.types import ArrayType, MapType, StructType

    return isinstance(kind, ArrayType | MapType | StructType)


def _in_value(value: Column, kind: DataType, look: _Look) -> Column:
    """The same of a value of any type; none if it is of another type."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(kind, StructType):
        return F.coalesce(_in_object(value, kind, look), _none())
    if isinstance(kind, ArrayType):
        each = _in_each(_items(value), kind.elementType, look)
        # An element of XML that is there once is no array.
        return F.coalesce(each, _in_value(value, kind.elementType, look), _none())
    if isinstance(kind, MapType):
        values = F.map_values(F.try_variant_get(value, "$", "map<string,variant>"))
        return F.coalesce(_in_each(values, kind.valueType, look), _none())
    if not look.prefix:
        return _none()
    # An element with attributes beside its text is an object, of which the type of a text takes the text alone.
    names = F.map_keys(F.try_variant_get(value, "$", "map<string,variant>"))
    nil = F.lit(look.nil if isinstance(kind, StringType) else None)  # of other types it is NULL, as it says
    attributes = F.filter(
        names,
        lambda name: name.startswith(look.prefix) & (~name.rlike(look.no_fields) | name.eqNullSafe(nil)),
    )
    return F.coalesce(F.filter(attributes, lambda name: name != F.lit(look.value_tag)), _none())


def _in_each(values: Column, kind: DataType, look: _Look) -> Column:
    from pyspark.sql import functions as F

    return F.flatten(F.transform(values, lambda value: _in_value(value, kind, look)))


def _items(value: Column) -> Column:
    from pyspark.sql import functions as F

    return F.try_variant_get(value, "$", "array<variant>")


def _below(name: str, inner: Column) -> Column:
    from pyspark.sql import functions as F

    return F.transform(inner, lambda each: F.concat(F.lit(f"{name}."), each))


def _none() -> Column:
    from pyspark.sql import functions as F

    return F.array().cast("array<string>")
