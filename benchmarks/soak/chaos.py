"""What happens during a soak, and when: drawn from a seed, so that the same seed and length always make the same plan.

What it meets is another matter: how far a run has come when it is killed depends on the machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

What = Literal[
    "file", "late file", "bad file", "rows", "correction", "killed run", "killed engine", "store paused", "store killed"
]  # fmt: skip
Disturbance = Literal["runs", "engine", "store"]

DISTURBANCES: tuple[Disturbance, ...] = ("runs", "engine", "store")
_ARRIVALS: dict[str, tuple[tuple[What, float], ...]] = {
    "arrivals": (("file", 1.0), ("late file", 0.12)),
    "readings": (("file", 0.7), ("late file", 0.08), ("bad file", 0.08)),
    "events": (("rows", 0.7), ("correction", 0.3)),
}
"""What comes to each dataflow, and how often, as a share of the rate."""

_KILLED_RUNS = 3.0
"""A minute."""

_RARE = {"engine": 5.0, "store": 2.0}
"""Minutes from one to the next. `strandline dev` gives up on an engine that dies four times in ten minutes."""

_UNDISTURBED = 30.0
"""Seconds at the beginning, in which the engine gets warm."""


@dataclass(frozen=True, order=True)
class Event:
    """Something that happens.

    Attributes:
        at: seconds since the beginning.
        what: it is.
        flow: the dataflow that it comes to; empty where it meets all.
        seconds: how long it lasts, or how old a run gets that is killed.
    """

    at: float
    what: What
    flow: str = ""
    seconds: float = 0.0


def planned(seed: int, minutes: float, rate: float, spared: frozenset[str] = frozenset()) -> list[Event]:
    """All events, in order.

    Args:
        seed: of all that is drawn.
        minutes: that they are spread over.
        rate: arrivals a minute of each dataflow, about.
        spared: disturbances that are left out; all else stays as it is.
    """
    found: list[Event] = []
    for flow, kinds in _ARRIVALS.items():
        for what, share in kinds:
            random = Random(f"{seed}:{flow}:{what}")
            found += [Event(at, what, flow) for at in _moments(random, minutes, rate * share)]
    disturbances = {
        "runs": _killed_runs(Random(f"{seed}:runs"), minutes),
        "engine": _killed_engines(Random(f"{seed}:engine"), minutes),
        "store": _outages(Random(f"{seed}:store"), minutes),
    }
    found += [event for name, events in disturbances.items() if name not in spared for event in events]
    return sorted(found)


def _moments(random: Random, minutes: float, rate: float) -> list[float]:
    """At random, so many a minute."""
    found, at = [], random.expovariate(rate / 60)
    while at < minutes * 60:
        found.append(at)
        at += random.expovariate(rate / 60)
    return found


def _killed_runs(random: Random, minutes: float) -> list[Event]:
    moments = [at for at in _moments(random, minutes, _KILLED_RUNS) if at > _UNDISTURBED]
    return [Event(at, "killed run", seconds=random.uniform(0, 8)) for at in moments]


def _killed_engines(random: Random, minutes: float) -> list[Event]:
    return [Event(at, "killed engine") for at in _spaced(random, minutes, _RARE["engine"])]


def _outages(random: Random, minutes: float) -> list[Event]:
    """In turn the store answers nobody, or its process is killed; its connections are kept, or refused."""
    kinds: tuple[What, What] = ("store paused", "store killed")
    first = random.randrange(2)
    moments = enumerate(_spaced(random, minutes, _RARE["store"]), first)
    return [Event(at, kinds[number % 2], seconds=random.uniform(5, 25)) for number, at in moments]


def _spaced(random: Random, minutes: float, every: float) -> list[float]:
    """At least once; each in the middle of its share of the time, so that no two fall together."""
    count = max(1, round(minutes / every))
    share = (minutes * 60 - _UNDISTURBED) / count
    return [_UNDISTURBED + share * (number + random.uniform(0.3, 0.7)) for number in range(count)]
