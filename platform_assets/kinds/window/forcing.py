"""``strandline run --force``: windows that are read again as a whole."""

from __future__ import annotations

import json
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import Instant
from partitions.request import Forced, WorkUnitSelection
from partitions.window.listed_units import ListedUnits
from partitions.window.units import identity
from resources.kinds.window.retention import refuse_expired_windows
from resources.kinds.window.unit_lookup import units_of
from resources.platform.platform import Platform


def forced_request(
    platform: Platform, dataflow: Dataflow, force: str, unit: str | None, now: datetime
) -> Forced:
    """Return the request of ``--force`` and ``--unit``; instants are read in the definition's zone.

    Raises:
        ConfigurationError: for another form, an inverted range, an unknown unit, or expired windows.
    """
    start, dots, end = force.partition("..")
    if not dots:
        raise ConfigurationError(
            f"--force: expected START..END, such as 2020-01-01..2020-02-01, found {force!r}"
        )
    zone = dataflow.window.zone
    try:
        lower, upper = Instant.parse(start, zone).at(now), Instant.parse(end, zone).at(now)
    except ConfigurationError as error:
        raise ConfigurationError(f"--force: {error.message}") from error
    if lower >= upper:
        raise ConfigurationError(f"--force: expected a START before END, found {force!r}")
    refuse_expired_windows(dataflow, upper, now)
    units = frozenset((_known_unit(platform, dataflow, unit),)) if unit else None
    return Forced(WorkUnitSelection(((lower, upper),), units))


def _known_unit(platform: Platform, dataflow: Dataflow, text: str) -> str:
    units = units_of(platform, dataflow)
    try:
        unit_identity = identity(json.loads(text))
    except (ValueError, TypeError) as error:
        such_as = units[0] if units else '{"airport": "LGA"}'
        raise ConfigurationError(f"--unit: expected JSON such as {such_as}, found {text!r}") from error
    unit = ListedUnits(units, dataflow.window.zone).spelling_of(unit_identity)
    if unit is None:
        raise ConfigurationError(
            f"--unit: expected a unit of {dataflow.name}, such as {', '.join(units[:5]) or 'none'}, found {unit_identity}"
        )
    return unit
