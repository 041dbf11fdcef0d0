"""Units by their values: ``"1,2"`` and ``[1, 2]`` over a column of whole numbers are the same units (docs/reference/windows.md, Units).

The planner keys units by their identity, in which ``1`` is not ``"1"``. Here is what comes before it: which of the units that are listed are the same in
the type of their column, and under which identity the state knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from partitions.sentinels import canonical
from partitions.unit_values import Kind, fitted
from partitions.window.units import unit_of

Value = Hashable
"""What two spellings of a unit have in common."""


def value_of(
    identity: str, kinds: Mapping[str, Kind], texts: Mapping[str, Callable[[Any], str]], zone: tzinfo
) -> Value:
    """Return what a unit is, however it is spelt.

    Args:
        identity: of the unit.
        kinds: of the columns that hold its values, by the names of these. A value of any other name stays what it is.
        texts: makes a value the text that it is asked for by, as the name of a folder, say.
        zone: of times without one.
    """
    parts: list[tuple[str, Hashable, str | None]] = []
    for name, value in sorted(unit_of(identity).items()):
        asked = texts[name](value) if name in texts else None
        if name not in kinds:
            parts.append((name, canonical(value) if asked is None else "", asked))
            continue
        try:
            held: Hashable = (kinds[name], _plain(fitted(value, kinds[name], zone)))
        except ValueError:
            held = canonical(value)
        parts.append((name, held, asked))
    return tuple(parts)


def known_units(
    units: Sequence[str], known: Collection[str], value: Callable[[str], Value]
) -> tuple[str, ...]:
    """Return units, each value once, in their order: under the identity that is known of it, else as it is listed first.

    Args:
        units: identities, as they are listed.
        known: identities that a state has.
        value: of an identity.
    """
    of_state = {value(unit): unit for unit in known}
    of_state |= {value(unit): unit for unit in units if unit in known}
    found: dict[Value, str] = {}
    for unit in units:
        of_unit = value(unit)
        found.setdefault(of_unit, of_state.get(of_unit, unit))
    return tuple(found.values())


def may_be_respelt(units: Sequence[str], known: Collection[str], zone: tzinfo) -> bool:
    """Return whether some of these units may be the same as others, or as one that a state knows, in some type of their columns.

    Cheap, and right where it says no: then nobody need ask for the types.
    """
    rest = [unit for unit in units if unit not in known]
    if not rest and len(units) > _LOOKED_THROUGH:
        return False
    seen = {alike(unit, zone) for unit in units}
    if len(seen) < len(units):
        return True
    others = (unit for unit in known if unit not in units) if rest else ()
    return any(alike(unit, zone) in seen for unit in others)


_LOOKED_THROUGH = 10_000
"""Units that are all known already; more are not compared with each other: a source that has so many gives each once."""


def alike(identity: str, zone: tzinfo) -> str:
    """Return text that is the same for all spellings of a unit in any type of its columns, and may be that of others."""
    return canonical({name: _loose(value, zone) for name, value in unit_of(identity).items()})


@dataclass(frozen=True)
class Listed:
    """Units as a user lists them, which a state may know by other spellings.

    Attributes:
        units: identities, each once.
        zone: of times without one.
    """

    units: tuple[str, ...]
    zone: tzinfo

    def spelling_of(self, identity: str) -> str | None:
        """Return the one of the units that an identity is a spelling of; None if there is none, or several."""
        if identity in self._known:
            return identity
        found = self._by_likeness.get(alike(identity, self.zone), [])
        return found[0] if len(found) == 1 else None

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.units)

    @cached_property
    def _by_likeness(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for unit in self.units:
            found.setdefault(alike(unit, self.zone), []).append(unit)
        return found


@dataclass(frozen=True)
class SomeListed:
    """Some of the listed units: ``unit in units``, by whichever spelling a state knows it.

    Attributes:
        asked: identities, as they are listed.
        listed: all of them.
    """

    asked: frozenset[str]
    listed: Listed

    def __contains__(self, unit: object) -> bool:
        return isinstance(unit, str) and self.listed.spelling_of(unit) in self.asked


def _plain(value: Any) -> Hashable:
    """A value of a column, the same for all that compare as equal there."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        held: Hashable = value
        return held
    return _number(value)


def _number(value: float | Decimal) -> str:
    number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
    return str(number.normalize()) if number else "0"


def _loose(value: Any, zone: tzinfo) -> str | None:
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
