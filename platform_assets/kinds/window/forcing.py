"""``strandline run --force``: windows that are read again as a whole."""

from __future__ import annotations

from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.request import Forced, WorkUnitSelection
from partitions.window.asked_windows import parse_asked_windows, parse_units
from platform_assets.kinds.profile import CanForce
from resources.kinds.window.retention import refuse_expired_windows
from resources.kinds.window.unit_lookup import units_of
from resources.platform.platform import Platform


class ForcesWindows(CanForce):
    """Reads windows again, whatever the watermark says."""

    def forced_request(
        self, platform: Platform, dataflow: Dataflow, force: str, unit: str | None, now: datetime
    ) -> Forced:
        """Return the request of ``--force`` and ``--unit``; instants are read in the definition's zone.

        Raises:
            ConfigurationError: for another form, an inverted range, an unknown unit, or expired windows.
        """
        units, fields = units_of(platform, dataflow), dataflow.window.unit_fields
        selected = parse_asked_windows(force, units, (), fields, dataflow.window.zone, dataflow.name, now)
        if selected.start is None:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --force: expected a time, such as 2026-01-03 or 2026-01-01..2026-01-03, beside the"
                f" unit, found {force!r}"
            )
        lower, upper = selected.start, selected.start + 1 if selected.end is None else selected.end
        refuse_expired_windows(dataflow, upper, now)
        chosen = selected.units if selected.names_units else None
        if unit:
            named = parse_units(unit, units, fields, dataflow.window.zone, dataflow.name)
            chosen = named if chosen is None else tuple(name for name in named if name in chosen)
        return Forced(WorkUnitSelection(((lower, upper),), None if chosen is None else frozenset(chosen)))
