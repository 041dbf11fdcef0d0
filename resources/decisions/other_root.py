"""Tell the files of another root that were loaded before from those that no run has seen.

See docs/reference/state.md, set, accept and import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.spelling import first_few
from partitions.watermark import is_empty
from resources.kinds.contract.decisions import KnowsFiles
from resources.loop.guards.definition import changed_parts
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry

Below = Literal["late", "loaded"]
"""What becomes of files at or below the watermark that no entry knows: the sweep loads them, or nothing ever does."""

_NAMED = 5


@dataclass(frozen=True)
class FilesOfRoot:
    """The files of a new root that lie at or below the watermark.

    Attributes:
        known_count: number of files that were ingested under the same path below the old root.
        unknown: the other files.
    """

    known_count: int = 0
    unknown: tuple[SourceFile, ...] = ()

    def loaded(self, below: Below | None) -> tuple[SourceFile, ...]:
        """Return the files that count as loaded from now on, and did not before."""
        return self.unknown if below == "loaded" else ()

    def notes(self, below: Below | None) -> tuple[str, ...]:
        """Return what becomes of the files, for people."""
        names = [file.path for file in self.unknown]
        other_files = f"{pluralize(len(names), 'other file')} there ({first_few(names, _NAMED)})"
        fate = (
            f"count as loaded although no entry knows them, so never read: {other_files}"
            if below == "loaded"
            else f"never loaded, so late: {other_files}"
        )
        again = f"loaded before, so not read again: {pluralize(self.known_count, 'file')} at or below the watermark"
        return tuple(line for holds, line in ((self.known_count, again), (names, fate)) if holds)


def files_of_root(platform: Opener, dataflow: Dataflow, last: Entry) -> FilesOfRoot:
    """Return a new root's files at or below the watermark, split by whether the log has them as ingested.

    Files are the same if their paths below the root are. Nothing is compared if the source is the one that
    was read so far.
    """
    rules = platform.rules(dataflow)
    if not isinstance(rules, KnowsFiles) or is_empty(last.state()):
        return FilesOfRoot()
    changes = changed_parts(dataflow, last, platform.log)
    if changes is not None and not any(change.part == "source" for change in changes):
        return FilesOfRoot()
    files = rules.files_up_to(last.state(), above=None)
    unknown = rules.not_ingested(files, last)
    return FilesOfRoot(len(files) - len(unknown), tuple(unknown))


def check_told_apart(dataflow: Dataflow, files: FilesOfRoot, below: Below | None) -> None:
    """Raise if the log knows no file of a new root, and ``below`` does not say how to treat the files.

    Raises:
        NeedsDecision: code ``other_files``.
    """
    if below is not None or files.known_count or not files.unknown:
        return
    name, count = dataflow.name, pluralize(len(files.unknown), "file")
    raise NeedsDecision(
        f"dataflow {name}: expected files of {dataflow.source.label} with the paths of files that were loaded; found {count} at or below the"
        f" watermark, and none was loaded under its path: {first_few([file.path for file in files.unknown], _NAMED)}. Say what they are: new"
        " files, which the sweep loads (late), or the loaded ones under other names (loaded)",
        code="other_files",
        choices=(
            f"strandline state accept {name} --below late --reason TEXT",
            f"strandline state accept {name} --below loaded --reason TEXT",
        ),
    )
