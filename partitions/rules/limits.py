"""How many rows of a slice may fail a rule: a count, or a share of the slice's rows."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator

_SHARE = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%", re.ASCII)
_COUNT = re.compile(r"\d+", re.ASCII)


def _limit(value: Any) -> str:
    text = str(value).strip() if not isinstance(value, bool | float) else ""
    share = _SHARE.fullmatch(text)
    if share and Fraction(share[1]) <= 100:
        return f"{share[1]}%"
    if _COUNT.fullmatch(text):
        return str(int(text))
    raise ValueError("expected a number of rows such as 100, or a share from 0% to 100% such as 1%")


Limit = Annotated[str, BeforeValidator(_limit)]
"""A number of rows such as ``100``, or a share of them such as ``1%``."""


def exceeds(limit: str | None, failed: int, rows: int) -> bool:
    """Return whether more rows fail than a limit allows.

    Args:
        limit: the limit; None: any number may fail.
        failed: rows that fail.
        rows: rows that were checked, with those that fail.
    """
    if limit is None:
        return False
    if limit.endswith("%"):
        return failed * 100 > Fraction(limit[:-1]) * rows
    return failed > int(limit)


def share_in_words(failed: int, rows: int) -> str:
    """Return how many rows failed, with their share: ``12 of 1,000 rows (1.2%)``.

    A share that is not 0 is never shown as 0%, nor one below 100% as 100%.
    """
    if not rows:
        return "0 of 0 rows"
    share = Fraction(failed * 100, rows)
    digits = next((n for n in range(1, 8) if 0 < round(share, n) < 100), None)
    text = f"{float(share):.{digits}f}".rstrip("0").rstrip(".") if digits else str(round(share))
    return f"{failed:,} of {rows:,} rows ({text}%)"
