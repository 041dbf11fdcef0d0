"""The work that a run is asked to load: one value for every kind's ``plan``.

See docs/reference/cli.md and docs/reference/windows.md.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from partitions.reconcile.repair import Repaired
from partitions.replay.chunks import Chunk

CommitNumber = tuple[int, str | None]
"""The number of a commit of a table, and its identity, which another commit of that number lacks."""


@dataclass(frozen=True)
class WorkUnitSelection:
    """Some of a dataflow's work units.

    Attributes:
        ranges: half-open intervals, epoch milliseconds; every window that intersects one is selected.
        None: all windows.
        units: identities of the selected units; None: all units.
    """

    ranges: tuple[tuple[int, int], ...] | None = None
    units: Container[str] | None = None


@dataclass(frozen=True)
class Due:
    """Load what is due.

    Attributes:
        of: the selected work units; None: all.
    """

    of: WorkUnitSelection | None = None


@dataclass(frozen=True)
class Forced:
    """Load work units again, whatever the cutoffs say.

    Attributes:
        of: the selected work units.
        reason: the replay's reason for its entries; None: this is no replay.
    """

    of: WorkUnitSelection = WorkUnitSelection()
    reason: str | None = None


@dataclass(frozen=True)
class LateOnly:
    """Load late files, and nothing else."""


@dataclass(frozen=True)
class Replay:
    """Read a chunk of a range again, whatever the watermark says (docs/reference/replay.md).

    Attributes:
        chunk: the rows to read again.
        since: number of the newest entry when the replay began; its own entries come after it.
        reason: the reason for its entries; None: the log has no other entries.
        saves: whether the state moves to the end of the chunk; else it stays.
        replaces: whether the commit also deletes the chunk's rows that the table already has.
        clears: whether to load a chunk without rows, too, since the table holds some.
        leaves_above: whether to leave rows above the state to the next run, if that would add them a
        second time.
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
        since: number of the newest entry when the replay began; its own entries come after it.
        reason: the reason for its entries.
        replaces: whether the commit also deletes the files' rows that the table already has.
        saves: whether the state moves to the last file, unless it is above it already; else it stays.
        gone_paths: paths of files that are gone at the source, whose rows the commit deletes.
    """

    paths: tuple[str, ...]
    since: int
    reason: str
    replaces: bool = False
    saves: bool = False
    gone_paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplayCommits:
    """Read commits of a table again, whatever the position says (docs/reference/replay.md).

    Attributes:
        after: number and identity of the commit before the first one; None: there is none.
        last: number and identity of the last one.
        since: number of the newest entry when the replay began; its own entries come after it.
        reason: the reason for its entries.
        replaces: whether the commit also deletes the rows that the table has of these commits.
        saves: whether the state moves behind the last one; else it stays.
    """

    after: CommitNumber | None
    last: CommitNumber
    since: int
    reason: str
    replaces: bool = False
    saves: bool = False


@dataclass(frozen=True)
class Repair:
    """Make rows of the table what the source has, after a comparison (docs/how-to/is-my-table-right.md).

    Attributes:
        repaired: the keys or ranges that differed.
        number: number of the newest entry, on which the repair builds.
        reason: the reason for its entry.
    """

    repaired: Repaired
    number: int
    reason: str


Request = Due | Forced | LateOnly | Replay | ReplayFiles | ReplayCommits | Repair

DUE = Due()
