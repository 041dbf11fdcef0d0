"""Texts by the types of their columns."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from partitions.records.conversions import conversion, is_special_type
from partitions.records.forms import INSTANT, INSTANT_SHAPE, TextOptions, Type, text_form
from partitions.records.judge import fault_of_text

_TYPES = ("byte", "short", "integer", "long", "float", "double", "decimal(5,2)", "decimal(2,2)", "decimal(38,0)", "boolean", "date", "timestamp", "timestamp_ntz")  # fmt: skip


@example("decimal(5,2)", "+1.5", True)
@given(
    st.sampled_from(_TYPES),
    st.one_of(
        st.text(alphabet="0123456789.eE+-TZ: ", max_size=24),
        st.decimals(allow_nan=False, allow_infinity=False).map(str),
        st.datetimes().map(str),
        st.floats().map(str),
    ),
    st.booleans(),
)
def test_a_types_form_accepts_nothing_the_judge_refuses(data_type: str, text: str, inferred: bool) -> None:
    reading = TextOptions(inferred=inferred)
    form = text_form(data_type, reading)
    assert form is not None
    if re.fullmatch(form, text):
        assert fault_of_text(text, data_type, reading) is None


@given(st.integers(-(10**6), 10**6), st.integers(0, 3))
def test_a_decimal_takes_a_number_only_if_no_digit_is_lost(number: int, places: int) -> None:
    text = str(Decimal(number).scaleb(-places))
    value = Decimal(text)
    fits = value == value.quantize(Decimal("0.01")) and abs(value) < 1000
    assert (fault_of_text(text, "decimal(5,2)", TextOptions()) is None) == fits


@given(st.integers(-(2**70), 2**70))
def test_a_whole_number_is_a_double_only_if_it_is_exact(number: int) -> None:
    assert (fault_of_text(str(number), "double", TextOptions()) is None) == (int(float(number)) == number)


@given(st.datetimes(timezones=st.just(UTC)))
def test_every_instant_as_iso_text_is_a_time(moment: datetime) -> None:
    assert fault_of_text(moment.isoformat(), "timestamp", TextOptions()) is None


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+01:00", "9999-12-31 23:30:00-01:00"])
def test_an_offset_that_leads_out_of_the_calendar_is_no_time(text: str) -> None:
    fault = fault_of_text(text, "timestamp", TextOptions())
    assert fault is not None
    assert "years 1 to 9999" in fault
    form = text_form("timestamp", TextOptions())
    assert form is not None
    assert re.fullmatch(form, text) is None


@pytest.mark.parametrize(
    ("data_type", "text", "what"),
    [
        ("double", "1.234,5", "a number with a decimal comma, which a decimal holds if options.locale"),
        ("double", "1,2,3", "other text"),
        ("date", "28.12.2024", "a date in another form, which options.dateFormat"),
        ("timestamp", "12/28/2024 10:00", "a date in another form, which options.timestampFormat"),
        ("date", "soon", "other text"),
        ("timestamp_ntz", "2026-05-07T10:00:00Z", "a time with an offset"),
        ("timestamp", "2026-05-07T10:00:00+19:00", "a time with an impossible offset"),
        ("timestamp", "2026-05-07T10:00Z", "a time with an offset and without seconds"),
    ],
)
def test_a_text_that_an_option_would_read_names_the_option(data_type: str, text: str, what: str) -> None:
    assert str(fault_of_text(text, data_type, TextOptions())).startswith(what)


@pytest.mark.parametrize("pattern", [INSTANT, INSTANT_SHAPE])
@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("2026-05-07T10:00", True),
        ("2026-05-07 10:00:07.5 +02", True),
        ("2026-05-07T10:00Z", False),
        ("2026-05-07T10:00+02:00", False),
    ],
)
def test_an_offset_stands_behind_seconds_as_spark_reads_it(pattern: str, text: str, is_read: bool) -> None:
    assert (re.fullmatch(pattern, text) is not None) is is_read
    assert (fault_of_text(text, "timestamp", TextOptions()) is None) is is_read


def test_values_of_another_type_are_always_taken_checked_or_refused() -> None:
    array = {"type": "array", "elementType": "double", "containsNull": True}
    whole = {"type": "array", "elementType": "long", "containsNull": True}
    pairs: list[tuple[Type, Type]] = [
        ("void", "string"),
        ("integer", "long"),
        ("double", "long"),
        ("time(micros)", "string"),
        ("time(micros)", "long"),
        ("string", "long"),
        (array, whole),
        (array, "string"),
        ("timestamp(nanos)", "timestamp"),
    ]
    ways = ["always", "always", "checked", "always", None, None, "checked", None, "always"]
    assert [conversion(own, column) for own, column in pairs] == ways
    assert is_special_type({"type": "struct", "fields": [{"name": "t", "type": "time(millis)"}]})
