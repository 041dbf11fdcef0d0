from __future__ import annotations

from dataclasses import dataclass

import pytest

from partitions.errors import SourceError
from partitions.sources.database_types import (
    ColumnType,
    decimal_type,
    mariadb_type,
    postgresql_type,
    readable_types,
)


@dataclass(frozen=True)
class Column:
    name: str
    type: ColumnType


@pytest.mark.parametrize(
    ("precision", "scale", "data_type", "fixed_scale"),
    [
        (10, 2, "decimal(10,2)", True),
        (38, 38, "decimal(38,38)", True),
        (50, 10, "decimal(38,10)", True),
        (65, 0, "decimal(38,0)", True),
        (5, -2, "decimal(7,0)", True),
        (40, -10, "decimal(38,0)", True),
        (3, 5, "decimal(5,5)", True),
        (10, 50, "decimal(38,38)", False),
        (None, 0, "decimal(38,18)", False),
    ],
)
def test_a_decimal_keeps_its_scale(
    precision: int | None, scale: int, data_type: str, fixed_scale: bool
) -> None:
    decided = decimal_type(precision, scale)
    assert (decided.data_type, decided.fixed_scale) == (data_type, fixed_scale)


@pytest.mark.parametrize(
    ("name", "precision", "scale", "form"),
    [
        ("numeric", 10, 2, "number"),
        ("numeric", 38, 38, "number"),
        ("numeric", 39, 0, "text"),
        ("numeric", 5, -2, "text"),
        ("numeric", 3, 5, "text"),
        ("numeric", None, None, "text"),
        ("int8", None, None, "plain"),
        ("text", None, None, "plain"),
        ("timestamptz", None, None, "microseconds"),
        ("money", None, None, "text"),
        ("a type of an extension", None, None, "text"),
        ("bit", 1, None, "flag"),
        ("bit", 8, None, "text"),
    ],
)
def test_postgresql_sends_as_it_is_what_spark_takes_exactly(
    name: str, precision: int | None, scale: int | None, form: str
) -> None:
    assert postgresql_type(name, precision, scale).form == form


@pytest.mark.parametrize(
    ("name", "length", "scale", "unsigned", "data_type", "form"),
    [
        ("tiny", 4, 0, False, "byte", "plain"),
        ("tiny", 1, 0, False, "byte", "whole"),
        ("tiny", 1, 0, True, "short", "whole"),
        ("longlong", 20, 0, True, "decimal(20,0)", "plain"),
        ("bit", 1, 0, True, "boolean", "plain"),
        ("bit", 63, 0, True, "long", "whole"),
        ("bit", 64, 0, True, "decimal(20,0)", "whole"),
        ("float", 12, 31, False, "float", "double"),
        ("newdecimal", 12, 2, False, "decimal(10,2)", "plain"),
        ("newdecimal", 11, 2, True, "decimal(10,2)", "plain"),
        ("newdecimal", 42, 2, False, "decimal(38,2)", "text"),
        ("newdecimal", 66, 0, False, "decimal(38,0)", "text"),
        ("year", 4, 0, True, "integer", "whole"),
    ],
)
def test_mariadb_sends_as_it_is_what_spark_takes_exactly(
    name: str, length: int, scale: int, unsigned: bool, data_type: str, form: str
) -> None:
    decided = mariadb_type(name, length, scale, unsigned=unsigned, binary=True)
    assert (decided.data_type, decided.form) == (data_type, form)


def test_texts_of_mariadb_that_are_bytes_are_bytes() -> None:
    assert mariadb_type("blob", 10, 0, unsigned=False, binary=True).data_type == "binary"
    assert mariadb_type("blob", 10, 0, unsigned=False, binary=False).data_type == "string"


def test_a_column_without_a_type_and_names_that_are_there_twice_are_named() -> None:
    nothing = mariadb_type("null", 0, 0, unsigned=False, binary=True)
    columns = [Column("Id", ColumnType("long")), Column("n", nothing), Column("id", ColumnType("long"))]
    with pytest.raises(
        SourceError, match=r"q: .*found: n has no type.*; the name id occurs 2 times"
    ) as refused:
        readable_types(columns, "q")
    assert refused.value.code == "unreadable_column"


def test_an_array_has_the_type_of_its_elements_as_often_as_it_has_dimensions() -> None:
    inner = {"type": "array", "elementType": "long", "containsNull": True}
    nested = ColumnType("long").as_array(2)
    assert nested.spark_type == {"type": "array", "elementType": inner, "containsNull": True}
    assert nested.expected == "an array of 2 dimensions, each element a value that long holds exactly"
