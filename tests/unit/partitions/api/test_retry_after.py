"""Pauses that an API asks for: whatever header and form tells them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from partitions.api.retry_after import requested_pause

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=90)
FORMS = [
    "90",
    f"{LATER.timestamp():.0f}",
    f"{LATER.timestamp() * 1000:.0f}",
    format_datetime(LATER, usegmt=True),
    "2026-01-05T12:01:30Z",
]


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize(
    "name", ["Retry-After", "X-RateLimit-Reset", "RateLimit-Reset", "x-rate-limit-reset"]
)
def test_every_form_of_a_reset_is_the_same_pause(status: int, name: str, text: str) -> None:
    assert requested_pause(status, {name: text}, NOW) == 90


def test_retry_after_counts_before_a_reset_and_a_date_by_the_server_s_clock() -> None:
    assert requested_pause(429, {"Retry-After": "5", "X-RateLimit-Reset": "90"}, NOW) == 5
    shown = {"Date": format_datetime(NOW - timedelta(hours=1), usegmt=True), "RateLimit-Reset": FORMS[1]}
    assert requested_pause(429, shown, NOW) == 3690


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (503, {"X-RateLimit-Reset": "90"}),
        (403, {"X-RateLimit-Reset": "90", "X-RateLimit-Remaining": "12"}),
        (403, {"X-RateLimit-Reset": f"{NOW.timestamp() - 5:.0f}"}),
        (429, {"X-RateLimit-Reset": "soon"}),
        (429, {"X-RateLimit-Reset": "0"}),
        (429, {}),
    ],
)
def test_what_names_no_pause_names_none(status: int, headers: dict[str, str]) -> None:
    assert requested_pause(status, headers, NOW) is None


def test_a_limit_that_was_just_lifted_is_waited_for_shortly() -> None:
    headers = {"X-RateLimit-Reset": f"{NOW.timestamp() - 1:.0f}", "X-RateLimit-Remaining": "0"}
    assert requested_pause(403, headers, NOW) == 1
