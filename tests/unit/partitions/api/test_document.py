"""Records of an answer: each as it was sent."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.document import DocumentError, parse_document, parse_lines

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
    document = parse_document(text, "data.items")
    assert [record.value for record in document.records] == records
    assert [json.loads(record.text) for record in document.records] == records
    assert all("\n" not in record.text for record in document.records)
    assert (document.at("next"), document.at("data.y"), document.at("no.where")) == (beside, 1, None)


def test_numbers_keep_all_their_digits() -> None:
    (record,) = parse_document(
        '[{"a": 0.1000000000000000000001, "b": 123456789012345678901234567890}]', None
    ).records
    assert record.text == '{"a": 0.1000000000000000000001, "b": 123456789012345678901234567890}'


@pytest.mark.parametrize(
    ("text", "path", "count"),
    [
        ("[]", None, 0),
        ('{"id": 1}', None, 1),
        ('{"data": {"id": 1}}', "data", 1),
        (' \n[ {"id": 1} , {"id": 2} ] \n', None, 2),
    ],
)
def test_no_record_one_record_and_many(text: str, path: str | None, count: int) -> None:
    assert len(parse_document(text, path).records) == count


@pytest.mark.parametrize(
    ("text", "path", "message", "broken"),
    [
        ('{"data": [{"id": 1}, {"id"', "data", "expected JSON, found", True),
        ('{"data": [{"id": 1}', "data", "its end at character 19", True),
        ("", "data", "an empty answer", True),
        ("<html>", "data", "expected JSON", False),
        ("not JSON at all", "data", "expected JSON", False),
        ('{"data": []} x', "data", "more behind its end", False),
        ('{"data": []} {"data": []}', "data", "more behind its end", False),
        ("[" * 100_000, None, "values nested too deeply", False),
        ('{"data": [{"id": tru', "data", "expected JSON", True),
        ('{"data": [{"id": trux', "data", "expected JSON", False),
        ('{"data": [{"id": "\\u12', "data", "expected JSON", True),
        ('{"data": [{"id": "abc', "data", "expected JSON", True),
        ('{"data": [{"id": 1, "id": 2}]}', "data", "each name once in an object, found id twice in record 1", False),
        ('{"data": [{}, {"a": {"b": 1, "b": 1}}]}', "data", "found b twice in record 2", False),
        ('{"data": [], "next": 1, "next": 2}', "data", "found next twice", False),
        ('{"data": [], "meta": {"a": 1, "a": 2}}', "data", "found a twice", False),
        ('{"data": [{"id": 1}], "data": []}', "data", "found data twice", False),
        ('{"data": null}', "data", "expected records at data, found at data null", False),
        ('{"data": null}', "data.items", "expected records at data.items, found at data null", False),
        ("null", None, "expected records, found null", False),
        ('{"data": {"rows": []}}', "data.items", "expected records at data.items, found at data only rows", False),
        ('{"rows": "no"}', "data.items", "found only rows", False),
        ('{"data": 5}', "data.items", "found at data a number", False),
        ("[1]", None, "expected objects as records, found a number as record 1", False),
        ('{"data": [{}, "x"]}', "data", "expected objects as records at data, found text as record 2", False),
        ('{"data": "x"}', "data", "found text as record 1", False),
    ],
)  # fmt: skip
def test_only_broken_texts_are_asked_again(text: str, path: str | None, message: str, broken: bool) -> None:
    with pytest.raises(DocumentError) as error:
        parse_document(text, path)
    assert message in str(error.value)
    assert error.value.is_truncated == broken


@pytest.mark.parametrize(
    ("text", "path"),
    [('{"data": null}', "data"), ("{}", "data"), ('{"data": {"x": 1}}', "data.items"), ("null", None)],
)
def test_nothing_at_the_path_is_no_record_where_so_defined(text: str, path: str | None) -> None:
    assert parse_document(text, path, is_optional=True).records == ()


@pytest.mark.parametrize("text", ['{"data": 5}', '{"data": {"items": 5}}', '{"data": [1]}'])
def test_another_value_on_the_way_to_the_records_stays_an_error(text: str) -> None:
    with pytest.raises(DocumentError):
        parse_document(text, "data.items", is_optional=True)


FAILED = [{"message": "timeout"}]


@pytest.mark.parametrize("value", [FAILED, "no", {"code": 5}, True, 7])
@pytest.mark.parametrize("name", ["errors", "error"])
def test_what_an_answer_says_of_its_failure_beside_the_records_fails_it(name: str, value: Any) -> None:
    texts = [{name: value, "data": {"items": records}} for records in ([], [{"id": 1}], None)]
    texts += [{name: value}, {"data": {"items": [{"id": 1}], name: value}}]
    for text in map(json.dumps, texts):
        with pytest.raises(
            DocumentError, match=f"expected an answer without errors, found at .*{name}"
        ) as error:
            parse_document(text, "data.items", is_optional=True)
        assert not error.value.is_truncated
    with pytest.raises(DocumentError, match="without errors"):
        parse_document(json.dumps({name: value}), None)


@pytest.mark.parametrize("value", [None, "", [], {}, False, 0])
def test_an_empty_field_of_errors_says_nothing(value: Any) -> None:
    assert (
        len(
            parse_document(json.dumps({"errors": value, "error": value, "data": [{"id": 1}]}), "data").records
        )
        == 1
    )


def test_a_definition_names_where_errors_stand_or_that_none_do() -> None:
    text = json.dumps({"errors": FAILED, "meta": {"problems": []}, "data": [{"id": 1, "error": "x"}]})
    assert len(parse_document(text, "data", errors="ignore").records) == 1
    assert len(parse_document(text, "data", errors="meta.problems").records) == 1
    with pytest.raises(DocumentError, match=r"at meta\.problems"):
        parse_document(text.replace('"problems": []', '"problems": [1]'), "data", errors="meta.problems")


def test_an_error_of_a_record_is_its_own() -> None:
    assert len(parse_document('[{"id": 1, "error": "late"}]', None).records) == 1
    assert len(parse_lines('{"id": 1, "error": "late"}').records) == 1
    with pytest.raises(DocumentError, match="without errors"):
        parse_lines('{"id": 1}\n{"error": "late"}', errors="error")


def test_a_line_ends_at_its_end_alone() -> None:
    (record,) = parse_lines('{"id": "a\u2028b\u0085c"}\n').records
    assert record.value == {"id": "a\u2028b\u0085c"}


def test_lines_are_a_document_each() -> None:
    records = parse_lines('{"id": 1}\n\n{"id": 2}\n').records
    assert [record.value["id"] for record in records] == [1, 2]


@given(st.text(max_size=30))
def test_no_text_is_more_than_an_error(text: str) -> None:
    with suppress(DocumentError):
        parse_document(text, "a.b")
