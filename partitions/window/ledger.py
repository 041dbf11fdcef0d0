"""The ledger of a dataflow: every committed window of every unit is an interval (spec 03, Ledger)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cached_property
from typing import Any, NamedTuple

from partitions.instants import as_datetime, floor_minute
from partitions.window.coverage import NOTHING, Coverage, Coverages
from partitions.window.definition import WindowWatermark
from partitions.window.state import WindowState
from partitions.window.units import unit_of


class UnitLedger(NamedTuple):
    """A unit and what is known of it.

    Attributes:
        unit: its identity.
        gone: whether the units no longer hold it.
    """

    unit: str
    gone: bool
    coverage: Coverage


@dataclass(frozen=True)
class Ledger:
    """All units of a dataflow at one instant.

    Attributes:
        start: ``from``; None without a time dimension, as is ``end``.
        end: ``to``, or now where that is earlier.
        zone: of texts.
        units: in the order that they were given; those that are gone last.
    """

    dataflow: str
    now: datetime
    start: int | None
    end: int | None
    zone: tzinfo
    units: tuple[UnitLedger, ...]

    @cached_property
    def complete_up_to(self) -> int | None:
        """How far all units are complete that are not gone; None where one has nothing, and where there is none."""
        reached = [one.coverage.complete_up_to for one in self.units if not one.gone]
        known = [instant for instant in reached if instant is not None]
        return min(known) if known and len(known) == len(reached) else None

    @cached_property
    def groups(self) -> list[tuple[UnitLedger, list[str]]]:
        """Units that are alike, with all their names, in the order of the first of each."""
        alike: dict[tuple[int, bool], tuple[UnitLedger, list[str]]] = {}
        for one in self.units:
            alike.setdefault((id(one.coverage), one.gone), (one, []))[1].append(one.unit)
        return list(alike.values())

    @cached_property
    def counts(self) -> dict[str, int]:
        """Units, and of those that are not gone the complete ones and all gaps; overlaps of all."""
        there = [one.coverage for one in self.units if not one.gone]
        failed = sum(any(gap[2].why == "failed" for gap in one.gaps) for one in there)
        return {
            "units": len(there),
            "gone": len(self.units) - len(there),
            "complete": sum(not one.gaps for one in there),
            "failed": failed,
            "gaps": sum(len(one.gaps) for one in there),
            "overlaps": sum(len(one.coverage.overlaps) for one in self.units),
        }

    def as_json(self) -> dict[str, Any]:
        """The public form: instants as ISO text in the definition's zone."""
        return {
            "dataflow": self.dataflow,
            "now": self.now.isoformat(),
            "from": self._at(self.start),
            "to": self._at(self.end),
            "complete_up_to": self._at(self.complete_up_to),
            "counts": self.counts,
            "units": [self._unit(one) for one in self.units],
        }

    def _unit(self, one: UnitLedger) -> dict[str, Any]:
        found = one.coverage
        return {
            "unit": unit_of(one.unit),
            "gone": one.gone,
            "covered": [self._range(*each) for each in found.covered],
            "gaps": [
                {
                    **self._range(start, end),
                    **{name: value for name, value in cause._asdict().items() if value},
                }
                for start, end, cause in found.gaps
            ],
            "overlaps": [self._range(*each) for each in found.overlaps],
            "complete_up_to": self._at(found.complete_up_to),
        }

    def _range(self, start: int, end: int) -> dict[str, str | None]:
        return {"start": self._at(start), "end": self._at(end)}

    def _at(self, instant: int | None) -> str | None:
        return None if instant is None else as_datetime(instant, self.zone).isoformat()


def ledger(
    definition: WindowWatermark, state: WindowState, units: Sequence[str], now: datetime, *, dataflow: str
) -> Ledger:
    """Look at all that is committed, once.

    Args:
        definition: what the user declared.
        state: what is committed.
        units: identities, in the order that they were given.
        now: aware.
        dataflow: its name.
    """
    gone = sorted(set(state.units) - set(units))
    every = [*((unit, False) for unit in units), *((unit, True) for unit in gone)]
    if definition.time_entry is None:
        found = tuple(UnitLedger(unit, is_gone, NOTHING) for unit, is_gone in every)
        return Ledger(dataflow, now, None, None, definition.zone, found)
    start = definition.from_at(now)
    end = max(min(definition.to_at(now), floor_minute(now)), start)
    look = Coverages(state, definition.windows(now), start, end)
    found = tuple(UnitLedger(unit, is_gone, look.of(unit, gone=is_gone)) for unit, is_gone in every)
    return Ledger(dataflow, now, start, end, definition.zone, found)
