"""The state classes by kind of watermark: the one place that chooses between them."""

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
"""Kinds whose log lists each loaded file; for other kinds the watermark says everything."""


def shorten_watermark(kind: str, watermark: Watermark) -> Watermark:
    """Return a watermark's short public form (docs/reference/cli.md).

    A stream's is its epoch and global watermark; any other kind's is the whole watermark.
    """
    if kind != "stream" or is_empty(watermark):
        return watermark
    state = StreamState.of(watermark)
    return {"epoch": state.epoch, "global": state.value}


def holds_nothing(kind: str, watermark: Mapping[str, Any] | None) -> bool:
    """Return whether a watermark counts nothing as loaded.

    Args:
        kind: kind of the watermark.
        watermark: as the log has it; None: there is none.
    """
    if watermark is None or is_empty(watermark):
        return True
    return kind in STATES and STATES[kind].holds_nothing(watermark)
