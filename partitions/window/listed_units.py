"""Units by value: ``"1,2"`` and ``[1, 2]`` are the same units of an integer column.

The planner keys units by their identity, in which ``1`` is not ``"1"``. This module finds the listed units
that are equal in the type of their column, and the identities under which the state knows them. See
docs/reference/windows.md, Units.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from partitions.sentinels import canonical
from partitions.unit_values import ValueType, fit_value
from partitions.window.units import unit_of

Value = Hashable
"""A unit's value: equal for all its spellings."""


def unit_value(
    identity: str, kinds: Mapping[str, ValueType], texts: Mapping[str, Callable[[Any], str]], zone: tzinfo
) -> Value:
    """Return a unit's value, which is equal for all its spellings.

    Args:
        identity: the unit's identity.
        kinds: the types of the columns with its values, by name. A value of any other name keeps its own
        type.
        texts: functions that return the text by which a value is requested, such as the name of a folder.
        zone: the zone of times without one.
    """
    parts: list[tuple[str, Hashable, str | None]] = []
    for name, value in sorted(unit_of(identity).items()):
        requested_text = texts[name](value) if name in texts else None
        if name not in kinds:
            parts.append((name, canonical(value) if requested_text is None else "", requested_text))
            continue
        try:
            typed_value: Hashable = (kinds[name], _hashable_value(fit_value(value, kinds[name], zone)))
        except ValueError:
            typed_value = canonical(value)
        parts.append((name, typed_value, requested_text))
    return tuple(parts)


def state_identities(
    units: Sequence[str], state_units: Collection[str], value: Callable[[str], Value]
) -> tuple[str, ...]:
    """Return units without repeated values, in their order.

    A unit has the identity that the state knows; else its first listed one.

    Args:
        units: the units' identities, as they are listed.
        state_units: the identities of units in the state.
        value: returns the value of an identity.
    """
    of_state = {value(unit): unit for unit in state_units}
    of_state |= {value(unit): unit for unit in units if unit in state_units}
    chosen: dict[Value, str] = {}
    for unit in units:
        of_unit = value(unit)
        chosen.setdefault(of_unit, of_state.get(of_unit, unit))
    return tuple(chosen.values())


def may_have_equal_units(units: Sequence[str], state_units: Collection[str], zone: tzinfo) -> bool:
    """Return whether two units, of these and those of the state, may be equal in some column type.

    Cheap. If it returns False, the column types need not be looked up.
    """
    new_units = [unit for unit in units if unit not in state_units]
    if not new_units and len(units) > _MAX_COMPARED:
        return False
    loose_values = {loose_spelling(unit, zone) for unit in units}
    if len(loose_values) < len(units):
        return True
    other_state_units = (unit for unit in state_units if unit not in units) if new_units else ()
    return any(loose_spelling(unit, zone) in loose_values for unit in other_state_units)


_MAX_COMPARED = 10_000
"""The most units, all in the state already, that are compared with each other: a source with more lists each only once."""


def loose_spelling(identity: str, zone: tzinfo) -> str:
    """Return text that is equal for all spellings of a unit in any column types; other units may share it."""
    return canonical({name: _loose_text(value, zone) for name, value in unit_of(identity).items()})


@dataclass(frozen=True)
class ListedUnits:
    """Units as a user lists them, which a state may spell differently.

    Attributes:
        units: the units' identities, distinct.
        zone: the zone of times without one.
    """

    units: tuple[str, ...]
    zone: tzinfo

    def spelling_of(self, identity: str) -> str | None:
        """Return the listed unit that an identity spells; None if there is none, or several."""
        if identity in self._identities:
            return identity
        spellings = self._by_likeness.get(loose_spelling(identity, self.zone), [])
        return spellings[0] if len(spellings) == 1 else None

    @cached_property
    def _identities(self) -> frozenset[str]:
        return frozenset(self.units)

    @cached_property
    def _by_likeness(self) -> dict[str, list[str]]:
        units_by_likeness: dict[str, list[str]] = {}
        for unit in self.units:
            units_by_likeness.setdefault(loose_spelling(unit, self.zone), []).append(unit)
        return units_by_likeness


@dataclass(frozen=True)
class SelectedUnits:
    """Selected listed units: ``unit in units`` for any spelling of the state.

    Attributes:
        selected: the selected identities, as they are listed.
        listed: all listed units.
    """

    selected: frozenset[str]
    listed: ListedUnits

    def __contains__(self, unit: object) -> bool:
        return isinstance(unit, str) and self.listed.spelling_of(unit) in self.selected


def _hashable_value(value: Any) -> Hashable:
    """Return a column's value in a form that is the same for all equal values."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        hashable: Hashable = value
        return hashable
    return _number(value)


def _number(value: float | Decimal) -> str:
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    return str(number.normalize()) if number else "0"


def _loose_text(value: Any, zone: tzinfo) -> str | None:
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case int() | float() | Decimal():
            return _number(value)
        case datetime():
            return _instant(value, zone)
        case date():
            return _instant(datetime(value.year, value.month, value.day), zone)  # noqa: DTZ001 - of the zone
    text = str(value).strip()
    try:
        return _number(Decimal(text))
    except (InvalidOperation, ValueError):
        pass
    try:
        return _instant(datetime.fromisoformat(text), zone)
    except (ValueError, OverflowError):
        return text.casefold()


def _instant(at: datetime, zone: tzinfo) -> str:
    try:
        return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).isoformat()
    except OverflowError:
        return at.isoformat()
