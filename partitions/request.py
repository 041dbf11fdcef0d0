"""What a run is asked for: one value that every kind's ``plan`` takes (docs/reference/cli.md, docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from partitions.replay.chunks import Chunk


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
        reason: what a replay was asked for, as its entries say it; None: no replay asks.
    """

    of: Part = Part()
    reason: str | None = None


@dataclass(frozen=True)
class LateOnly:
    """Load late files, and nothing else."""


@dataclass(frozen=True)
class Replay:
    """Read a chunk of a range again, whatever the watermark says (docs/reference/replay.md).

    Attributes:
        chunk: the rows.
        since: number of the newest entry when the replay began; entries up to it are none of its own.
        reason: what was asked for, as its entries say it; None: the log has no other entries.
        saves: whether the state after the chunk is its end; else it stays.
        replaces: whether rows of the chunk that are in the table already go in the commit that loads it.
        clears: whether a chunk without rows is loaded, too, since the table holds some.
        leaves_above: whether rows above the state are left to the next run, if it would add them once more.
    """

    chunk: Chunk
    since: int = 0
    reason: str | None = None
    saves: bool = True
    replaces: bool = False
    clears: bool = False
    leaves_above: bool = False


@dataclass(frozen=True)
class ReplayFiles:
    """Read files again, whatever the watermark says (docs/reference/replay.md).

    Attributes:
        paths: relative to the source, in pair order.
        since: number of the newest entry when the replay began; entries up to it are none of its own.
        reason: what was asked for, as its entries say it.
        replaces: whether rows of the files that are in the table already go in the commit that loads them.
        saves: whether the state after it is its last file, unless it is above that already; else it stays.
    """

    paths: tuple[str, ...]
    since: int
    reason: str
    replaces: bool = False
    saves: bool = False


Request = Due | Forced | LateOnly | Replay | ReplayFiles

DUE = Due()
