"""An alert: a dataflow, its condition, and the text for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Condition = Literal[
    "failed", "late", "gaps", "stale", "duplicate_files", "quarantined", "bad_records", "rejected"
]

CONDITIONS: tuple[Condition, ...] = get_args(Condition)


@dataclass(frozen=True)
class Alert:
    """A problem of a dataflow that needs people.

    Attributes:
        dataflow: the dataflow's name.
        condition: the kind of problem.
        text: for people: since when, what happened, and what to do.
        may_pass: whether it is reported only if a second scan finds it, too, since it may pass by itself.
    """

    dataflow: str
    condition: Condition
    text: str
    may_pass: bool = False

    @property
    def key(self) -> str:
        """A text that identifies the problem from scan to scan."""
        return key_of(self.dataflow, self.condition)


def key_of(dataflow: str, condition: Condition) -> str:
    """Return the key of the alert of a condition."""
    return f"{dataflow}:{condition}"


def dataflow_of(key: str) -> str:
    """Return the dataflow in an alert's key."""
    return key.partition(":")[0]


def condition_of(key: str) -> str:
    """Return the condition in an alert's key."""
    return key.partition(":")[2]
