"""Why a record does not fit, without a value of it."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from resources.sources.files.misfit import misfit_in_line, misfit_in_object

WHO = StructType().add("age", LongType())
SCHEMA = StructType().add("id", LongType()).add("who", WHO).add("all", ArrayType(LongType()))


@pytest.mark.parametrize(
    ("text", "parsed", "why"),
    [
        ('{"id": "s3cret"}', {"id": None}, "field id: expected bigint, found text"),
        ('{"id": {"x": 1}}', {"id": None}, "field id: expected bigint, found an object"),
        ('{"id": true}', {"id": None}, "field id: expected bigint, found true or false"),
        (
            '{"id": 1, "who": {"age": "s3cret"}}',
            {"id": 1, "who": {"age": None}},
            "field who.age: expected bigint, found text",
        ),
        (
            '{"id": 1, "all": [1, "s3cret"]}',
            {"id": 1, "all": [1, None]},
            "field all: expected array<bigint>, found an array",
        ),
        ('["s3cret"]', {}, "expected a JSON object, found an array"),
        (
            '{"id": s3cret}',
            {},
            "expected a JSON object, found text that is none (Expecting value, character 8)",
        ),
        ('{"id": 1}', {"id": 1}, "the record does not parse"),
    ],
)
def test_a_json_record_is_told_by_its_field_and_what_was_found_there(
    text: str, parsed: dict[str, Any], why: str
) -> None:
    assert misfit_in_object(text, parsed, SCHEMA) == why


@pytest.mark.parametrize(
    ("text", "parsed", "why"),
    [
        ('s3cret;"a;b"', {"id": None, "text": "a;b"}, "field id: expected bigint, found other text"),
        ("1;s3cret;2", {"id": 1, "text": "s3cret"}, "expected 2 values, found 3"),
        (";x", {"id": None, "text": "x"}, "the record does not parse"),
    ],
)
def test_a_csv_record_is_told_by_its_column_or_by_how_many_values_it_has(
    text: str, parsed: dict[str, Any], why: str
) -> None:
    schema = StructType().add("id", LongType()).add("text", StringType())
    assert misfit_in_line(text, parsed, schema, ";") == why


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [
        (DoubleType(), "1.234,5", "a number with a decimal comma, which a decimal holds if options.locale"),
        (DoubleType(), "1,2,3", "other text"),
        (DateType(), "28.12.2024", "a date in another form, which options.dateFormat"),
        (TimestampType(), "12/28/2024 10:00", "a date in another form, which options.dateFormat"),
        (DateType(), "soon", "other text"),
    ],
)
def test_a_text_that_an_option_would_read_names_the_option(kind: DataType, text: str, found: str) -> None:
    schema = StructType([StructField("x", kind)])
    assert misfit_in_line(text, {"x": None}, schema, ";").startswith(
        f"field x: expected {kind.simpleString()}, found {found}"
    )
