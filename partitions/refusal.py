"""Refused combinations of a dataflow's parts, as messages; ``partitions.supported`` decides them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Refusal(NamedTuple):
    """One refused combination.

    Attributes:
        key: key of the part at fault.
        actual: the refused text, in words.
        expected: in words, with the reason.
    """

    key: tuple[str | int, ...]
    actual: str
    expected: str

    def __str__(self) -> str:
        """Return a sentence that starts with the key."""
        return f"{'.'.join(map(str, self.key))}: expected {self.expected}, found {self.actual}"


class PartsDoNotFit(ValueError):
    """All refused combinations of a dataflow, so that pydantic passes them on together."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        """Keep the refusals; the text lists them all."""
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = tuple(refusals)
