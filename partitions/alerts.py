"""What people are told of dataflows that need them: once when something begins, and once more when it is well again (docs/alerts.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from partitions.pauses import pause

Condition = Literal["failed", "late", "gaps", "stale"]

CONDITIONS: tuple[Condition, ...] = get_args(Condition)

_PASSING: frozenset[Condition] = frozenset({"late", "gaps"})
"""What the next run mostly mends: told if a second look finds it, too."""

APART = 300.0
"""Seconds between two messages: what begins or ends meanwhile is told together, and what does both is not told."""

SEEN, TOLD = "seen", "told"
"""What is known of an alert: found by one look, or told."""


@dataclass(frozen=True)
class Alert:
    """Something that a look has found.

    Attributes:
        dataflow: its name.
        condition: which kind of trouble.
        text: for people: since when, what, and what to do.
    """

    dataflow: str
    condition: Condition
    text: str

    @property
    def key(self) -> str:
        """A text that identifies the trouble from look to look."""
        return f"{self.dataflow}:{self.condition}"


@dataclass(frozen=True)
class News:
    """What a look adds to what is known.

    Attributes:
        began: to be told.
        ended: keys of what was told, and is well again.
        known: by key, what is known once it is told.
    """

    began: tuple[Alert, ...]
    ended: tuple[str, ...]
    known: Mapping[str, str]

    @property
    def untold(self) -> Mapping[str, str]:
        """What is known by key as long as it is not told."""
        return {**self.known, **{alert.key: SEEN for alert in self.began}, **dict.fromkeys(self.ended, TOLD)}

    @property
    def any(self) -> bool:
        """Whether there is something to tell."""
        return bool(self.began or self.ended)


@dataclass(frozen=True)
class Posting:
    """How the last message went.

    Attributes:
        at: when it was posted, seconds of the asker's own clock.
        refused: how often in turn the address has not taken it.
    """

    at: float = 0.0
    refused: int = 0

    def rest(self, now: float) -> float:
        """Seconds until the next message may be posted; none if the clock was put back."""
        waits = pause(self.refused) if self.refused else APART
        return max(0.0, self.at + waits - now) if self.at <= now else 0.0


def compare(known: Mapping[str, str], found: Collection[Alert], looked_at: Collection[str]) -> News:
    """Compare what a look has found with what is known.

    Args:
        known: as of the last look.
        found: now.
        looked_at: the dataflows that this look has judged; of others nothing changes.
    """
    now = {alert.key: alert for alert in found}
    after = {key: state for key, state in known.items() if dataflow_of(key) not in looked_at}
    began = []
    for key, alert in now.items():
        if known.get(key) != TOLD and (alert.condition not in _PASSING or key in known):
            began.append(alert)
        after[key] = TOLD if known.get(key) == TOLD or alert in began else SEEN
    ended = tuple(
        key
        for key, state in known.items()
        if state == TOLD and key not in now and dataflow_of(key) in looked_at
    )
    return News(tuple(began), ended, after)


def dataflow_of(key: str) -> str:
    """Return the dataflow that an alert's key is of."""
    return key.partition(":")[0]


def condition_of(key: str) -> str:
    """Return the kind of trouble that an alert's key is of."""
    return key.partition(":")[2]
