"""What did not get done is asked for again after a pause that doubles, whatever else there is to do meanwhile."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.pauses import RetryBackoff, remaining_pause, retry_pause


def test_a_pause_doubles_from_a_minute_to_an_hour() -> None:
    assert [retry_pause(attempts) for attempts in range(9)] == [0, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert retry_pause(10_000) == 3600


def test_a_clock_that_was_put_back_makes_nobody_wait_for_the_old_time() -> None:
    assert remaining_pause(7, last=86_400.0, now=10.0) == 0
    assert remaining_pause(7, last=10.0, now=20.0) == 3590


def test_what_is_never_done_is_asked_for_29_times_in_the_first_day() -> None:
    attempts, times = RetryBackoff(), 0
    for now in range(0, 86_400, 30):
        if attempts.wait("done", "a", now) == 0:
            attempts, times = attempts.next("done", "a", now), times + 1
    assert times == 29


def test_whatever_was_done_resets_the_pause() -> None:
    attempts = RetryBackoff()
    for now in (0.0, 60.0, 180.0):
        assert attempts.wait("1", "a", now) == 0
        attempts = attempts.next("1", "a", now)
    assert attempts.wait("1", "a", 181.0) == 239
    assert attempts.wait("2", "a", 181.0) == 0
    assert attempts.next("2", "a", 181.0) == RetryBackoff("2", "a", 181, 1, 181.0)


def test_other_work_is_tried_at_once_but_only_once_in_a_pause_and_the_pause_grows_on() -> None:
    attempts = RetryBackoff("1", "bad", 0, 3, 100.0)
    assert attempts.wait("1", "good", 101.0) == 0
    attempts = attempts.next("1", "good", 101.0)
    assert (attempts.count, attempts.early) == (4, True)
    assert attempts.wait("1", "another", 102.0) == 479
    attempts = attempts.next("1", "another", 581.0)
    assert (attempts.count, attempts.early) == (5, False)
    assert attempts.wait("1", "yet another", 582.0) == 0


def test_work_never_done_is_asked_for_twice_an_hour_in_the_end() -> None:
    attempts, times = RetryBackoff(), list[int]()
    for now in range(0, 2 * 86_400, 30):
        if attempts.wait("1", str(now), now) == 0:
            attempts = attempts.next("1", str(now), now)
            times.append(now)
    assert len([now for now in times if now >= 86_400]) <= 50


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 4000)),
        min_size=2,
        max_size=40,
    )
)
def test_no_two_attempts_have_one_name(asks: list[tuple[str, str, int]]) -> None:
    attempts, now, names = RetryBackoff(), 0, list[str]()
    for done, what, later in asks:
        now += later + 1
        attempts = attempts.next(done, what, now)
        names.append(attempts.name)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("start", [0, 1_700_000_000])
def test_attempts_for_the_same_work_are_never_closer_than_their_pause(start: int) -> None:
    attempts, last = RetryBackoff(), None
    for now in (start + 7 * step for step in count()):
        if attempts.wait("1", "a", now) == 0:
            assert last is None or now - last >= retry_pause(attempts.count)
            attempts, last = attempts.next("1", "a", now), now
        if attempts.count == 12:
            break
