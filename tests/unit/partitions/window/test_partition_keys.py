"""Units and windows come back from their keys as what they were, and Dagster takes every key."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from dagster import MultiPartitionsDefinition, StaticPartitionsDefinition
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.instants import add_days, zone_of
from partitions.window.partition_keys import instant_key, instant_of_key, unit_key, unit_of_key
from partitions.window.units import identity, unit_of

_texts = st.text(st.characters() | st.sampled_from('|,[]{}%."\\\n\t\a\0 äé中🦩\u200b\u2028'), max_size=12)
_values = (
    _texts
    | st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.dates()
    | st.decimals(allow_nan=False, allow_infinity=False)
)


def units(*fields: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(dict.fromkeys(fields, _values))


@given(units("id") | units("id", "region"))
def test_a_unit_comes_back_from_its_key_as_it_was(unit: dict[str, Any]) -> None:
    key = unit_key(identity(unit), list(unit))
    back = unit_of(unit_of_key(key, list(unit)))
    assert back == unit
    assert {name: type(back[name]) for name in unit} == {name: type(unit[name]) for name in unit}


@given(st.lists(units("id"), unique_by=identity, min_size=1, max_size=10))
def test_different_units_have_different_keys_of_dagster(made: list[dict[str, Any]]) -> None:
    keys = [unit_key(identity(unit), ["id"]) for unit in made]
    assert len(set(keys)) == len(keys)
    other = StaticPartitionsDefinition(["w"])
    pairs = MultiPartitionsDefinition({"unit": StaticPartitionsDefinition(keys), "window": other})
    assert list(pairs.get_partition_keys()) == [f"{key}|w" for key in keys]
    assert all(key.isprintable() and key.strip() == key for key in keys)


@pytest.mark.parametrize(
    ("unit", "key"),
    [
        ({"id": "id1"}, "id1"),
        ({"id": "Zürich 中"}, "Zürich 中"),
        ({"id": 'a "b"'}, 'a "b"'),
        ({"id": "1"}, "1"),
        ({"id": 1}, '{"id":1}'),
        ({"id": None}, '{"id":null}'),
        ({"id": ""}, '{"id":""}'),
        ({"id": "a|b,c"}, "a%7Cb%2Cc"),
        ({"id": "100%"}, "100%25"),
        ({"id": " a\nb "}, "%20a%0Ab%20"),
        ({"id": "a...b..c."}, "a%2E%2E%2Eb..c."),
        ({"id": '{"id":1}'}, '%7B"id":1}'),
        ({"id": date(2020, 1, 2)}, '{"id":{"__date__":"2020-01-02"}}'),
        ({"id": Decimal("1.50")}, '{"id":{"__decimal__":"1.50"}}'),
        ({"id": "a", "n": 1}, '{"id":"a"%2C"n":1}'),
    ],
)
def test_a_unit_that_is_one_text_is_its_own_key_and_any_other_is_json(unit: dict[str, Any], key: str) -> None:
    assert unit_key(identity(unit), list(unit)) == key


@pytest.mark.parametrize(
    "key", ["", "a|b", "%7C%", "%ff", "%41", '{"id": 1}', '{"id":"a"}', "{", "{}x", "a "]
)
def test_a_text_that_no_unit_has_for_its_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match="expected the key of a unit of id, such as id1, found"):
        unit_of_key(key, ["id"])


@given(
    st.integers(-(10**12), 4 * 10**12), st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "-03:30"])
)
def test_an_instant_comes_back_from_its_key(instant: int, zone: str) -> None:
    assert instant_of_key(instant_key(instant, zone_of(zone)), zone_of(zone)) == instant


@given(
    st.integers(0, 2 * 10**12), st.sampled_from(["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"])
)
def test_keys_of_days_sort_by_time(start: int, zone: str) -> None:
    days = [add_days(start, day, zone_of(zone)) for day in range(0, 400, 9)]
    keys = [instant_key(day, zone_of(zone)) for day in days]
    assert sorted(keys) == keys


@given(st.integers(0, 4 * 10**12))
def test_keys_of_hours_sort_by_time_in_utc(start: int) -> None:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=start)
    hours = [int((at + timedelta(hours=hour)).timestamp() * 1000) for hour in range(50)]
    assert sorted(instant_key(hour, UTC) for hour in hours) == [instant_key(hour, UTC) for hour in hours]


@pytest.mark.parametrize(
    "key", ["", "x", "2020-01-01", "2020-01-01T00:00:00", "2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00"]
)
def test_only_one_text_is_the_key_of_a_window(key: str) -> None:
    with pytest.raises(
        ConfigurationError, match="expected the start of a window, such as 1970-01-01T00:00:00"
    ):
        instant_of_key(key, UTC)
