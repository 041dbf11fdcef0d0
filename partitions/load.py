"""How the rows of a slice go into its table: a value that the planner's layer chooses and a table carries out (docs/architecture.md).

Belongs here: which loads there are, and what each means for the rows that the table holds. How a format does it is the table's.
"""

from __future__ import annotations

from dataclasses import dataclass

from partitions.predicate import Predicate


@dataclass(frozen=True)
class Append:
    """Add the rows; delete none."""


@dataclass(frozen=True)
class Replace:
    """Delete the rows that fit a condition and add the slice's, in one commit.

    Attributes:
        where: over the table's columns. The rows that are added fit it, too.
    """

    where: Predicate


@dataclass(frozen=True)
class ReplaceAll:
    """Delete all rows and add the slice's, in one commit. The table takes the columns and the layout of what is added."""


Load = Append | Replace | ReplaceAll
