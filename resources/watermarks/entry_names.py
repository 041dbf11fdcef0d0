"""Name objects so that the newest number comes first in a folder.

See docs/explanation/adr/0003-names-of-entries-count-down.md.
"""

from __future__ import annotations

_TOP = 9_999_999_999


def descending_name(number: int) -> str:
    """Return a name for a number; higher numbers get names that sort earlier."""
    return f"{_TOP - number:010d}-{number:010d}"


def number_of(name: str) -> int | None:
    """Return the number in a name of :func:`descending_name`; None for any other text."""
    down, _, up = name.partition(".")[0].partition("-")
    return int(up) if down.isdecimal() and up.isdecimal() and int(down) + int(up) == _TOP else None
