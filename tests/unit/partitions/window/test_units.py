from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, PlanError, SourceError, SourceUnreachable
from partitions.window.secondary_input import SecondaryInput
from partitions.window.units import (
    NO_UNIT,
    check_min_units,
    distinct_identities,
    identity,
    list_units,
    parse_units,
    unit_of,
)

ROWS: list[dict[str, Any]] = [
    {"id": 1, "status": "open", "flag": True},
    {"id": 2, "status": "closed", "flag": False},
    {"id": 3, "status": None, "flag": None},
    {"id": 2, "status": "closed", "flag": True},
]
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)


def _input(**changes: Any) -> SecondaryInput:
    return SecondaryInput.model_validate({"table": "silver/surveys", "fields": ["id"], **changes})


@given(st.dictionaries(st.text(), scalars))
@example({"__dict__": 5})
@example({"__date__": "2026-01-01"})
def test_a_unit_comes_back_from_its_identity_in_value_and_type(unit: dict[str, Any]) -> None:
    found = unit_of(identity(unit))
    assert found == unit
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in unit.items()
    }


def test_an_identity_has_sorted_keys_and_no_spaces() -> None:
    assert identity({"b": "é", "a": 1}) == '{"a":1,"b":"é"}'
    assert identity({}) == NO_UNIT == "{}"


def test_a_value_that_cannot_be_stored_is_no_unit() -> None:
    with pytest.raises(PlanError, match="unit"):
        identity({"a": object()})


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("id1, id2 ,id3", ("id1", "id2", "id3")),
        ('["a", " b ", 1]', ("a", "b", 1)),
        (["a", "a", "b", 1, "1"], ("a", "b", 1, "1")),
        ("a,a", ("a",)),
        ('[{"secondary":"2018"},{"secondary":"2019"}]', ({"secondary": "2018"}, {"secondary": "2019"})),
        ([{"b": 1, "a": None}, {"a": None, "b": 1}, {"b": 1}], ({"b": 1, "a": None}, {"b": 1})),
    ],
)
def test_units_are_comma_text_a_json_array_in_a_text_or_an_array(value: Any, wanted: tuple[Any, ...]) -> None:
    assert parse_units(value) == wanted


@pytest.mark.parametrize(
    "value",
    [
        "",
        "a,,b",
        " ",
        [],
        ["a", " "],
        "[]",
        "[1",
        None,
        5,
        [None],
        [["a"]],
        {"a": 1},
        [{}],
        [{"a": ""}],
        [{"a": None}],
        [{"a": [1]}],
        [{"": "x"}],
        "[NaN]",
        '[{"a": NaN}]',
    ],
)
def test_empty_units_and_other_forms_are_refused(value: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        parse_units(value)


def test_each_row_of_a_secondary_input_gives_a_unit_each_once() -> None:
    assert list_units(None, [_input()], lambda one: ROWS) == ('{"id":1}', '{"id":2}', '{"id":3}')


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"status": "open|closed"}, [1, 2, 2]),
        ({"status": "close"}, []),  # the whole text has to match
        ({"status": ".*"}, [1, 2, 2]),  # NULL never matches
        ({"status": "closed", "flag": "true"}, [2]),
        ({"id": "[12]"}, [1, 2, 2]),
        ({"nowhere": ".*"}, []),
    ],
)
def test_filters_match_texts_in_full_and_all_must(filters: dict[str, str], wanted: list[int]) -> None:
    assert [unit["id"] for unit in _input(filters=filters).units(ROWS)] == wanted


def test_filters_may_use_fields_that_are_not_selected() -> None:
    one = _input(fields=["id", "id"], filters={"status": "open", "id": "1"})
    assert (one.columns, list(one.units(ROWS))) == (["id", "status"], [{"id": 1}])


@pytest.mark.parametrize(
    "changes",
    [
        {"table": None},
        {"path": "./x"},
        {"query": "SELECT 1"},
        {"source": {"type": "table", "table": "silver/surveys"}},
        {"fields": []},
        {"fields": [""]},
        {"filters": {"a": "("}},
        {"more": 1},
    ],
)
def test_a_secondary_input_is_one_place_with_fields_and_regular_expressions(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        _input(**changes)


def test_a_secondary_input_that_cannot_be_read_is_not_an_empty_one() -> None:
    def missing(one: SecondaryInput) -> Iterable[Mapping[str, Any]]:
        raise SourceError("no such table")

    with pytest.raises(PlanError, match="nothing was planned") as found:
        list_units(None, [_input()], missing)
    assert found.value.code == "secondary_input"


def test_a_secondary_input_that_does_not_answer_stays_worth_another_try() -> None:
    def silent(one: SecondaryInput) -> Iterable[Mapping[str, Any]]:
        raise SourceUnreachable("no answer")

    with pytest.raises(SourceUnreachable):
        list_units(None, [_input()], silent)


def test_more_units_than_the_most_are_refused_before_all_are_read() -> None:
    def endless(one: SecondaryInput) -> Iterable[Mapping[str, Any]]:
        return ({"id": number} for number in count())

    with pytest.raises(PlanError, match="expected at most 100000 units, found more") as found:
        list_units(None, [_input()], endless)
    assert found.value.code == "secondary_input"


def test_units_are_told_apart_by_type_and_keep_their_order() -> None:
    assert distinct_identities([{"a": "1"}, {"a": 1}, {"a": "1"}]) == ('{"a":"1"}', '{"a":1}')


def test_fewer_units_than_the_least_are_refused_and_the_implicit_one_does_not_count() -> None:
    check_min_units(["a", "b"], 2, "flow")
    check_min_units([NO_UNIT], 0, "flow")
    for units in (["a"], [NO_UNIT], []):
        with pytest.raises(PlanError, match="min_units") as found:
            check_min_units(units, 2, "flow")
        assert found.value.code == "below_min_units"


def test_a_query_for_units_needs_the_database_of_the_source() -> None:
    watermark = {
        "type": "window",
        "definition": [{"name": "day", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}],
        "window": "daily",
        "secondary_input": [{"query": "SELECT u FROM units", "fields": ["u"]}],
    }
    source = {"type": "table", "table": "raw/events", "window_column": "at", "unit_columns": {"u": "unit"}}
    target = {"load": "append"}
    with pytest.raises(ValidationError, match="whose database the query asks"):
        Dataflow.model_validate({"name": "a", "source": source, "watermark": watermark, "target": target})
    database = {"type": "jdbc", "connection": "erp", "table": "events", "window_column": "at"}
    given = {
        "name": "a",
        "source": database | {"unit_columns": {"u": "unit"}},
        "watermark": watermark,
        "target": target,
    }
    assert Dataflow.model_validate(given).tables_read == ()


API = {"type": "api", "connection": "shop", "path": "/units"}
FILES = {"type": "files", "path": "./units", "format": "csv"}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (API | {"path": "/units/{start}"}, "source.path: expected path or params without placeholders"),
        (API | {"watermark_to_param": "until"}, "source.watermark_to_param: expected no such key"),
        (API | {"schema": "u text"}, "source.schema: expected no schema"),
        (API | {"window_column": "at"}, "source.window_column: expected no such key"),
        (API | {"unit_columns": {"u": "v"}}, "source.unit_columns: expected no such key"),
        (FILES | {"path": "./units/{start}"}, "source.path: expected the path without placeholders"),
        (FILES | {"format": "avro"}, "source.format: expected ndjson, json, csv, parquet or excel"),
        (FILES | {"missing": "empty"}, "source.missing: expected no such key"),
        (
            FILES | {"options": {"nullValue": "-"}},
            "source.options.nullValue: expected one of encoding, quote, sep",
        ),
        (FILES | {"format": "json", "options": {"sep": ";"}}, "source.options.sep: expected no options"),
        ({"type": "python", "function": "a:b", "highest": "a:c"}, "source.highest: expected no such key"),
    ],
)
def test_a_units_source_has_no_keys_of_spark_alone(source: dict[str, Any], said: str) -> None:
    day = {"name": "day", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}
    watermark = {"type": "window", "definition": [day], "window": "daily"}
    given = {
        "name": "a",
        "source": {
            "type": "table",
            "table": "raw/events",
            "window_column": "at",
            "unit_columns": {"u": "unit"},
        },
        "watermark": watermark | {"secondary_input": [{"fields": ["u"], "source": source}]},
        "target": {"load": "append"},
    }
    with pytest.raises(ValidationError) as raised:
        Dataflow.model_validate(given)
    assert f"watermark.secondary_input.0.{said}" in str(raised.value)


def test_a_table_that_lists_units_as_a_source_is_upstream() -> None:
    day = {"name": "day", "type": "datetime", "range": {"from": "2020-01-01", "to": "-"}}
    source = {"type": "table", "table": "silver/surveys"}
    watermark = {
        "type": "window",
        "definition": [day],
        "secondary_input": [{"fields": ["u"], "source": source}],
    }
    database = {"type": "jdbc", "connection": "erp", "table": "events", "window_column": "at"}
    given = {
        "name": "a",
        "source": database | {"unit_columns": {"u": "unit"}},
        "watermark": watermark | {"window": "daily"},
        "target": {"load": "append"},
    }
    assert [each.name for each in Dataflow.model_validate(given).tables_read] == ["silver/surveys"]
