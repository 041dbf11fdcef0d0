"""Window definitions for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partitions.window.definition import WindowWatermark


def windowed(
    start: str | None = None,
    to: str = "-",
    window: Any = "daily",
    *,
    units: Sequence[Any] | None = None,
    field: str = "id",
    **more: Any,
) -> WindowWatermark:
    """A definition; without a start it has no time dimension, without units none of these."""
    entries: list[dict[str, Any]] = []
    if start is not None:
        entries.append({"name": "system", "type": "datetime", "range": {"from": start, "to": to}})
    if units is not None:
        entries.append({"name": field, "type": "unit", "units": list(units)})
    return WindowWatermark.of({"definition": entries, "window": window, **more})
