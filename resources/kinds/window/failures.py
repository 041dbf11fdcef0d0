"""The search for work units that cannot be read, with few test reads, and the error that names them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo

from partitions.errors import BadUnits
from partitions.plan import pluralize
from partitions.spelling import first_few
from partitions.window.alike_reasons import describe_failures
from partitions.window.work_unit import FailedUnit, WorkUnit, describe_works

_SHOWN = 20
"""The most kinds of reasons that an error names."""


Probe = Callable[[Sequence[WorkUnit]], str | None]
"""Reads some work units and nothing else; why that fails, or None. Raises if the source as a whole does not answer."""


def failing(works: Sequence[WorkUnit], probe: Probe) -> dict[WorkUnit, str]:
    """Return the work units that cannot be read, each with the reason.

    Probes the work units of each unit together and halves those that fail. If the first and the last
    window of a failing part fail alike, all between count as failed without a probe of their own.

    Args:
        works: the work units of a slice whose write failed.
        probe: reads some of them.
    """
    by_unit: dict[str, list[WorkUnit]] = {}
    for work in works:
        by_unit.setdefault(work.unit, []).append(work)
    return dict(work for of_unit in by_unit.values() for work in _failing(of_unit, probe))


def _failing(works: Sequence[WorkUnit], probe: Probe) -> Iterator[tuple[WorkUnit, str]]:
    """Yield the work units of one unit that cannot be read, with the reason."""
    why = probe(works)
    if why is None:
        return
    ends = {probe((work,)) for work in (works[0], works[-1])} if len(works) > 2 else set()
    if len(works) == 1 or ends == {why}:
        yield from ((work, why) for work in works)
        return
    half = len(works) // 2
    yield from _failing(works[:half], probe)
    yield from _failing(works[half:], probe)


def bad_units(reasons: Mapping[WorkUnit, str], zone: tzinfo) -> BadUnits:
    """Return the error that names work units: adjacent windows as one range, and each kind of reason once."""
    alike = describe_failures([FailedUnit(work, why) for work, why in reasons.items()], zone)
    descriptions = first_few([f"{works}: {why}" for works, why in alike], _SHOWN, between="; ")
    return BadUnits(
        f"{pluralize(len(reasons), 'work unit')} cannot be read: {descriptions}",
        part=describe_works(list(reasons), zone),
        why=first_few([why for _, why in alike], _SHOWN, between="; "),
        units={work.key: why for work, why in reasons.items()},
    )
