"""Names in messages: the first few of many, and the most similar one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_SHOWN = 30
"""The most names that a message lists."""

_STEM = 3
"""The fewest letters of a name that counts as the beginning of a longer wrong one."""


def nearest_name(name: str, names: Iterable[str]) -> str | None:
    """Return the name that the user may have meant, or None; case does not count."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    folded = name.casefold()
    close = difflib.get_close_matches(folded, by_folded, n=1)
    # `separator` is written for `sep`, which it does not resemble.
    begins = [
        known_name for known_name in by_folded if len(known_name) >= _STEM and folded.startswith(known_name)
    ]
    return by_folded[(close or begins)[0]] if close or begins else None


def first_few(names: Sequence[str], max_names: int, between: str = ", ") -> str:
    """Return the first names as a text, and the number of the others: "a, b and 3 more"."""
    more = f" and {len(names) - max_names:,} more" if len(names) > max_names else ""
    return f"{between.join(names[:max_names])}{more}"


def describe_missing(missing: Sequence[str], available: Sequence[str]) -> str:
    """Return the missing names, a suggestion for the first, and the available names."""
    close = nearest_name(missing[0], available)
    meant = f" (did you mean {close}?)" if close else ""
    return f"{', '.join(missing)}{meant}; the names are {first_few(available, _SHOWN)}"
