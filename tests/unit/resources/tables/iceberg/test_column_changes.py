"""What ALTER TABLE does before rows with other columns come into an Iceberg table, without Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from partitions.errors import RowsRefused
from partitions.evolution import SchemaMode
from partitions.loads import Append, Load, Scd2
from partitions.schema_merging import RESCUED_DATA
from resources.tables.iceberg.column_changes import EvolvingColumns

_APPEND = Append()
_ID = T.StructField("id", T.IntegerType())


def _of(*fields: T.StructField) -> T.StructType:
    return T.StructType(list(fields))


def _statements(
    table: T.StructType, rows: T.StructType, mode: SchemaMode = "merge", load: Load = _APPEND
) -> list[str]:
    return EvolvingColumns(mode, table, "t").statements(rows, load)


def test_new_columns_and_fields_are_added_where_they_are() -> None:
    point, finer = _of(T.StructField("x", T.LongType())), _of(
        T.StructField("X", T.LongType()), T.StructField("a`b", T.DateType())
    )  # fmt: skip
    for was, becomes, path in (
        (point, finer, "`c`"),
        (T.ArrayType(point), T.ArrayType(finer), "`c`.`element`"),
        (T.MapType(T.StringType(), point), T.MapType(T.StringType(), finer), "`c`.`value`"),
    ):
        rows = _of(
            T.StructField("ID", T.ShortType()), T.StructField("c", becomes), T.StructField("new", finer)
        )
        assert _statements(_of(_ID, T.StructField("c", was)), rows) == [
            f"ADD COLUMN {path}.`a``b` date",
            "ADD COLUMN `new` struct<`X`: bigint, `a``b`: date>",
        ]


@pytest.mark.parametrize(
    ("was", "becomes", "kind"),
    [
        (T.IntegerType(), T.LongType(), "bigint"),
        (T.FloatType(), T.DoubleType(), "double"),
        (T.DecimalType(10, 2), T.DecimalType(12, 2), "decimal(12,2)"),
    ],
)
def test_a_safely_wider_type_is_taken(was: T.DataType, becomes: T.DataType, kind: str) -> None:
    table, rows = (_of(T.StructField("n", each)) for each in (was, becomes))
    assert _statements(table, rows) == [f"ALTER COLUMN `n` TYPE {kind}"]
    assert _statements(rows, table) == []


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        (T.DecimalType(10, 2), T.DecimalType(14, 4), "Iceberg cannot change the digits after the point"),
        (T.IntegerType(), T.DoubleType(), "expected int or a wider type that keeps all values, found double"),
        (T.LongType(), T.StringType(), "expected bigint or a wider type that keeps all values, found string"),
    ],
)
def test_a_type_iceberg_cannot_widen_is_refused(was: T.DataType, becomes: T.DataType, message: str) -> None:
    table, rows = (_of(T.StructField("n", each)) for each in (was, becomes))
    with pytest.raises(RowsRefused, match=message):
        _statements(table, rows)


def test_whole_numbers_of_8_and_16_bits_fit_those_of_32() -> None:
    assert _statements(_of(_ID), _of(T.StructField("id", T.ByteType()))) == []


def test_a_table_in_mode_rescue_gets_the_column_of_what_does_not_fit_and_no_other() -> None:
    rows = _of(_ID, T.StructField("more", T.StringType()), T.StructField(RESCUED_DATA, T.StringType()))
    assert _statements(_of(_ID), rows, "rescue") == [f"ADD COLUMN `{RESCUED_DATA}` string"]


def test_the_ends_of_versions_are_as_wide_as_the_time_that_they_are_taken_from() -> None:
    ends = [T.StructField(name, T.IntegerType()) for name in ("_valid_from", "_valid_to")]
    table = _of(
        _ID, T.StructField("since", T.IntegerType()), *ends, T.StructField("_is_current", T.BooleanType())
    )
    load = Scd2(("id",), "Since")
    assert _statements(table, _of(_ID, T.StructField("since", T.IntegerType())), load=load) == []
    assert _statements(table, _of(_ID, T.StructField("since", T.LongType())), load=load) == [
        f"ALTER COLUMN `{name}` TYPE bigint" for name in ("since", "_valid_from", "_valid_to")
    ]
