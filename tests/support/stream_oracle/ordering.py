"""The order of a stream's rows: by event time, then by ``order_by`` (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from partitions.stream.event_time import EventTime

Row = Mapping[str, Any]
"""A row's columns by name."""


@dataclass(frozen=True)
class Order:
    """The order of rows.

    Attributes:
        event_time: the column of event times; never NULL here.
        ties: columns that order rows of one event time; NULL comes first, as in Spark.
    """

    event_time: str
    ties: tuple[str, ...] = ()

    def time(self, row: Row) -> EventTime:
        """Return a row's event time."""
        return row[self.event_time]

    def sorted(self, rows: Iterable[Row]) -> tuple[Row, ...]:
        """Return rows in order; full ties keep their order."""
        return tuple(sorted(rows, key=self._key))

    def _key(self, row: Row) -> tuple[Any, ...]:
        ties = ((row[name] is not None, row[name]) for name in self.ties)
        return (self.time(row), *(part if part[0] else (False,) for part in ties))
