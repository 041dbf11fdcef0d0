"""Schema DDL: accepted and refused as Spark 4.1 accepts and refuses it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from partitions.ddl import RESERVED, Column, DdlError, parse_ddl, round_as_column


@pytest.mark.parametrize(
    "text",
    [
        "a int",
        "a time, b time(3)",
        "a decimal(10,2), b decimal(10), c dec, d numeric(5)",
        "a struct<x: int, y string>, b struct<>",
        "a array<array<int>>, b array <int>, c map<string,int>",
        "a struct<x int comment 'it, is', y array<map<int, string>>>",
        "a varchar(5), b char(3), c character(3)",
        "a interval day to second, b interval, c interval year",
        "a variant, b geometry(4326), c geography(4326), d void",
        "a timestamp without time zone, b timestamp_ntz, c timestamp_ltz, d TIMESTAMP",
        "a string collate UTF8_LCASE",
        "a int not null, b int comment \"z\", c int NOT NULL COMMENT 'x, y'",
        "`a-b` int, `a``b` int, 1a int, _x int, select int",
        "a int -- why\n, b int /* x */",
        "a real, b byte, c tinyint, d short, e bigint, f binary, g boolean, h float",
    ],
)
def test_what_spark_reads_is_accepted(text: str) -> None:
    assert parse_ddl(text)


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("", "the end", "a column as `name type`"),
        ("a", "a without a type", "a column as `name type`, such as a string"),
        ("a: int", ":", "a type"),
        ("a int,", "the end", "a column as `name type`"),
        ("a int b int", "b", "a comma between columns"),
        ("a double precision", "precision", "a comma between columns"),
        ("a array<int", "the end", "> at the end of array<…>"),
        ("a array<int>>", ">", "a comma between columns"),
        ("a map<string>", ">", "two types in map<…>"),
        ("a array", "the end", "< after array"),
        ("a varchar", "varchar without a number", "varchar(n)"),
        ("a decimal(x)", "no number in decimal(…)", "decimal(n)"),
        ("a decimal(10,2", "the end", ") at the end of decimal(…)"),
        ("a int comment x", "x", "the comment's text in quotes"),
        ("a int not", "the end", "NOT NULL"),
        (
            "a struct<x: int not null>",
            "NOT NULL within a struct",
            "NOT NULL for a column, not for a field in it",
        ),
        (
            "a-b int",
            "the character '-'",
            "names in backquotes if they contain other characters than a-z, 0-9 and _",
        ),
        (
            "a `b",
            "the character '`'",
            "names in backquotes if they contain other characters than a-z, 0-9 and _",
        ),
        ("a struct<x: int y: int>", "y", "a comma or > in struct<…>"),
    ],
)
def test_what_spark_refuses_is_refused(text: str, found: str, expected: str) -> None:
    with pytest.raises(DdlError) as refused:
        parse_ddl(text)
    assert (refused.value.actual, refused.value.expected) == (found, expected)


def test_an_unknown_type_names_the_nearest() -> None:
    with pytest.raises(DdlError) as refused:
        parse_ddl("a int, b strng")
    assert (refused.value.actual, refused.value.nearest) == ("the type strng", "string")


def test_a_column_is_there_once_whatever_its_case() -> None:
    with pytest.raises(DdlError, match="the column A again"):
        parse_ddl("a int, b int, A string")


@pytest.mark.parametrize("name", RESERVED)
def test_columns_that_loading_adds_are_reserved(name: str) -> None:
    with pytest.raises(DdlError, match="which loading adds"):
        parse_ddl(f"a int, {name.upper()} string")


def test_columns_have_their_outermost_type() -> None:
    assert parse_ddl("`a b` ARRAY<INT>, c int") == [Column("a b", "array"), Column("c", "int")]


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        ("decimal(10,2)", "1.239", "1.24"),
        ("decimal(10,2)", "1.235", "1.24"),
        ("numeric(10, 2)", "-1.235", "-1.24"),
        ("decimal(38,18)", "1e300", "1e300"),
        ("decimal", "1.5", "2"),
        ("decimal(5)", "2.4", "2"),
        ("double", "1.1", "1.1"),
        ("float", "0.5", "0.5"),
        ("float", "1e300", "1e300"),
        ("float", "1.1", "1.10000002384185791015625"),
    ],
)
def test_a_number_is_compared_as_its_column_holds_it(kind: str, value: str, held: str) -> None:
    (column,) = parse_ddl(f"a {kind}")
    assert round_as_column(Decimal(value), column) == Decimal(held)
