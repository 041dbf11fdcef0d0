"""Watermarks and holders of a dataflow in words, as `strandline list` shows them."""

from __future__ import annotations

from typing import Any

import pytest

from platform_assets.words import held_in_words, in_words

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
def test_a_holder_is_shown_with_run_process_host_since_when_and_its_lease(
    changes: dict[str, Any], said: str
) -> None:
    held = "number 7 is held by run 12345678, process 42 on worker-7 since 2024-01-01T00:00:00+00:00: "
    assert held_in_words(HELD | changes) == held + said


DAY = 86_400_000
A, B = '{"unit": "a"}', '{"unit": "b"}'


def windows(units: dict[str, Any], failed: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"grid": "daily UTC", "units": units, **({"failed": failed} if failed else {})}


@pytest.mark.parametrize(
    ("kind", "watermark", "words"),
    [
        (None, None, "none"),
        ("path", {}, "none"),
        ("path", {"path": "d=1/a.json"}, "d=1/a.json"),
        (
            "path",
            {"paths": {"d=1": "a", "d=2": "b"}, "closed_before": None},
            "2 open partitions, closed before None",
        ),
        ("window", windows({"{}": [[0, 2 * DAY]]}), "up to 1970-01-03T00:00:00+00:00"),
        (
            "window",
            windows({A: [[0, 2 * DAY]], B: [[0, 2 * DAY]]}),
            "up to 1970-01-03T00:00:00+00:00, 2 units",
        ),
        ("window", windows({A: [], B: []}), "2 units"),
        (
            "window",
            windows(
                {A: [[0, 9 * DAY]], B: [[0, 3 * DAY]]},
                {B: {str(3 * DAY): [2, "no answer", 1], str(4 * DAY): [1, "no answer", 1]}},
            ),
            "complete up to 1970-01-04T00:00:00+00:00, at most up to 1970-01-10T00:00:00+00:00 (1 of 2 units behind), 2 work units failed",
        ),
        (
            "window",
            windows({A: [[0, 9 * DAY]]}, {B: {"0": [1, "no answer", 1]}}),
            "not all is begun, at most up to 1970-01-10T00:00:00+00:00 (1 of 2 units behind), 1 work unit failed",
        ),
        (
            "window",
            windows({"{}": [[0, 3 * DAY], [4 * DAY, 9 * DAY]]}, {"{}": {str(3 * DAY): [1, "no answer", 1]}}),
            "complete up to 1970-01-04T00:00:00+00:00, at most up to 1970-01-10T00:00:00+00:00, 1 work unit failed",
        ),
        (
            "window",
            windows({"{}": [[0, 3 * DAY], [3 * DAY, 9 * DAY, "weekly UTC"]]}),
            "up to 1970-01-10T00:00:00+00:00",
        ),
        ("window", windows({}, {A: {"": [0, None, 7]}}), "1 unit"),
    ],
)
def test_a_watermark_in_words_never_counts_failed_work_as_loaded(
    kind: str | None, watermark: Any, words: str
) -> None:
    assert in_words(kind, watermark) == words
