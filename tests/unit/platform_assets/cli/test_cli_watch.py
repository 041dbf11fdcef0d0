"""What ``strandline watch`` says while it waits."""

from __future__ import annotations

from platform_assets.cli.watch import _doubled


def test_a_source_that_does_not_answer_is_told_less_and_less_often() -> None:
    told = dict.fromkeys(_doubled(seconds) for seconds in range(30, 24 * 3600, 2))
    assert list(told) == [30.0 * 2**step for step in range(12)]
