"""What `strandline list` says of who holds a dataflow."""

from __future__ import annotations

from typing import Any

import pytest

from platform_assets.words import held_in_words

MINUTE_LATER = "2024-01-01T00:01:00+00:00"
HELD: dict[str, Any] = {
    "number": 7,
    "run_id": "12345678-0000",
    "host": "worker-7",
    "process": 42,
    "since": "2024-01-01T00:00:00+00:00",
    "alive": None,
    "renewed": None,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"alive": True}, "it runs"),
        ({"alive": False}, "it is gone, and the next run finishes what it began"),
        ({}, "it has no lease, so the next run looks for one and finishes what it began"),
        (
            {"renewed": MINUTE_LATER},
            f"it last renewed its lease at {MINUTE_LATER} (by the clock there); if it does so no more, the next run finishes what it began",
        ),
    ],
)
def test_a_holder_is_told_with_run_process_host_and_since_when_and_what_its_lease_says(
    changes: dict[str, Any], said: str
) -> None:
    held = "number 7 is held by run 12345678, process 42 on worker-7 since 2024-01-01T00:00:00+00:00: "
    assert held_in_words(HELD | changes) == held + said
