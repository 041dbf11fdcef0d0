"""What a plan says in words: lengths of time."""

from __future__ import annotations

import pytest

from partitions.plan import format_duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (61, "1 min 1 s"),
        (660, "11 min"),
        (3600 * 3 + 1200, "3 h 20 min"),
        (3600 * 20 + 1200, "20 h"),
        (86_400, "1 day"),
        (86_400 * 2 + 3600 * 5, "2 days 5 h"),
        (86_400 * 40 + 3600, "40 days"),
    ],
)
def test_a_length_of_time_is_told_in_its_largest_steps(seconds: float, words: str) -> None:
    assert format_duration(seconds) == words
