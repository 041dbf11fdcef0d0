"""The pause that an API requests in the headers of an answer (docs/reference/apis.md, Failures)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
"""Headers with the time of the next allowed request, by convention: seconds from now (RFC draft) or since 1970."""
_REMAINING = ("ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining")
_LIMIT_STATUSES = frozenset({403, 429})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_EPOCH_SECONDS = 1_000_000_000
"""Numbers from here on (the year 2001) are points in time, not durations."""
_SHORT_PAUSE = 1.0
"""Seconds to wait where the limit should be over already, since clocks differ."""
_MIN_EPOCH_MILLISECONDS = 100_000_000_000
_NUMBER = re.compile(r"\d{1,15}(\.\d{1,9})?", re.ASCII)


def requested_pause(status: int, headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the pause that an answer requests, in seconds; None if there is none, or it is over.

    ``Retry-After`` counts for every status. A rate limit's reset counts for 429, and for 403 unless requests
    remain: some APIs send it in each answer, and such a 403 means missing permissions.

    Args:
        status: the answer's status.
        headers: the answer's headers, in any case.
        now: by this machine's clock; dates are compared with the server's own clock if the answer has its
        time.
    """
    header_values = {name.lower(): value.strip() for name, value in headers.items()}
    now = _parse_time(header_values.get("date", "")) or now
    if text := header_values.get("retry-after"):
        return _seconds(text, now)
    if status not in _LIMIT_STATUSES:
        return None
    remaining = next((header_values[name] for name in _REMAINING if name in header_values), "")
    if status == 403 and _NUMBER.fullmatch(remaining) and float(remaining) > 0:
        return None
    seconds = _seconds(next((header_values[name] for name in _RESETS if name in header_values), ""), now)
    return seconds or (_SHORT_PAUSE if seconds == 0 and remaining == "0" else None)


def _seconds(text: str, now: datetime) -> float | None:
    """Return a pause in seconds; None if the text is no pause.

    The text may be seconds from now, seconds or milliseconds since 1970, or a date.
    """
    if _NUMBER.fullmatch(text):
        number = float(text)
        if number < _MIN_EPOCH_SECONDS:
            return number
        since_epoch = number / 1000 if number >= _MIN_EPOCH_MILLISECONDS else number
        return max(0.0, (_EPOCH + timedelta(seconds=since_epoch) - now).total_seconds())
    moment = _parse_time(text)
    return None if moment is None else max(0.0, (moment - now).total_seconds())


def _parse_time(text: str) -> datetime | None:
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(text)
        except (ValueError, TypeError):
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None
