"""Records of an answer: each as it was sent."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.document import DocumentError, parsed, parsed_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
RECORDS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=5)


@given(RECORDS, VALUES, st.sampled_from([None, 2]), st.booleans())
def test_records_and_the_rest_are_what_json_itself_reads(
    records: list[Any], beside: Any, indent: int | None, ascii_only: bool
) -> None:
    text = json.dumps(
        {"before": beside, "data": {"x": beside, "items": records, "y": 1}, "next": beside},
        indent=indent,
        ensure_ascii=ascii_only,
    )
    document = parsed(text, "data.items")
    assert [record.value for record in document.records] == records
    assert [json.loads(record.text) for record in document.records] == records
    assert all("\n" not in record.text for record in document.records)
    assert (document.at("next"), document.at("data.y"), document.at("no.where")) == (beside, 1, None)


def test_numbers_keep_all_their_digits() -> None:
    (record,) = parsed('[{"a": 0.1000000000000000000001, "b": 123456789012345678901234567890}]', None).records
    assert record.text == '{"a": 0.1000000000000000000001, "b": 123456789012345678901234567890}'


@pytest.mark.parametrize(
    ("text", "path", "count"),
    [
        ("[]", None, 0),
        ('{"id": 1}', None, 1),
        ('{"data": null}', "data", 0),
        ('{"data": {"id": 1}}', "data", 1),
        (' \n[ {"id": 1} , {"id": 2} ] \n', None, 2),
    ],
)
def test_no_record_one_record_and_many(text: str, path: str | None, count: int) -> None:
    assert len(parsed(text, path).records) == count


@pytest.mark.parametrize(
    ("text", "path", "message", "broken"),
    [
        ('{"data": [{"id": 1}, {"id"', "data", "expected JSON, found", True),
        ('{"data": [{"id": 1}', "data", "its end at character 19", True),
        ("", "data", "an empty answer", True),
        ("<html>", "data", "expected JSON", True),
        ('{"data": []} x', "data", "more behind its end", True),
        ("[" * 100_000, None, "JSON", True),
        (
            '{"data": {"rows": []}}',
            "data.items",
            "expected records at data.items, found at data only rows",
            False,
        ),
        ('{"error": "no"}', "data.items", "found only error", False),
        ('{"data": 5}', "data.items", "found at data a number", False),
        ("[1]", None, "expected objects as records, found a number as record 1", False),
        ('{"data": [{}, "x"]}', "data", "expected objects as records at data, found text as record 2", False),
        ('{"data": "x"}', "data", "found text as record 1", False),
    ],
)
def test_anything_else_is_told_and_only_a_broken_text_is_worth_asking_again(
    text: str, path: str | None, message: str, broken: bool
) -> None:
    with pytest.raises(DocumentError) as error:
        parsed(text, path)
    assert message in str(error.value)
    assert error.value.broken == broken


def test_lines_are_a_document_each() -> None:
    records = parsed_lines('{"id": 1}\n\n{"id": 2}\n').records
    assert [record.value["id"] for record in records] == [1, 2]


@given(st.text(max_size=30))
def test_no_text_is_more_than_an_error(text: str) -> None:
    with suppress(DocumentError):
        parsed(text, "a.b")
