"""Path watermarks in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.instants import time_text
from partitions.plan import pluralize


def path_in_words(watermark: Mapping[str, Any]) -> str:
    """Return the path, or how many partitions are open, and before which all others are closed."""
    if "path" in watermark:
        return str(watermark["path"])
    closed = watermark.get("closed_before")
    return f"{pluralize(len(watermark.get('paths', {})), 'open partition')}, closed before {closed}"


def verified_in_words(up_to: str | Mapping[str, Any], at: str) -> str:
    """Return how far the sweep has verified that nothing is missing.

    Args:
        up_to: a path, or the watermark of scope partition in its JSON form.
        at: the start of the round, ISO.
    """
    path = up_to if isinstance(up_to, str) else path_in_words(up_to)
    return f"all paths up to {path} verified at {time_text(at)}"
