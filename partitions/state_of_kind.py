"""The states of all kinds: the one place that chooses by kind which of them reads a watermark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.column.state import ColumnState
from partitions.path.state import PathState
from partitions.sentinels import Watermark
from partitions.stream.state import StreamState
from partitions.watermark import is_empty
from partitions.window.state import WindowState

STATES: Mapping[str, type[PathState | ColumnState | WindowState | StreamState]] = {
    "path": PathState,
    "column": ColumnState,
    "window": WindowState,
    "stream": StreamState,
}
"""By kind of watermark."""


REMEMBERS_FILES = frozenset({"path"})
"""Kinds whose log remembers each file that was ingested; of the others the watermark says all that there is to know."""


def shortened(kind: str, watermark: Watermark) -> Watermark:
    """Return a watermark in its short public form: of a stream epoch and global watermark, of others all of it (docs/reference/cli.md)."""
    if kind != "stream" or is_empty(watermark):
        return watermark
    state = StreamState.of(watermark)
    return {"epoch": state.epoch, "global": state.value}


def nothing_loaded(kind: str, watermark: Mapping[str, Any] | None) -> bool:
    """Return whether a watermark counts nothing as loaded, in whatever form its kind says so.

    Args:
        kind: of the watermark.
        watermark: as the log has it; None: there is none.
    """
    if watermark is None or is_empty(watermark):
        return True
    return kind in STATES and STATES[kind].holds_nothing(watermark)
