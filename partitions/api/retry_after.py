"""How long an API asks to wait, by the headers of an answer that it will give later (docs/reference/apis.md, Failures)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
"""Headers that tell when the next request counts, by convention; seconds from now (RFC draft) or since 1970."""
_REMAINING = ("ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining")
_LIMITS = frozenset({403, 429})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_EPOCH = 1_000_000_000
"""A number of seconds from here on (the year 2001) is a moment, and no distance."""
_SHORTLY = 1.0
"""Seconds to wait where the limit has just been lifted, by clocks that differ."""
_FIRST_MILLISECONDS = 100_000_000_000
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)


def pause_named(status: int, headers: Mapping[str, str], now: datetime) -> float | None:
    """Return for how many seconds an answer asks to wait; None if it names no pause, or one that is over.

    ``Retry-After`` counts with any status that may pass. A rate limit's reset counts with 403 and 429, unless requests remain: some APIs
    name it in each answer, and a 403 is then one of rights.

    Args:
        status: of the answer.
        headers: of the answer, in any case.
        now: by the clock of this machine; a date counts by the server's own clock if the answer has its time.
    """
    named = {name.lower(): value.strip() for name, value in headers.items()}
    now = _moment(named.get("date", "")) or now
    if text := named.get("retry-after"):
        return _seconds(text, now)
    if status not in _LIMITS:
        return None
    remaining = next((named[name] for name in _REMAINING if name in named), "")
    if status == 403 and _NUMBER.fullmatch(remaining) and float(remaining) > 0:
        return None
    seconds = _seconds(next((named[name] for name in _RESETS if name in named), ""), now)
    return seconds or (_SHORTLY if seconds == 0 and remaining == "0" else None)


def _seconds(text: str, now: datetime) -> float | None:
    """A pause: seconds from now, seconds or milliseconds since 1970, or a date; None if it is none of these."""
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number < _FIRST_EPOCH:
            return number
        since = number / 1000 if number >= _FIRST_MILLISECONDS else number
        return max(0.0, (_EPOCH + timedelta(seconds=since) - now).total_seconds())
    moment = _moment(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _moment(text: str) -> datetime | None:
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
        except (ValueError, TypeError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
