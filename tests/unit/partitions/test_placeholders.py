"""Bounds as the forms of placeholders can say them: never less than what is meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.instants import as_datetime
from partitions.placeholders import Template, bound_format, format_moment, forms_reach, shared_name

FORMS = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y%j", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
ZONES = st.sampled_from(
    [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata"), ZoneInfo("America/Sao_Paulo")]
)
INSTANTS = st.integers(30_000_000_000, 4_000_000_000_000)


@given(INSTANTS, ZONES, st.sampled_from(FORMS))
def test_what_is_said_holds_what_is_meant_and_is_stable(ms: int, zone: ZoneInfo, form: str) -> None:
    moment = as_datetime(ms, zone)
    forms = Template.parse(f"{{start:{form}}} {{end:{form}}}").placeholders
    start, end = (
        bound_format(forms, "start", zone).below(moment),
        bound_format(forms, "end", zone).above(moment),
    )
    assert start.astimezone(UTC) <= moment.astimezone(UTC) <= end.astimezone(UTC)
    for bound, said in (
        (start, bound_format(forms, "start", zone).below),
        (end, bound_format(forms, "end", zone).above),
    ):
        assert datetime.strptime(bound.strftime(form), form) == bound.replace(tzinfo=None)  # noqa: DTZ007 - local times
        assert said(bound) == bound


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("{end:%Y}", "2027-01-01T00:00:00"),
        ("{end:%Y/%m}", "2027-01-01T00:00:00"),
        ("{end:%Y-%m-%d}", "2026-12-25T00:00:00"),
        ("{end:%Y}/{end:%m}/{end:%d}", "2026-12-25T00:00:00"),
        ("{end:%d.%m.%Y %H}", "2026-12-24T19:00:00"),
        # Each says a bound by itself: a row must be below both.
        ("{end:%Y-%m-%d} {end}", "2026-12-25T00:00:00"),
        ("{end:%Y-%m-%d} {end:%H} {end}", "2026-12-24T18:30:10"),
        ("{end}", "2026-12-24T18:30:10"),
    ],
)
def test_the_forms_of_a_name_add_up(text: str, end: str) -> None:
    moment = datetime(2026, 12, 24, 18, 30, 10, tzinfo=UTC)
    said = bound_format(Template.parse(text).placeholders, "end", UTC).above(moment)
    assert said.replace(tzinfo=None).isoformat() == end
    assert said - moment < timedelta(days=366)


@pytest.mark.parametrize(
    ("text", "finest", "apart"),
    [
        ("{start:%d}", "day", False),
        ("{start:%m-%d}", "day", False),
        ("{start:%Y-%m}", "day", False),
        ("{start:%Y-%d}", "day", False),
        ("{start:%Y}/{start:%m}/{start:%d}", "day", True),
        ("{start:%y%j}", "day", True),
        ("{start:%Y-%m-%d}", "hour", False),
        ("{start:%Y%j%H}", "hour", True),
        ("{start:%H}-{end:%Y%m%d%H}", "hour", True),
        ("{start}", "hour", True),
        ("{unit.a}", "year", False),
    ],
)
def test_forms_tell_windows_apart_down_to_their_length(text: str, finest: Any, apart: bool) -> None:
    assert forms_reach(Template.parse(text).placeholders, finest) is apart


@pytest.mark.parametrize(
    ("text", "moment", "wanted"),
    [
        ("{start:%Y-%m-%d %%Y}", datetime(999, 1, 2, tzinfo=UTC), "0999-01-02 %Y"),
        # The sun's time of Moscow was 2:30:17 hours ahead: few readers know offsets with seconds.
        ("{start}", datetime(1910, 1, 1, tzinfo=ZoneInfo("Europe/Moscow")), "1909-12-31T21:29:43+00:00"),
        (
            "{start:%Y-%m-%dT%H:%M:%S%z}",
            datetime(1910, 1, 1, tzinfo=ZoneInfo("Europe/Moscow")),
            "1909-12-31T21:29:43+0000",
        ),
        ("{start:%Y-%m-%d%z}", datetime(1910, 1, 1, tzinfo=ZoneInfo("Europe/Moscow")), "1910-01-01+023017"),
    ],
)
def test_a_year_has_four_digits_and_an_offset_no_seconds(text: str, moment: datetime, wanted: str) -> None:
    (placeholder,) = Template.parse(text).placeholders
    assert format_moment(placeholder, moment) == wanted


@pytest.mark.parametrize(
    ("text", "a", "b", "other"),
    [
        ("{unit.a}-{unit.b}", "x-y", "z", {"a": "x", "b": "y-z"}),
        ("{unit.a}-{unit.b}", "x", "y", None),
        ("{unit.a}/{unit.b}", "x-y", "z", None),
        ("{unit.a}{start:%Y}/{unit.b}", "x", "2026", None),
        ("{unit.a}-{start:%Y}-{unit.b}", "x-2026", "y", {"a": "x", "b": "2026-y"}),
        ("{unit.a}_{unit.b}_{unit.a}", "x_x", "x", {"a": "x", "b": "x_x_x"}),
        ("{unit.a}/{unit.a}_{unit.b}", "x", "y_z", None),
    ],
)
def test_a_folder_of_several_values_is_found(text: str, a: str, b: str, other: dict[str, str] | None) -> None:
    texts = {"unit.a": a, "unit.b": b, "start": "2026"}
    shared = shared_name(Template.parse(text), lambda placeholder: texts[placeholder.name])
    assert (None if shared is None else shared.values) == other
