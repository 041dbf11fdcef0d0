"""An alert: a dataflow, the condition that it is in, and the text for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Condition = Literal["failed", "late", "gaps", "stale"]

CONDITIONS: tuple[Condition, ...] = get_args(Condition)


@dataclass(frozen=True)
class Alert:
    """A dataflow that needs people.

    Attributes:
        dataflow: its name.
        condition: which kind of problem.
        text: for people: since when, what, and what to do.
    """

    dataflow: str
    condition: Condition
    text: str

    @property
    def key(self) -> str:
        """A text that identifies the problem from scan to scan."""
        return f"{self.dataflow}:{self.condition}"


def dataflow_of(key: str) -> str:
    """Return the dataflow that an alert's key names."""
    return key.partition(":")[0]


def condition_of(key: str) -> str:
    """Return the condition that an alert's key names."""
    return key.partition(":")[2]
