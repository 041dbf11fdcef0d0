"""Names that were meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_SHOWN = 30
"""Known names that a message lists."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a wrong name may stand for, or None; case does not count."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[close[0]] if close else None


def beside_known(missing: Sequence[str], known: Sequence[str]) -> str:
    """Return names that are not there, what the first may stand for, and the names that are there."""
    close = nearest(missing[0], known)
    meant = f" (did you mean {close}?)" if close else ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{', '.join(missing)}{meant}; there are {', '.join(known[:_SHOWN])}{more}"
