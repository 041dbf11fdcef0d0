"""What a run is asked for: one value that every kind's ``plan`` takes (docs/cli.md, docs/guide-windows.md)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """A part of a dataflow's work units.

    Attributes:
        ranges: half-open stretches of time, epoch milliseconds; each window that intersects one is in the part. None: all windows.
        units: holds the identities of the part's units; None: all units.
    """

    ranges: tuple[tuple[int, int], ...] | None = None
    units: Container[str] | None = None


@dataclass(frozen=True)
class Due:
    """Load what is due.

    Attributes:
        of: the part that is looked at; None: everything.
    """

    of: Part | None = None


@dataclass(frozen=True)
class Forced:
    """Load a part again, whatever the cutoffs say.

    Attributes:
        of: the part.
    """

    of: Part = Part()


@dataclass(frozen=True)
class LateOnly:
    """Load late files, and nothing else."""


Request = Due | Forced | LateOnly

DUE = Due()
