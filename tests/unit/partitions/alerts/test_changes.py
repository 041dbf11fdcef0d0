"""What a scan changes in the states of alerts."""

from __future__ import annotations

import pytest

from partitions.alerts.alert import Alert, Condition
from partitions.alerts.changes import FOUND_ONCE, REPORTED, compare_alerts


def alert(dataflow: str, condition: Condition = "failed") -> Alert:
    return Alert(dataflow, condition, "why")


def test_a_failure_is_told_once_and_once_more_when_it_is_over() -> None:
    first = compare_alerts({}, [alert("a")], ["a:failed"])
    assert (first.began, first.ended, first.reported) == ((alert("a"),), (), {"a:failed": REPORTED})
    second = compare_alerts(first.reported, [alert("a")], ["a:failed"])
    assert (second.any, second.reported) == (False, first.reported)
    third = compare_alerts(second.reported, [], ["a:failed"])
    assert (third.began, third.ended, third.reported) == ((), ("a:failed",), {})


@pytest.mark.parametrize("condition", ["late", "gaps"])
def test_what_the_next_run_mostly_mends_is_told_if_a_second_look_finds_it_too(condition: Condition) -> None:
    first = compare_alerts({}, [alert("a", condition)], [f"a:{condition}"])
    assert (first.any, first.reported) == (False, {f"a:{condition}": FOUND_ONCE})
    assert compare_alerts(first.reported, [alert("a", condition)], [f"a:{condition}"]).began == (
        alert("a", condition),
    )
    assert compare_alerts(first.reported, [], [f"a:{condition}"]).any is False


def test_what_was_not_judged_stays_as_it_was() -> None:
    known = {"a:failed": REPORTED, "b:late": FOUND_ONCE}
    assert compare_alerts(known, [alert("c")], ["c:failed"]).reported == {**known, "c:failed": REPORTED}
    assert compare_alerts(known, [], []).any is False


def test_two_troubles_of_a_dataflow_begin_and_end_apart() -> None:
    keys = ["a:failed", "a:stale"]
    both = compare_alerts({}, [alert("a"), alert("a", "stale")], keys)
    assert len(both.began) == 2
    assert compare_alerts(both.reported, [alert("a", "stale")], keys).ended == ("a:failed",)
    assert compare_alerts(both.reported, [], ["a:failed"]).ended == ("a:failed",), "stale was not judged"


def test_what_could_not_be_told_is_told_by_the_next_look_that_can() -> None:
    keys = ["a:late", "b:failed"]
    first = compare_alerts({"a:late": FOUND_ONCE, "b:failed": REPORTED}, [alert("a", "late")], keys)
    assert (first.began, first.ended) == ((alert("a", "late"),), ("b:failed",))
    again = compare_alerts(first.unreported, [alert("a", "late")], keys)
    assert (again.began, again.ended, again.reported) == (first.began, first.ended, first.reported)


def test_what_is_over_before_it_could_be_told_is_not_told() -> None:
    began = compare_alerts({}, [alert("a")], ["a:failed"])
    assert compare_alerts(began.unreported, [], ["a:failed"]).any is False
    ended = compare_alerts({"a:failed": REPORTED}, [], ["a:failed"])
    assert compare_alerts(ended.unreported, [alert("a")], ["a:failed"]).any is False
