from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import CorruptWatermark, InvalidWatermarkValue
from partitions.sentinels import canonical, deserialise, serialise

_offsets = st.integers(-86_399, 86_399).map(lambda seconds: timezone(timedelta(seconds=seconds)))
_zones = st.none() | _offsets
_names = st.text() | st.sampled_from(
    ["__datetime__", "__date__", "__time__", "__decimal__", "__bytes__", "__dict__"]
)
_plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.datetimes(timezones=_zones)
    | st.dates()
    | st.times(timezones=_zones)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.binary()
)
values = st.recursive(
    _plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=3)
)
watermarks = st.dictionaries(_names, values, max_size=4)


def _exact(value: Any) -> Any:
    """The value with its types, and offsets, which equality alone does not see."""
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, datetime | time):
        return type(value), value.isoformat(), value.utcoffset()  # fold is no part of the value
    return type(value), repr(value)


@given(watermarks)
def test_every_storable_value_comes_back_as_what_it_was(watermark: dict[str, Any]) -> None:
    assert _exact(deserialise(serialise(watermark))) == _exact(watermark)


@given(watermarks)
def test_what_is_written_is_json(watermark: dict[str, Any]) -> None:
    json.loads(serialise(watermark), parse_constant=lambda name: pytest.fail(name))


@given(values, values)
def test_values_of_different_type_or_value_have_different_canonical_texts(one: Any, other: Any) -> None:
    assert (canonical(one) == canonical(other)) == (_exact(one) == _exact(other))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),  # its text is another in each process
        float("nan"),
        float("inf"),
        {1: 2},
        {1, 2},
        (1, 2),
        1j,
        b"".__class__,
        type("Text", (str,), {})("x"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [value], lambda value: {"a": [value]}])
def test_what_could_not_come_back_is_refused_at_any_depth(value: Any, wrap: Any) -> None:
    with pytest.raises(InvalidWatermarkValue):
        serialise({"x": wrap(value)})


@pytest.mark.parametrize(
    "text",
    [
        " ",
        "{",
        "null",
        '"text"',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": 1, "a": 2}',
        '{"a": {"__datetime__": 5}}',
        '{"a": {"__datetime__": "soon"}}',
        '{"a": {"__date__": "2026-02-30"}}',
        '{"a": {"__time__": "25:00"}}',
        '{"a": {"__decimal__": "x"}}',
        '{"a": {"__decimal__": "NaN"}}',
        '{"a": {"__bytes__": "?"}}',
        '{"a": {"__dict__": 1}}',
        '{"a": [{"__date__": null}]}',
    ],
)
def test_text_that_cannot_be_read_is_corrupt_and_never_empty(text: str) -> None:
    with pytest.raises(CorruptWatermark):
        deserialise(text)


def test_the_top_level_is_names_and_never_a_sentinel() -> None:
    assert deserialise('{"__date__": "2026-04-03"}') == {"__date__": "2026-04-03"}


def test_an_object_with_more_than_the_sentinel_is_a_plain_object() -> None:
    assert deserialise('{"a": {"__date__": "x", "b": 1}}') == {"a": {"__date__": "x", "b": 1}}


def test_sentinels_hold_isoformat_text() -> None:
    written = serialise(
        {"at": datetime(2026, 4, 3, 9, 15, tzinfo=UTC), "day": date(2026, 4, 3), "clock": time(9, 15)}
    )
    assert json.loads(written) == {
        "at": {"__datetime__": "2026-04-03T09:15:00+00:00"},
        "day": {"__date__": "2026-04-03"},
        "clock": {"__time__": "09:15:00"},
    }


def test_a_sentinel_is_one_however_its_name_is_escaped() -> None:
    text = '{"a": {"\\u005f\\u005Fdate\\u005f\\u005f": "2026-04-03"}}'
    assert deserialise(text) == {"a": date(2026, 4, 3)}
