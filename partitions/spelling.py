"""Names in messages: the first few of many, and the one that was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_SHOWN = 30
"""Known names that a message lists."""

_STEM = 3
"""Letters of a known name at least, if a wrong name is one that goes on."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong name may stand for, or None; case does not count."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    folded = name.casefold()
    close = difflib.get_close_matches(folded, by_folded, n=1)
    # `separator` is written for `sep`, which it does not resemble.
    begins = [
        known_name for known_name in by_folded if len(known_name) >= _STEM and folded.startswith(known_name)
    ]
    return by_folded[(close or begins)[0]] if close or begins else None


def first_few(names: Sequence[str], most: int, between: str = ", ") -> str:
    """Return at most so many names as a text, and how many more there are: "a, b and 3 more"."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{between.join(names[:most])}{more}"


def beside_known(missing: Sequence[str], known: Sequence[str]) -> str:
    """Return names that are not there, what the first may stand for, and the names that are there."""
    close = nearest(missing[0], known)
    meant = f" (did you mean {close}?)" if close else ""
    return f"{', '.join(missing)}{meant}; there are {first_few(known, _SHOWN)}"
