"""What the beginning of a file tells of its columns: the types that a first run gives them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.ddl import ddl_name, parse_ddl
from partitions.records.first_types import (
    FirstTypes,
    UnclearColumns,
    merge_first_types,
    type_of_texts,
    types_of_csv,
    types_of_document,
    types_of_lines,
)


@pytest.mark.parametrize(
    "text", ["007", "+49", "+5", "1D", "09:15", "3E5", "1_000", "0x1F", "2024-1-1", " 5", "x"]
)
def test_what_only_looks_like_a_number_or_a_time_is_text(text: str) -> None:
    assert type_of_texts(["1", text]) == type_of_texts([text]) == "string"


@pytest.mark.parametrize(
    ("texts", "data_type"),
    [
        ([], "string"),
        (["", ""], "string"),
        (["1", "", "-20"], "integer"),
        (["1", "3000000000"], "long"),
        (["1", "9" * 25], "decimal(25,0)"),
        (["1", "9" * 39], "string"),
        (["1", "1.5", "3.5E5"], "double"),
        (["true", "FALSE"], "boolean"),
        (["2024-01-01"], "date"),
        (["2024-01-01", "2024-01-01T10:00:00Z"], "timestamp"),
    ],
)
def test_a_type_comes_from_all_values(texts: list[str], data_type: str) -> None:
    assert type_of_texts(texts) == data_type


def _ddl(types: FirstTypes) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in types.columns)


def test_fields_without_a_value_have_no_type_yet() -> None:
    types = types_of_lines(
        '{"id": 1, "x": null, "l": [], "o": {}}\n\n{"id": 2.5, "l": [null, {"a": "07", "b": null}]}\n'
    )
    assert (_ddl(types), types.valueless) == ("id double, l array<struct<a: string>>", ["o", "x"])


def test_numbers_keep_all_digits_and_different_values_are_text() -> None:
    document = '[{"a": 9223372036854775807, "b": 9223372036854775808, "c": 1, "d": true}, {"a": 1, "b": 1, "c": "x", "d": 1}]'
    assert _ddl(types_of_document(document)) == "a long, b decimal(20,0), c string, d string"


@pytest.mark.parametrize(
    ("read", "text", "why"),
    [
        (types_of_document, "null", "it is null, expected an object"),
        (types_of_document, "[1,2]", "element 1 of its array is a number, expected an object"),
        (types_of_document, '"x"', "it is text, expected an object"),
        (types_of_document, " ", "it holds blank lines alone"),
        (types_of_document, "[]", "it holds no record"),
        (types_of_document, "[" * 200_000 + "]" * 200_000, "it is nested more than 30 levels deep"),
        (types_of_document, '{"a":' * 500 + "1" + "}" * 500, "it is nested more than 30 levels deep"),
        (types_of_document, '[{"a": ' + "9" * 6000 + "}]", "a number has 6,000 digits, and Spark reads 1,000 at most"),
        (types_of_document, '{"' + "k" * 60_000 + '": 1}', "it has a name of 60,000 letters, and Spark reads 50,000 at most"),
        (types_of_document, '[{"id": 1, "id": 2}]', 'it is not complete JSON: the name "id" occurs twice in an object'),
        (types_of_document, "[x]", "it is not complete JSON: a value is missing at character 2"),
        (types_of_lines, "x", "its line 1 is not complete JSON: a value is missing at character 1"),
        (types_of_document, '{"o": {"id": 1, "Id": 2}}', 'its field "o" names "id" and "Id", which are one column'),
        (types_of_lines, '{"a": 1}\nnull\n', "its line 2 holds null, expected an object"),
        (types_of_lines, '{"a":' * 50_000, "its line 1 is nested more than 30 levels deep"),
        (types_of_lines, '{"": 1}', 'it has a name that is empty, or cannot be printed: ""'),
        (lambda text: types_of_csv(text, ","), "\n\n", "it holds blank lines alone"),
        (lambda text: types_of_csv(text, ","), "a,b\n1\n", "its record 2 has 1 value, its header 2"),
        (lambda text: types_of_csv(text, ","), 'a\n"1\n2"\n', "a value of its record 2 spans several lines: set options: {multiLine: true}"),
        (lambda text: types_of_csv(text, ","), 'a\n"1\n', "its records do not read as CSV: unexpected end of data"),
        (lambda text: types_of_csv(text, ","), "id,ID\n", 'its header names "id" and "ID", which are one column'),
    ],
)  # fmt: skip
def test_what_tells_no_columns_is_named(read: Callable[[str], FirstTypes], text: str, why: str) -> None:
    with pytest.raises(UnclearColumns) as caught:
        read(text)
    assert str(caught.value) == why


def test_a_header_alone_names_columns_of_text() -> None:
    assert _ddl(types_of_csv("id,name", ",")) == "id string, name string"


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abA `,>", min_size=1), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(records=st.lists(_values, max_size=4))
def test_any_values_have_types_that_ddl_reads_or_a_reason(records: list[Any]) -> None:
    for read, text in (
        (types_of_document, json.dumps(records)),
        (types_of_lines, "\n".join(map(json.dumps, records))),
    ):
        with suppress(UnclearColumns):
            columns = read(text).columns
            ddl = ", ".join(f"{ddl_name(name)} {kind}" for name, kind in columns)
            assert [column.name for column in parse_ddl(ddl or "id int")] == [
                name for name, _ in columns or [("id", "int")]
            ]


@given(text=st.text())
def test_any_text_has_types_or_a_reason(text: str) -> None:
    for read in (types_of_document, types_of_lines, lambda text: types_of_csv(text, ",")):
        with suppress(UnclearColumns):
            assert read(text) is not None


def test_columns_of_several_csv_files_have_the_widest_type_and_all_names() -> None:
    files = [
        "id,amount,day\n1,2,2026-01-01\n",
        "id,day,note\n3000000000,2026-01-02T03:04:05,x\n",
        "id,amount\n2,2.5\n",
    ]
    merged = merge_first_types([types_of_csv(text, ",") for text in files])
    assert merged.columns == [
        ("id", "long"),
        ("amount", "double"),
        ("day", "timestamp"),
        ("note", "string"),
    ]


def test_fields_of_several_json_files_are_merged_inside_structs_too() -> None:
    files = [
        '{"id": 1, "at": {"x": 1}, "later": null}\n',
        '{"id": 2.5, "at": {"y": "a"}}\n',
        '{"later": true}\n',
    ]
    merged = merge_first_types([types_of_lines(text) for text in files])
    assert merged.columns == [("at", "struct<x: long, y: string>"), ("id", "double"), ("later", "boolean")]
    assert list(merged.valueless) == []
