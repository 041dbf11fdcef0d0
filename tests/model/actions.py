"""What may happen to a dataflow: actions as values, whose ``repr`` is the code that makes them.

A schedule is a list of actions. ``ago`` counts actions: a backup of that time is put back, or runs on.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields


class Terse:
    """Shows only what differs from the defaults."""

    def __repr__(self) -> str:
        shown = [
            repr(getattr(self, one.name))
            if one.default is MISSING
            else f"{one.name}={getattr(self, one.name)!r}"
            for one in fields(self)  # type: ignore[arg-type]
            if one.default is MISSING or getattr(self, one.name) != one.default
        ]
        return f"do.{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, repr=False)
class Kill(Terse):
    """The process dies.

    Attributes:
        when: ``before`` or ``after`` something is put; ``during`` a commit, which lands later (:class:`Land`) or never.
        what: the folder of an object beside the log (``files``, ``quarantine``, ``schemas``, ``intents``, ``entries``,
            ``notes``), or ``commit``.
        times: at which occurrence.
    """

    when: str
    what: str
    times: int = 1


@dataclass(frozen=True, repr=False)
class Meanwhile(Terse):
    """Something else happens while a process is at a point, by somebody who takes that process for dead; then it goes on.

    Attributes:
        when, what, times: as of :class:`Kill`.
        action: what happens.
    """

    when: str
    what: str
    action: Action
    times: int = 1


@dataclass(frozen=True, repr=False)
class Arrive(Terse):
    """Files come, each above all that are there."""

    files: int = 1


@dataclass(frozen=True, repr=False)
class Late(Terse):
    """A file comes that sorts between the first two."""


@dataclass(frozen=True, repr=False)
class Run(Terse):
    """A run."""

    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Sweep(Terse):
    """A whole round of the sweep, with its policy."""

    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Follow(Terse):
    """A run; where it stops, the operator follows one of its choices."""

    choice: int = 0
    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Land(Terse):
    """The write of a run that was killed during its commit goes on to its end."""


@dataclass(frozen=True, repr=False)
class Set(Terse):
    """``state set`` to the file so many above the watermark."""

    ahead: int = 1
    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Rewind(Terse):
    """``state rewind`` by so many entries."""

    back: int = 1
    replace: bool = False
    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Reset(Terse):
    """``state reset``."""

    replace: bool = False
    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Adopt(Terse):
    """``state adopt``."""

    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Accept(Terse):
    """``state accept``."""

    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Import(Terse):
    """``state import`` of what was exported so many actions ago."""

    ago: int = 1
    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Release(Terse):
    """``files release`` of all that is in quarantine."""

    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class Unprocess(Terse):
    """``files unprocess`` of the first file that is loaded (tracking: set)."""

    kill: Kill | Meanwhile | None = None


@dataclass(frozen=True, repr=False)
class ChangeDefinition(Terse):
    """The definition becomes another one, or the first one again."""


@dataclass(frozen=True, repr=False)
class LoseState(Terse):
    """The state's folder is removed; an export of it is kept."""


@dataclass(frozen=True, repr=False)
class LoseList(Terse):
    """The newest list of files beside the log is removed."""


@dataclass(frozen=True, repr=False)
class RestoreState(Terse):
    """The state's folder is the one again that it was."""

    ago: int = 1


@dataclass(frozen=True, repr=False)
class RemoveTable(Terse):
    """The table's folder is removed."""


@dataclass(frozen=True, repr=False)
class RestoreTable(Terse):
    """The table's folder is the one again that it was."""

    ago: int = 1


@dataclass(frozen=True, repr=False)
class RestoreVersion(Terse):
    """``RESTORE TABLE`` to so many versions before the newest."""

    back: int = 1


@dataclass(frozen=True, repr=False)
class RecreateTable(Terse):
    """Somebody else removes the table and makes it anew, with so many rows, in so many commits."""

    rows: int = 0
    commits: int = 1


@dataclass(frozen=True, repr=False)
class AppendForeign(Terse):
    """Somebody else appends a row."""


@dataclass(frozen=True, repr=False)
class Overwrite(Terse):
    """Somebody else overwrites the table.

    Attributes:
        by: ``others``, with a row of theirs; ``part``, which replaces the rows of the first file alone; ``half``, with the first half of what was
            there; ``project``, as the first commit of another dataflow after its ``reset --replace``.
    """

    by: str = "others"


@dataclass(frozen=True, repr=False)
class CleanLog(Terse):
    """The table's log gets a checkpoint, and the commits before it are cleaned up."""


@dataclass(frozen=True, repr=False)
class CopyRuns(Terse):
    """Another project goes on from a copy of the state, on the same source and lake: it runs once."""

    ago: int = 1


Action = (
    Arrive | Late | Run | Sweep | Follow | Land | Set | Rewind | Reset | Adopt | Accept | Import | Release | Unprocess | ChangeDefinition
    | LoseState | LoseList | RestoreState | RemoveTable | RestoreTable | RestoreVersion | RecreateTable | AppendForeign | Overwrite | CleanLog | CopyRuns
)  # fmt: skip
