"""The request that a user's function receives (docs/reference/python-functions.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from partitions.column.predicates import ColumnRange
from partitions.errors import ConfigurationError


@dataclass(frozen=True)
class Request:
    """The rows between bounds of columns, or of one time range of one unit.

    Attributes:
        dataflow: the dataflow's name.
        bounds: by column of a column watermark; a column without a bound is missing.
        start: the start of the time range, inclusive, aware; None without windows of time.
        end: the end of the time range, exclusive, aware; None without windows of time.
        unit: names to values; empty without units.
        params: the definition's parameters.
        connection: the settings of the definition's connection, including secrets.
    """

    dataflow: str
    bounds: Mapping[str, ColumnRange] = field(default_factory=dict)
    start: datetime | None = None
    end: datetime | None = None
    unit: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict, repr=False)
    connection: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def lower(self) -> Any:
        """The lower bound of the only column; None: from the beginning."""
        bound = self._only
        return bound.lower if bound else None

    @property
    def upper(self) -> Any:
        """The upper bound of the only column; None: no upper bound."""
        bound = self._only
        return bound.upper if bound else None

    @property
    def lower_inclusive(self) -> bool:
        """Whether the request includes the lower bound itself."""
        bound = self._only
        return bound is not None and bound.lower_inclusive

    @property
    def upper_inclusive(self) -> bool:
        """Whether the request includes the upper bound itself."""
        bound = self._only
        return bound is not None and bound.upper_inclusive

    @property
    def time_range(self) -> tuple[datetime, datetime]:
        """Start and end of the range of time, which may be several windows.

        Raises:
            ConfigurationError: the request has no time range, as of a column watermark.
        """
        if self.start is None or self.end is None:
            raise ConfigurationError(
                f"expected a request of a window, found one {self.words}: use request.lower and request.upper"
            )
        return self.start, self.end

    @property
    def words(self) -> str:
        """The request in words, for errors."""
        parts = [bound.words for bound in self.bounds.values()]
        if self.start is not None and self.end is not None:
            parts.append(f"{self.start.isoformat()} .. {self.end.isoformat()}")
        parts += [f"{name} = {value!r}" for name, value in self.unit.items()]
        return ", ".join(parts) or "without bounds"

    @property
    def call_words(self) -> str:
        """What a function was called for, in words that follow ``called``."""
        is_bounded = self.bounds or self.start is not None or self.unit
        return f"for {self.words}" if is_bounded else self.words

    @property
    def _only(self) -> ColumnRange | None:
        if len(self.bounds) > 1:
            raise ConfigurationError(
                f"expected bounds of one column, found bounds of {', '.join(self.bounds)}: use "
                "request.bounds[column].lower"
            )
        return next(iter(self.bounds.values()), None)
