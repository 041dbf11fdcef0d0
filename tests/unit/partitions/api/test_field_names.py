"""Names of fields: a schema knows all of them, or records are looked through closely."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.field_names import FieldNames


def struct(**fields: Any) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()
        ],
    }


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


SCHEMA = struct(
    id="long",
    text="string",
    address=struct(city="string"),
    lines=array(struct(sku="string", sizes=array(array(struct(cm="long"))))),
    by_day={
        "type": "map",
        "keyType": "string",
        "valueType": struct(count="long"),
        "valueContainsNull": True,
    },
)


def known(*records: dict[str, Any]) -> bool:
    names = FieldNames()
    for record in records:
        names.add(record)
    return names.are_all_in(SCHEMA)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"id": 1},
        {"text": {"any": {"thing": 1}}},
        {"text": [{"any": 1}]},
        {"address": None, "lines": [None, {}]},
        {"address": {"city": "x"}, "lines": [{"sku": "a", "sizes": [[{"cm": 1}], []]}]},
        {"by_day": {"2026-01-01": {"count": 1}, "2026-01-02": {}}},
        {"address": 5, "lines": "x"},
    ],
)
def test_names_that_the_schema_has_are_known(record: dict[str, Any]) -> None:
    assert known({"id": 0}, record, {"id": 2})


@pytest.mark.parametrize(
    "record",
    [
        {"ID": 1},
        {"other": None},
        {"address": {"zip": 1}},
        {"lines": [{"sku": 1}, {"count": 1}]},
        {"lines": [{"sizes": [[{"inch": 1}]]}]},
        {"by_day": {"2026-01-01": {"sum": 1}}},
    ],
)
def test_a_name_that_the_schema_lacks_is_not_known(record: dict[str, Any]) -> None:
    assert not known({"id": 0}, record, {"id": 2})


def test_more_names_than_are_kept_are_not_known() -> None:
    assert known(*({"by_day": {str(number): {}}} for number in range(9_000)))
    assert not known(*({"by_day": {str(number): {}}} for number in range(11_000)))


def test_a_record_that_is_nested_too_deeply_is_not_known() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"text": deep}
    assert not known(deep)


_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "city", "sku", "x"]), inner)
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "address", "lines", "by_day", "x", "city"]), _VALUES, max_size=4
        ),
        max_size=4,
    )
)
def test_records_are_known_if_and_only_if_each_is(records: list[dict[str, Any]]) -> None:
    assert known(*records) == all(known(record) for record in records)
