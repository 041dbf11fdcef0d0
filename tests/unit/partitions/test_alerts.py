"""What is told of what a look has found."""

from __future__ import annotations

import pytest

from partitions.alerts import APART, SEEN, TOLD, Alert, Condition, Posting, compare


def alert(dataflow: str, condition: Condition = "failed") -> Alert:
    return Alert(dataflow, condition, "why")


def test_a_failure_is_told_once_and_once_more_when_it_is_over() -> None:
    first = compare({}, [alert("a")], ["a"])
    assert (first.began, first.ended, first.known) == ((alert("a"),), (), {"a:failed": TOLD})
    second = compare(first.known, [alert("a")], ["a"])
    assert (second.any, second.known) == (False, first.known)
    third = compare(second.known, [], ["a"])
    assert (third.began, third.ended, third.known) == ((), ("a:failed",), {})


@pytest.mark.parametrize("condition", ["late", "gaps"])
def test_what_the_next_run_mostly_mends_is_told_if_a_second_look_finds_it_too(condition: Condition) -> None:
    first = compare({}, [alert("a", condition)], ["a"])
    assert (first.any, first.known) == (False, {f"a:{condition}": SEEN})
    assert compare(first.known, [alert("a", condition)], ["a"]).began == (alert("a", condition),)
    assert compare(first.known, [], ["a"]).any is False


def test_of_a_dataflow_that_was_not_looked_at_nothing_changes() -> None:
    known = {"a:failed": TOLD, "b:late": SEEN}
    assert compare(known, [alert("c")], ["c"]).known == {**known, "c:failed": TOLD}
    assert compare(known, [], []).any is False


def test_two_troubles_of_a_dataflow_begin_and_end_apart() -> None:
    both = compare({}, [alert("a"), alert("a", "stale")], ["a"])
    assert len(both.began) == 2
    assert compare(both.known, [alert("a", "stale")], ["a"]).ended == ("a:failed",)


def test_what_could_not_be_told_is_told_by_the_next_look_that_can() -> None:
    first = compare({"a:late": SEEN, "b:failed": TOLD}, [alert("a", "late")], ["a", "b"])
    assert (first.began, first.ended) == ((alert("a", "late"),), ("b:failed",))
    again = compare(first.untold, [alert("a", "late")], ["a", "b"])
    assert (again.began, again.ended, again.known) == (first.began, first.ended, first.known)


def test_what_is_over_before_it_could_be_told_is_not_told() -> None:
    began = compare({}, [alert("a")], ["a"])
    assert compare(began.untold, [], ["a"]).any is False
    ended = compare({"a:failed": TOLD}, [], ["a"])
    assert compare(ended.untold, [alert("a")], ["a"]).any is False


def test_messages_are_apart_and_one_that_was_not_taken_is_posted_again_after_longer_and_longer() -> None:
    assert Posting().rest(10_000) == 0
    assert Posting(10_000).rest(10_010) == APART - 10
    assert [Posting(10_000, refused).rest(10_000) for refused in (1, 2, 3, 50)] == [60, 120, 240, 3600]
    assert Posting(10_000, 50).rest(9_999) == 0  # the clock was put back
