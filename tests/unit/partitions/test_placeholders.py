"""Bounds as the forms of placeholders can say them: never less than what is meant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.instants import as_datetime
from partitions.placeholders import Template, expressible

FORMS = ("%Y", "%Y-%m", "%Y-%m-%d", "%Y%j", "%Y-%m-%dT%H", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")
ZONES = st.sampled_from(
    [UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata"), ZoneInfo("America/Sao_Paulo")]
)
INSTANTS = st.integers(30_000_000_000, 4_000_000_000_000)


@given(INSTANTS, ZONES, st.sampled_from(FORMS))
def test_what_is_said_holds_what_is_meant_and_is_the_same_when_said_again(
    ms: int, zone: ZoneInfo, form: str
) -> None:
    moment = as_datetime(ms, zone)
    forms = Template.parse(f"{{start:{form}}} {{end:{form}}}").placeholders
    start, end = (expressible(forms, name, moment) for name in ("start", "end"))
    assert start.astimezone(UTC) <= moment.astimezone(UTC) <= end.astimezone(UTC)
    for name, bound in (("start", start), ("end", end)):
        assert datetime.strptime(bound.strftime(form), form) == bound.replace(tzinfo=None)  # noqa: DTZ007 - local times
        assert expressible(forms, name, bound) == bound


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("{end:%Y}", "2027-01-01T00:00:00"),
        ("{end:%Y/%m}", "2027-01-01T00:00:00"),
        ("{end:%Y-%m-%d}", "2026-12-25T00:00:00"),
        ("{end:%Y}/{end:%m}/{end:%d}", "2026-12-25T00:00:00"),
        ("{end:%d.%m.%Y %H}", "2026-12-24T19:00:00"),
        ("{end:%Y-%m-%d} {end}", "2026-12-24T18:30:10"),
        ("{end}", "2026-12-24T18:30:10"),
        ("{start:%Y}", "2026-12-24T18:30:10"),
    ],
)
def test_the_forms_of_a_name_add_up(text: str, end: str) -> None:
    moment = datetime(2026, 12, 24, 18, 30, 10, tzinfo=UTC)
    said = expressible(Template.parse(text).placeholders, "end", moment)
    assert said.replace(tzinfo=None).isoformat() == end
    assert said - moment < timedelta(days=366)
