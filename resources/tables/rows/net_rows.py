"""Reduce rows that went and rows that came to the rows that really changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.target import RUN_COLUMNS
from resources.spark.frames import with_cached_columns
from resources.sql import quoted
from resources.tables.contract.commit_log import CHANGE, DELETE, INSERT, VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

SIGN = "_strandline_sign"
"""Column with 1 for a row that came, and -1 for a row that went."""

_COUNT, _KEY, _CAME, _WENT, _PART = (
    f"_strandline_{name}" for name in ("count", "key", "came", "went", "part")
)
_MAX_COPIES = 10_000
"""Copies of a row that one step makes: an array of them must fit into memory."""


def net_rows(rows: DataFrame) -> DataFrame:
    """Return the net change of each version as a multiset, with ``CHANGE`` instead of ``SIGN``.

    Two rows are one row if all values are the same, bit by bit; all NaN are one value, and the order of a
    map's entries is no difference. The run columns are no difference either: an inserted row has those of
    a row that came, a deleted row those of a row that went.

    Args:
        rows: rows with ``VERSION`` and ``SIGN``.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    fields = [field for field in rows.schema.fields if field.name not in (VERSION, SIGN)]
    compared = [field for field in fields if field.name.casefold() not in RUN_COLUMNS]
    own = [field.name for field in fields if field.name.casefold() in RUN_COLUMNS]
    names = {field.name: f"{_KEY}{number}" for number, field in enumerate(compared)}
    keys = [_exact(F.col(quoted(field.name)), field.dataType).alias(names[field.name]) for field in compared]
    own_values = F.struct(*[F.col(quoted(name)) for name in own]) if own else F.lit(None).cast("string")
    is_new = F.col(SIGN) > 0
    groups = rows.groupBy(VERSION, *keys).agg(
        F.sum(SIGN).alias(_COUNT),
        F.first(F.when(is_new, own_values), ignorenulls=True).alias(_CAME),
        F.first(F.when(~is_new, own_values), ignorenulls=True).alias(_WENT),
        *[
            F.first(F.col(quoted(field.name))).alias(field.name)
            for field in compared
            if needs_exact(field.dataType)
        ],
    )
    values = [
        _own_value(field.name)
        if field.name in own
        else F.col(quoted(field.name if needs_exact(field.dataType) else names[field.name])).alias(field.name)
        for field in fields
    ]
    change = F.when(F.col(_COUNT) > 0, INSERT).otherwise(DELETE).alias(CHANGE)
    changed = groups.where(F.col(_COUNT) != 0)
    net = _repeated(changed).select(*values, change, F.col(VERSION))
    return with_known_columns(net, StructType(fields), CHANGE, VERSION)


def with_known_columns(rows: DataFrame, columns: StructType, *tags: str) -> DataFrame:
    """Return rows with their columns cached: the given ones, and behind them the tags in their order.

    A Connect server that is asked for them would analyse the whole query, once for each step.
    """
    return with_cached_columns(rows, tagged_columns(columns, *tags))


def tagged_columns(columns: StructType, *tags: str) -> StructType:
    """Return columns with ``VERSION``, ``SIGN`` or ``CHANGE`` behind them."""
    from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

    types = {VERSION: LongType(), SIGN: IntegerType(), CHANGE: StringType()}
    return StructType([*columns.fields, *(StructField(tag, types[tag]) for tag in tags)])


def needs_exact(data_type: DataType) -> bool:
    """Return whether Spark takes different values of a type as one, or cannot group by it."""
    from pyspark.sql.types import (
        ArrayType,
        DoubleType,
        FloatType,
        MapType,
        StringType,
        StructType,
        VariantType,
    )

    if isinstance(data_type, StructType):
        return any(needs_exact(field.dataType) for field in data_type.fields)
    if isinstance(data_type, ArrayType):
        return needs_exact(data_type.elementType)
    if isinstance(data_type, StringType):
        return getattr(data_type, "collation", "UTF8_BINARY") != "UTF8_BINARY"
    return isinstance(data_type, (MapType, FloatType, DoubleType, VariantType))


def _exact(value: Column, data_type: DataType) -> Column:
    """Return a value by which Spark groups exactly equal values: it takes -0.0 as 0.0, and no maps."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

    if not needs_exact(data_type):
        return value
    if isinstance(data_type, StructType):
        inner = [
            _exact(value.getField(field.name), field.dataType).alias(f"f{number}")
            for number, field in enumerate(data_type.fields)
        ]
        return F.when(value.isNotNull(), F.struct(*inner))
    if isinstance(data_type, ArrayType):
        element_type = data_type.elementType
        return F.transform(value, lambda element: _exact(element, element_type))
    if isinstance(data_type, MapType):
        key_type, value_type = data_type.keyType, data_type.valueType

        def entry(item: Column) -> Column:
            return F.struct(
                _exact(item.getField("key"), key_type).alias("k"),
                _exact(item.getField("value"), value_type).alias("v"),
            )

        return F.array_sort(F.transform(F.map_entries(value), entry))
    if isinstance(data_type, VariantType):
        return F.concat(F.schema_of_variant(value), F.lit(" "), F.to_json(value))
    return value.cast("binary" if isinstance(data_type, StringType) else "string")


def _own_value(name: str) -> Column:
    from pyspark.sql import functions as F

    came, went = (F.col(side).getField(name) for side in (_CAME, _WENT))
    return F.when(F.col(_COUNT) > 0, came).otherwise(went).alias(name)


def _repeated(groups: DataFrame) -> DataFrame:
    """Return each group as often as its count says, in two steps: a group may have any number of rows."""
    from pyspark.sql import functions as F

    copies = F.abs(F.col(_COUNT))
    parts = groups.withColumn(
        _PART, F.explode(F.sequence(F.lit(0).cast("long"), F.floor((copies - 1) / _MAX_COPIES)))
    )
    size = F.least(F.lit(_MAX_COPIES).cast("long"), copies - F.col(_PART) * _MAX_COPIES)
    return parts.withColumn(_PART, F.explode(F.sequence(F.lit(1).cast("long"), size)))


def with_tags(rows: DataFrame, file_column: str, tags: Sequence[tuple[str, int, int]]) -> DataFrame:
    """Add ``VERSION`` and ``SIGN`` to rows by their file, instead of the file's name.

    A row of another file fails the query: none may be lost.

    Args:
        rows: rows with the column ``file_column``.
        file_column: name of the column with the file's name.
        tags: name, version and sign of each file; each name once.
    """
    from pyspark.sql import functions as F

    pairs = {(version, sign) for _, version, sign in tags}
    if len(pairs) == 1:
        ((version, sign),) = pairs
        tagged = rows.withColumns({VERSION: F.lit(version).cast("long"), SIGN: F.lit(sign)})
        return tagged.drop(file_column)
    table = rows.sparkSession.createDataFrame(list(tags), f"{file_column} string, {VERSION} long, {SIGN} int")
    message = F.concat(F.lit("expected rows of the files that were asked for, found some of "), file_column)
    checked = F.when(F.col(VERSION).isNull(), F.raise_error(message)).otherwise(F.col(VERSION))
    tagged = rows.join(F.broadcast(table), file_column, "left").withColumn(VERSION, checked)
    return tagged.drop(file_column)
