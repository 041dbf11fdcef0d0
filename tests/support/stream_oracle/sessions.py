"""Sessions: rows of one group, each within a gap of the one before (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partitions.stream.emission_rules import begins_session, is_session_closed
from partitions.stream.event_time import EventTime, Span
from tests.support.stream_oracle.ordering import Order, Row

Group = tuple[Any, ...]


@dataclass(frozen=True)
class Session:
    """One session.

    Attributes:
        group: the values that its rows share.
        rows: its rows in order, at least one.
        first: its first event time.
        last: its last event time; it closes when the global watermark is above this plus the gap.
    """

    group: Group
    rows: tuple[Row, ...]
    first: EventTime
    last: EventTime


@dataclass(frozen=True)
class SessionBuffer:
    """Rows of open sessions, one or more a group.

    Attributes:
        gap: the largest distance of two neighbours, inclusive.
        group_by: the columns whose values the rows of a session share.
        order: the order of rows in a session.
        open: the rows by group, in order.
    """

    gap: Span
    group_by: tuple[str, ...]
    order: Order
    open: Mapping[Group, tuple[Row, ...]] = field(default_factory=dict)

    def took(self, rows: Iterable[Row]) -> SessionBuffer:
        """Return it with more rows."""
        grown = {group: list(group_rows) for group, group_rows in self.open.items()}
        for row in rows:
            grown.setdefault(tuple(row[name] for name in self.group_by), []).append(row)
        sorted_rows = {group: self.order.sorted(group_rows) for group, group_rows in grown.items()}
        return SessionBuffer(self.gap, self.group_by, self.order, sorted_rows)

    def closed(self, value: EventTime | None) -> tuple[SessionBuffer, tuple[Session, ...]]:
        """Return the open rest, and the sessions that a global watermark closes, by last event time."""
        if value is None:
            return self, ()
        sessions = [session for group, rows in self.open.items() for session in self._sessions(group, rows)]
        out = sorted(
            (session for session in sessions if is_session_closed(session.last, value, self.gap)),
            key=lambda session: (session.last, session.first),
        )
        rest: dict[Group, tuple[Row, ...]] = {}
        for session in sessions:
            if not is_session_closed(session.last, value, self.gap):
                rest[session.group] = (*rest.get(session.group, ()), *session.rows)
        return SessionBuffer(self.gap, self.group_by, self.order, rest), tuple(out)

    def _sessions(self, group: Group, rows: tuple[Row, ...]) -> list[Session]:
        parts: list[list[Row]] = []
        for row in rows:
            if not parts or begins_session(self.order.time(row) - self.order.time(parts[-1][-1]), self.gap):
                parts.append([])
            parts[-1].append(row)
        return [
            Session(group, tuple(part), self.order.time(part[0]), self.order.time(part[-1])) for part in parts
        ]
