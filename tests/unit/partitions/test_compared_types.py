"""A delete's condition compares a column of another type only if no value changes."""

from __future__ import annotations

import pytest

from partitions.compared_types import compared_type


@pytest.mark.parametrize(
    ("of_delete", "of_rows", "compared"),
    [
        ("int", "int", "int"),
        ("int", "bigint", "bigint"),
        ("bigint", "smallint", "bigint"),
        ("decimal(10,2)", "decimal(20,2)", "decimal(20,2)"),
        ("decimal(20,4)", "decimal(10,2)", "decimal(20,4)"),
        ("double", "float", "double"),
        ("void", "string", "string"),
        ("string", "void", "string"),
        ("struct<a:int>", "struct<A:bigint,b:string>", "struct<A:bigint,b:string>"),
        ("struct<a:int,b:string>", "struct<b:string>", "struct<b:string>"),
        ("array<struct<a:int>>", "array<struct<a:int,b:map<int,string>>>", "array<struct<a:int,b:map<int,string>>>"),
    ],
)  # fmt: skip
def test_the_wider_type_is_compared_and_nested_ones_as_they_are(
    of_delete: str, of_rows: str, compared: str
) -> None:
    assert compared_type(of_delete, of_rows) == compared


@pytest.mark.parametrize(
    ("of_delete", "of_rows"),
    [
        ("int", "string"),
        ("string", "int"),
        ("int", "double"),
        ("float", "double"),
        ("date", "timestamp"),
        ("timestamp", "date"),
        ("timestamp", "timestamp_ntz"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(10,4)", "decimal(12,2)"),
        ("struct<a:int>", "struct<a:string>"),
        ("struct<a:decimal(10,2),b:int>", "struct<b:string,a:decimal(10,2)>"),
        ("array<int>", "array<string>"),
        ("array<int>", "struct<a:int>"),
        ("int", "array<int>"),
        ("struct<a:map<int,string>>", "struct<a:map<int,date>>"),
    ],
)
def test_no_type_is_compared_if_a_value_may_change_or_match_by_mistake(of_delete: str, of_rows: str) -> None:
    assert compared_type(of_delete, of_rows) is None
