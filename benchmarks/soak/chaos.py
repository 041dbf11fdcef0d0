"""Plans the events of a soak from a seed: the same seed and length always give the same plan.

How far a run is when it is killed depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

EventKind = Literal[
    "file", "late file", "bad file", "rows", "correction", "killed run", "killed engine", "store paused", "store killed"
]  # fmt: skip
Disturbance = Literal["runs", "engine", "store"]

DISTURBANCES: tuple[Disturbance, ...] = ("runs", "engine", "store")
_ARRIVALS: dict[str, tuple[tuple[EventKind, float], ...]] = {
    "arrivals": (("file", 1.0), ("late file", 0.12)),
    "readings": (("file", 0.7), ("late file", 0.08), ("bad file", 0.08)),
    "events": (("rows", 0.7), ("correction", 0.3)),
}
"""The arrivals of each dataflow, and how often, as a share of the rate."""

_KILLED_RUNS = 3.0
"""Per minute."""

_RARE = {"engine": 5.0, "store": 2.0}
"""Minutes from one to the next. `strandline dev` ends if its engine dies four times in ten minutes."""

_UNDISTURBED = 30.0
"""Seconds at the beginning, while the engine warms up."""


@dataclass(frozen=True, order=True)
class Event:
    """An arrival or a disturbance.

    Attributes:
        at: seconds since the beginning.
        kind: the kind of event.
        flow: the dataflow that gets the arrival; empty for disturbances.
        seconds: how long it lasts, or the age at which a run is killed.
    """

    at: float
    kind: EventKind
    flow: str = ""
    seconds: float = 0.0


def planned(seed: int, minutes: float, rate: float, spared: frozenset[str] = frozenset()) -> list[Event]:
    """Return all events, in order.

    Args:
        seed: seed of all random numbers.
        minutes: length of the plan.
        rate: arrivals a minute for each dataflow, approximately.
        spared: disturbances to leave out; everything else stays the same.
    """
    all_events: list[Event] = []
    for flow, kinds in _ARRIVALS.items():
        for kind, share in kinds:
            random = Random(f"{seed}:{flow}:{kind}")
            all_events += [Event(at, kind, flow) for at in _moments(random, minutes, rate * share)]
    disturbances = {
        "runs": _killed_runs(Random(f"{seed}:runs"), minutes),
        "engine": _killed_engines(Random(f"{seed}:engine"), minutes),
        "store": _outages(Random(f"{seed}:store"), minutes),
    }
    all_events += [event for name, events in disturbances.items() if name not in spared for event in events]
    return sorted(all_events)


def _moments(random: Random, minutes: float, rate: float) -> list[float]:
    """Return random moments, ``rate`` per minute."""
    moments, at = [], random.expovariate(rate / 60)
    while at < minutes * 60:
        moments.append(at)
        at += random.expovariate(rate / 60)
    return moments


def _killed_runs(random: Random, minutes: float) -> list[Event]:
    moments = [at for at in _moments(random, minutes, _KILLED_RUNS) if at > _UNDISTURBED]
    return [Event(at, "killed run", seconds=random.uniform(0, 8)) for at in moments]


def _killed_engines(random: Random, minutes: float) -> list[Event]:
    return [Event(at, "killed engine") for at in _spaced(random, minutes, _RARE["engine"])]


def _outages(random: Random, minutes: float) -> list[Event]:
    """Return store outages, by turns paused (connections hang) and killed (connections are refused)."""
    kinds: tuple[EventKind, EventKind] = ("store paused", "store killed")
    first = random.randrange(2)
    moments = enumerate(_spaced(random, minutes, _RARE["store"]), first)
    return [Event(at, kinds[number % 2], seconds=random.uniform(5, 25)) for number, at in moments]


def _spaced(random: Random, minutes: float, every: float) -> list[float]:
    """Return at least one moment, each in the middle of its share of the time, so that none coincide."""
    count = max(1, round(minutes / every))
    share = (minutes * 60 - _UNDISTURBED) / count
    return [_UNDISTURBED + share * (number + random.uniform(0.3, 0.7)) for number in range(count)]
