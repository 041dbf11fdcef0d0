"""Files that were passed over, and those of them that were released (docs/reference/files.md, docs/reference/state.md).

A quarantined file counts as dealt with: neither a listing nor the sweep brings it up again. A released one is loaded by the
next run, in a slice of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from partitions.errors import ConfigurationError
from partitions.path.source import SourceFile
from partitions.plan import counted


@dataclass(frozen=True)
class Quarantined:
    """A file that was passed over.

    Attributes:
        file: as it was listed then.
        reason: why, a sentence for people.
        released: whether the next run shall load it.
    """

    file: SourceFile
    reason: str
    released: bool = False


@dataclass(frozen=True)
class Quarantine:
    """All files of a dataflow that were passed over and are not loaded yet.

    Attributes:
        files: in the order in which they came.
    """

    files: tuple[Quarantined, ...] = ()

    @property
    def held(self) -> tuple[Quarantined, ...]:
        """Return those that wait for a decision."""
        return tuple(bad for bad in self.files if not bad.released)

    @property
    def released(self) -> tuple[Quarantined, ...]:
        """Those that the next run loads."""
        return tuple(bad for bad in self.files if bad.released)

    def reminder(self, dataflow: str) -> str | None:
        """Return how many files wait for a decision, and the command that loads what was mended; None if there are none."""
        if not self.held:
            return None
        return f"{counted(len(self.held), 'file')} in quarantine: once mended, `strandline files release {dataflow} PATH…` has the next run load them"

    def after(self, loaded: Collection[str], quarantined: Sequence[Quarantined]) -> Quarantine:
        """What is left after a slice has loaded some files and passed over others."""
        handled = {*loaded, *(bad.file.path for bad in quarantined)}
        return Quarantine((*(bad for bad in self.files if bad.file.path not in handled), *quarantined))

    def release(self, paths: Sequence[str], dataflow: str) -> Quarantine:
        """Hand files to the next run.

        Raises:
            ConfigurationError: for a path that is not held, with the nearest one that is.
        """
        held_paths = [bad.file.path for bad in self.held]
        for path in paths:
            if path not in held_paths:
                close = get_close_matches(path, held_paths, 1)
                none = f"{len(held_paths)} files are in quarantine. A late file that was skipped is loaded with late_files: ingest"
                hint = f"did you mean {close[0]}?" if close else none
                raise ConfigurationError(
                    f"dataflow {dataflow}: expected the path of a quarantined file, found {path!r}: {hint}",
                    code="not_quarantined",
                    choices=(f"strandline list {dataflow}",),
                )
        chosen = set(paths)
        return Quarantine(
            tuple(
                Quarantined(bad.file, bad.reason, released=True) if bad.file.path in chosen else bad
                for bad in self.files
            )
        )

    def rows(self) -> list[list[Any]]:
        """As plain data."""
        return [[*bad.file.row, bad.reason, bad.released] for bad in self.files]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Quarantine:
        """Read plain data back."""
        return cls(
            tuple(Quarantined(SourceFile(*file), reason, released) for *file, reason, released in rows)
        )
