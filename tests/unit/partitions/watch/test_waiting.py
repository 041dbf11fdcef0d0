"""When ``strandline watch`` tells of something that lasts."""

from __future__ import annotations

from partitions.watch.reminders import LONG, Wait, reminder_step


def test_what_lasts_is_told_less_and_less_often() -> None:
    told = dict.fromkeys(reminder_step(seconds) for seconds in range(30, 24 * 3600, 2))
    assert list(told) == [30.0 * 2**step for step in range(12)]


def test_a_wait_is_long_after_a_while_and_another_reason_is_another_wait() -> None:
    wait = Wait().for_reason("run a is in flight", 100)
    assert not wait.is_long(100 + LONG - 1)
    again = wait.for_reason("run a is in flight", 100 + LONG)
    assert (again, again.is_long(100 + LONG)) == (wait, True)
    assert not again.for_reason("run b is in flight", 100 + LONG).is_long(100 + LONG)
