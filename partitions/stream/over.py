"""Over-windows: a row leaves with its values once no row that they need can come.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Function = Literal["row_number", "rank", "dense_rank", "lag", "lead", "max", "sum"]

NUMBERING: tuple[Function, ...] = ("row_number", "rank", "dense_rank")
"""Functions that count from the first row of a partition."""


@dataclass(frozen=True)
class OverCall:
    """One computed value of a row.

    Attributes:
        fn: the function; ``row_number`` follows the order of the rows, the ranks their event time.
        column: the column of lag, lead, max and sum.
        offset: the offset of lag and lead, in rows.
        frame: of max and sum: first and last row, relative to this one; NULLs are ignored, and an empty
        frame gives NULL.
    """

    fn: Function
    column: str = ""
    offset: int = 1
    frame: tuple[int, int] = (0, 0)

    @property
    def reach(self) -> tuple[int, int]:
        """Return the first and the last row that the value needs, relative to its own."""
        match self.fn:
            case "lag":
                return -self.offset, -self.offset
            case "lead":
                return self.offset, self.offset
            case "max" | "sum":
                return self.frame
        return 0, 0


@dataclass(frozen=True)
class Reach:
    """The number of rows of a partition that are kept below the global watermark.

    Attributes:
        ahead: so many of the last rows wait for rows that their values look ahead to.
        behind: so many rows that have left are kept for the values of later ones.
    """

    ahead: int
    behind: int

    @classmethod
    def of(cls, calls: Iterable[OverCall]) -> Reach:
        """Return the farthest reach of all values. A frame without rows needs none."""
        spans = [call.reach for call in calls if call.reach[0] <= call.reach[1]]
        return cls(max([0, *(last for _, last in spans)]), max([0, *(-first for first, _ in spans)]))
