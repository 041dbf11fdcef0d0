"""Names that were meant."""

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


def beside_known(missing: Sequence[str], known: Sequence[str]) -> str:
    """Return names that are not there, what the first may stand for, and the names that are there."""
    close = nearest(missing[0], known)
    meant = f" (did you mean {close}?)" if close else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{', '.join(missing)}{meant}; there are {', '.join(known[:_SHOWN])}{more}"
