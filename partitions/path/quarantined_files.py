"""The quarantine of files, and the release from it (docs/reference/files.md, docs/reference/state.md).

A quarantined file counts as handled: neither a listing nor the sweep brings it up again. The next run
loads a released one in a slice of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from partitions.errors import ConfigurationError
from partitions.path.source import SourceFile
from partitions.plan import pluralize


def release_command(dataflow: str, paths: Sequence[str]) -> str:
    """Return the command that releases files, for a shell: paths with spaces are quoted."""
    return " ".join(["strandline files release", dataflow, *map(shlex.quote, paths)])


@dataclass(frozen=True)
class QuarantinedFile:
    """A file in quarantine.

    Attributes:
        file: the file as it was listed then.
        reason: the reason, in words.
        released: whether the next run loads it.
    """

    file: SourceFile
    reason: str
    released: bool = False


@dataclass(frozen=True)
class Quarantine:
    """All quarantined files of a dataflow that are not loaded yet.

    Attributes:
        files: the files in order of arrival.
    """

    files: tuple[QuarantinedFile, ...] = ()

    @property
    def waiting(self) -> tuple[QuarantinedFile, ...]:
        """The files that wait for a decision."""
        return tuple(entry for entry in self.files if not entry.released)

    @property
    def released(self) -> tuple[QuarantinedFile, ...]:
        """The files that the next run loads."""
        return tuple(entry for entry in self.files if entry.released)

    def reminder(self, dataflow: str) -> str | None:
        """Return the number of waiting files and the command that loads them; None if there are none."""
        if not self.waiting:
            return None
        return f"{pluralize(len(self.waiting), 'file')} in quarantine. Repair them, then `strandline files release {dataflow} PATH…`: the next run loads them"

    def after(self, loaded: Collection[str], quarantined: Sequence[QuarantinedFile]) -> Quarantine:
        """Return the quarantine after a slice that loaded some files and quarantined others."""
        handled = {*loaded, *(entry.file.path for entry in quarantined)}
        return Quarantine((*(entry for entry in self.files if entry.file.path not in handled), *quarantined))

    def release(self, paths: Sequence[str], dataflow: str) -> Quarantine:
        """Return the quarantine with these files released to the next run.

        Raises:
            ConfigurationError: a path is not in quarantine; the message suggests the nearest one.
        """
        held_paths = [entry.file.path for entry in self.waiting]
        for path in paths:
            if path not in held_paths:
                close = get_close_matches(path, held_paths, 1)
                none = f"{len(held_paths)} files are in quarantine. To load a skipped late file, set late_files: ingest"
                hint = f"did you mean {close[0]}?" if close else none
                raise ConfigurationError(
                    f"dataflow {dataflow}: expected the path of a quarantined file, found {path!r}: {hint}",
                    code="not_quarantined",
                    choices=(f"strandline list {dataflow}",),
                )
        chosen = set(paths)
        return Quarantine(
            tuple(
                QuarantinedFile(entry.file, entry.reason, released=True)
                if entry.file.path in chosen
                else entry
                for entry in self.files
            )
        )

    def rows(self) -> list[list[Any]]:
        """Return it as plain data."""
        return [[*entry.file.row, entry.reason, entry.released] for entry in self.files]

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Quarantine:
        """Read it back from plain data."""
        return cls(
            tuple(QuarantinedFile(SourceFile(*file), reason, released) for *file, reason, released in rows)
        )
