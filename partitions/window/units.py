"""Units: the values that windows are loaded for (docs/reference/windows.md).

The user lists them, or a secondary input provides them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from partitions.errors import (
    ConfigurationError,
    CorruptWatermark,
    InvalidWatermarkValue,
    PlanError,
    StrandlineError,
)
from partitions.json_faults import parse_json
from partitions.sentinels import canonical, parse_canonical
from partitions.window.extent import Unit
from partitions.window.secondary_input import SecondaryInput

MAX_UNITS = 100_000
"""The most distinct units of a definition."""

NO_UNIT = canonical({})
"""The identity of the one unit of a definition without units."""


def identity(unit: Unit) -> str:
    """Return a unit's canonical JSON: sorted keys, no spaces.

    Raises:
        PlanError: if a value cannot be stored.
    """
    try:
        return canonical(dict(unit))
    except InvalidWatermarkValue as error:
        raise PlanError(f"unit {dict(unit)!r}: {error.message}") from error


def unit_of(text: str) -> dict[str, Any]:
    """Return the unit of an identity. Its names may even be the name of a sentinel.

    Raises:
        CorruptWatermark: if the text is no identity.
    """
    unit = parse_canonical(text)
    if not isinstance(unit, dict):
        raise CorruptWatermark(f"unit: expected an object, found {text}")
    return unit


def parse_units(value: Any) -> tuple[Any, ...]:
    """Parse the units that a user lists: comma-separated text, a JSON array as text, or an array.

    Duplicates are merged. A member is a text, a number, or an object with the names and values of the
    unit.

    Raises:
        ConfigurationError: for another form, and for an empty unit.
    """
    items = _items(value)
    units = [item.strip() if isinstance(item, str) else item for item in items]
    for unit in units:
        _check(unit)
    if not units or "" in units:
        raise ConfigurationError("expected at least one unit and no empty one, found an empty one")
    distinct_units: dict[str, Any] = {}
    try:
        for unit in units:
            distinct_units.setdefault(canonical(unit), unit)
    except InvalidWatermarkValue as error:
        raise ConfigurationError(f"expected units that can be stored: {error.message}") from error
    return tuple(distinct_units.values())


def _check(unit: Any) -> None:
    """Raise ConfigurationError if a member is no unit."""
    if isinstance(unit, dict):
        wrong = [name for name in unit if not isinstance(name, str) or not name.strip()]
        odd = [
            value for value in unit.values() if value is not None and not isinstance(value, str | int | float)
        ]
        if wrong or odd:
            raise ConfigurationError(
                f"expected an object of names to texts, numbers or null as a unit, found {unit!r}"
            )
        if all(value in (None, "") for value in unit.values()):
            raise ConfigurationError(f"expected at least one unit and no empty one, found {unit!r}")
    elif not isinstance(unit, str | int | float):
        raise ConfigurationError(f"expected units that are texts, numbers or objects, found {unit!r}")


def _items(value: Any) -> list[Any]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = parse_json(value, "expected a JSON array in the text")
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, list | tuple):
        return list(value)
    raise ConfigurationError(
        f"expected comma-separated text or an array of units, found {'nothing' if value is None else type(value).__name__}"
    )


def list_units(
    listed_units: tuple[Unit, ...] | None,
    inputs: Sequence[SecondaryInput],
    read: Callable[[SecondaryInput], Iterable[Mapping[str, Any]]],
) -> tuple[str, ...]:
    """Return the distinct identities of all units, in the order in which they are listed or read.

    Args:
        listed_units: the units that the user lists; None if secondary inputs provide them.
        inputs: the secondary inputs.
        read: returns the rows of a secondary input.

    Raises:
        PlanError: if a secondary input cannot be read (that is no empty list), or has more than
        :data:`MAX_UNITS` units.
    """
    if listed_units is not None:
        return distinct_identities(listed_units)
    try:
        return _collect_identities(unit for secondary in inputs for unit in secondary.units(read(secondary)))
    except StrandlineError as error:
        if error.transient or isinstance(error, PlanError):
            raise
        raise PlanError(
            f"secondary_input cannot be read, so nothing was planned: {error.message}", code="secondary_input"
        ) from error


def _collect_identities(units: Iterable[Unit]) -> tuple[str, ...]:
    identities: dict[str, None] = {}
    for unit in units:
        identities[identity(unit)] = None
        if len(identities) > MAX_UNITS:
            raise PlanError(
                f"secondary_input: expected at most {MAX_UNITS} units, found more, so nothing was "
                "planned. Narrow them with filters, or in the query",
                code="secondary_input",
            )
    return tuple(identities)


def distinct_identities(units: Iterable[Unit]) -> tuple[str, ...]:
    """Return the distinct identities of units, in the order of their first occurrence."""
    return tuple(dict.fromkeys(map(identity, units)))


def check_min_units(units: Sequence[str], min_units: int, dataflow: str) -> None:
    """Raise PlanError if there are fewer units than ``min_units``, as with an incomplete source.

    The one unit of a definition without units does not count.
    """
    count = len(units) - (NO_UNIT in units)
    if count < min_units:
        raise PlanError(
            f"dataflow {dataflow}: watermark.min_units: expected at least {min_units} units, found {count}. Nothing was planned:"
            " check that the secondary input is complete, or lower min_units",
            code="below_min_units",
        )
