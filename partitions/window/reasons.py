"""Why a work unit runs (docs/reference/windows.md)."""

from __future__ import annotations

from typing import Literal

Reason = Literal["new", "grace", "failed", "forced", "upstream", "changed", "rest"]
"""Why a work unit runs.

``upstream``: the dataflow whose table it was read from has loaded a part of it again. ``changed``: rows of
it have changed there, by the commits of the table. ``rest`` is time of an old window that no current
window holds, deleted with the old window.
"""

WHOLE: frozenset[Reason] = frozenset({"forced", "upstream", "changed"})
"""Reasons of work units that are read from their start, and whose rows are replaced."""
