"""The rows of one read, or one delete, of the window kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Unit = Mapping[str, Any]
"""One unit: names to values. ``{}`` is the one unit of a definition without units."""


@dataclass(frozen=True)
class Extent:
    """The rows of some units over one stretch of time.

    Attributes:
        lower: inclusive, epoch milliseconds; None if there is no time dimension.
        upper: exclusive, epoch milliseconds; None if there is no time dimension.
        units: the units to read, at least one.
    """

    lower: int | None
    upper: int | None
    units: tuple[Unit, ...]
