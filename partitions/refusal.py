"""Parts of a dataflow that do not go together, as messages; which these are is decided in ``partitions.supported``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Refusal(NamedTuple):
    """One combination that is refused.

    Attributes:
        key: of the part that is to blame.
        found: in words.
        expected: in words, with the reason.
    """

    key: tuple[str | int, ...]
    found: str
    expected: str

    def __str__(self) -> str:
        """In a sentence that begins with the key."""
        return f"{'.'.join(map(str, self.key))}: expected {self.expected}, found {self.found}"


class PartsDoNotFit(ValueError):
    """All combinations of a dataflow that are refused: pydantic passes them on together."""

    def __init__(self, refusals: Sequence[Refusal]) -> None:
        """Keep each of them; the text has them all."""
        super().__init__("; ".join(map(str, refusals)))
        self.refusals = tuple(refusals)
