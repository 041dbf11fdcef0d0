"""Which work units cannot be read, found with few reads."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from hypothesis import given
from hypothesis import strategies as st

from partitions.instants import DAY
from partitions.window.work_unit import WorkUnit
from resources.kinds.window.failures import bad_units, failing

UNITS = ('{"u":"a"}', '{"u":"b"}', '{"u":"c"}')
WORKS = [WorkUnit(day * DAY, (day + 1) * DAY, unit, day * DAY, "new") for day in range(12) for unit in UNITS]


class Source:
    """Some of its work units cannot be read, each for a reason."""

    def __init__(self, bad: dict[WorkUnit, str]) -> None:
        self.bad, self.reads = bad, 0

    def probe(self, works: Sequence[WorkUnit]) -> str | None:
        self.reads += 1
        return next((self.bad[one] for one in works if one in self.bad), None)


@given(st.sets(st.sampled_from(WORKS), max_size=3))
def test_single_work_units_that_fail_for_different_reasons_are_found_exactly(bad: set[WorkUnit]) -> None:
    source = Source({one: f"reason {number}" for number, one in enumerate(bad)})
    assert failing(WORKS, source.probe) == source.bad


def test_a_unit_that_fails_as_a_whole_is_found_with_three_reads() -> None:
    source = Source({one: "no answer" for one in WORKS if one.unit == UNITS[1]})
    assert failing(WORKS, source.probe) == source.bad
    assert source.reads == 5


def test_what_can_be_read_is_not_blamed() -> None:
    assert failing(WORKS, Source({}).probe) == {}


def test_windows_that_follow_each_other_are_told_as_one_range_and_each_reason_once() -> None:
    bad = {one: "no answer" for one in WORKS if one.unit == UNITS[1]} | {WORKS[0]: "torn"}
    error = bad_units(bad, UTC)
    assert error.message == (
        "13 work units cannot be read: [1970-01-01T00:00:00+00:00, 1970-01-13T00:00:00+00:00) u b: no answer;"
        " [1970-01-01T00:00:00+00:00, 1970-01-02T00:00:00+00:00) u a: torn"
    )
    assert error.units[0, UNITS[0]] == "torn"


def test_an_error_names_at_most_twenty_kinds_of_reasons_and_counts_the_others() -> None:
    words = [chr(ord("a") + number) * 3 for number in range(25)]
    error = bad_units(dict(zip(WORKS, words, strict=False)), UTC)
    assert error.why == f"{'; '.join(words[:20])} and 5 more"
    assert error.message.endswith(") u b: ttt and 5 more")
    assert len(error.units) == 25
