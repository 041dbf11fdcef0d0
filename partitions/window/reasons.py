"""Why a work unit runs (docs/reference/windows.md)."""

from __future__ import annotations

from typing import Literal

Reason = Literal["new", "grace", "failed", "forced", "upstream", "rest"]
"""Why a work unit runs.

``upstream``: the table that it was read from has changed. ``rest`` is time of an old window that no current
window holds, deleted with the old window.
"""

WHOLE: frozenset[Reason] = frozenset({"forced", "upstream"})
"""Reasons of work units that are read from their start, and whose rows are replaced."""
