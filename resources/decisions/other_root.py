"""Tell the files of another root that were loaded before from those that no run has seen.

See docs/reference/state.md, set, accept and import.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.fingerprint_changes import DefinitionChange
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.sentinels import deserialise
from partitions.spelling import first_few
from partitions.watermark import is_empty
from resources.kinds.contract.decisions import KnowsFiles
from resources.loop.definition_guard import changed_parts
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry

Below = Literal["late", "loaded"]
"""What becomes of files at or below the watermark that no entry knows: the sweep loads them, or nothing ever does."""

_NAMED = 5


@dataclass(frozen=True)
class FilesOfRoot:
    """The files at or below the watermark of a root that was not read before.

    Attributes:
        renamed: were ingested under another relative path, since one root lies in the other.
        old_paths: those other paths, in the order of ``renamed``.
        known_count: how many were ingested under the same relative path.
        unknown: the others.
        watermark: sentinel JSON text of the same watermark below the new root; None: it stays as it is.
    """

    renamed: tuple[SourceFile, ...] = ()
    old_paths: tuple[str, ...] = ()
    known_count: int = 0
    unknown: tuple[SourceFile, ...] = ()
    watermark: str | None = None

    def loaded(self, below: Below | None) -> tuple[SourceFile, ...]:
        """Return the files that count as loaded from now on, and did not before."""
        return (*self.renamed, *(self.unknown if below == "loaded" else ()))

    def notes(self, below: Below | None) -> tuple[str, ...]:
        """Return what becomes of the files, for people."""
        known_count, names = self.known_count + len(self.renamed), [file.path for file in self.unknown]
        other_files = f"{pluralize(len(names), 'other file')} there ({first_few(names, _NAMED)})"
        fate = (
            f"count as loaded although no entry knows them, so never read: {other_files}"
            if below == "loaded"
            else f"never loaded, so late: {other_files}"
        )
        again = (
            f"loaded before, so not read again: {pluralize(known_count, 'file')} at or below the watermark"
        )
        return tuple(line for holds, line in ((known_count, again), (names, fate)) if holds)


def files_of_root(platform: Opener, dataflow: Dataflow, last: Entry) -> FilesOfRoot:
    """Compare what the source holds at or below the watermark with what the log knows to be ingested.

    Files are the same if their paths below the root are, or if the old root and the new one lie in one another and the whole paths are.
    Nothing is compared if the source is the one that was read so far.
    """
    rules = platform.rules(dataflow)
    if not isinstance(rules, KnowsFiles) or is_empty(last.state()):
        return FilesOfRoot()
    changes = changed_parts(dataflow, last, platform.log)
    if changes is not None and not any(change.part == "source" for change in changes):
        return FilesOfRoot()
    nested = _nested_roots(platform, dataflow, changes or ())
    watermark = rules.watermark_below(last, nested.to_new) if nested else None
    if nested and watermark is None:
        return FilesOfRoot(watermark="{}")
    files = rules.files_up_to(deserialise(watermark) if watermark else last.state(), above=None)
    unknown = rules.not_ingested(files, last)
    known_count = len(files) - len(unknown)
    if nested is None:
        return FilesOfRoot(known_count=known_count, unknown=tuple(unknown))
    by_old_path = {nested.to_old(file.path): file for file in files}
    new = {
        file.path
        for file in rules.not_ingested([replace(file, path=path) for path, file in by_old_path.items()], last)
    }
    return FilesOfRoot(
        renamed=tuple(file for path, file in by_old_path.items() if path not in new),
        old_paths=tuple(path for path in by_old_path if path not in new),
        unknown=tuple(file for path, file in by_old_path.items() if path in new),
        watermark=watermark,
    )


def check_told_apart(dataflow: Dataflow, files: FilesOfRoot, below: Below | None) -> None:
    """Raise if no file of another root is one that was loaded, and nobody has said what they are.

    Raises:
        NeedsDecision: code ``other_files``.
    """
    if below is not None or files.known_count or files.renamed or not files.unknown:
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


@dataclass(frozen=True)
class _NestedRoots:
    """Two roots of which one lies in the other.

    Attributes:
        added: what a path of the old root has in front below the new one, such as ``x/``; "" if the new root is the inner one.
        removed: what it has no more; "" if the new root is the outer one.
    """

    added: str = ""
    removed: str = ""

    def to_new(self, path: str) -> str | None:
        """Return a path of the old root as one of the new root; None if it lies outside."""
        return self.added + path.removeprefix(self.removed) if path.startswith(self.removed) else None

    def to_old(self, path: str) -> str:
        """Return a path of the new root as one of the old root; one outside of it as a path that no file has."""
        return self.removed + path.removeprefix(self.added) if path.startswith(self.added) else f"../{path}"


def _nested_roots(
    platform: Opener, dataflow: Dataflow, changes: Sequence[DefinitionChange]
) -> _NestedRoots | None:
    """Return which of the two roots contains the other; None if neither does, or the log does not tell."""
    old = next((str(change.before) for change in changes if change.name == "source.path"), None)
    if old is None or any(change.name == "source.connection" for change in changes):
        return None
    source = dataflow.source.model_copy(update={"path": old})
    before = platform.root_of(dataflow.model_copy(update={"source": source})).url
    now = platform.root_of(dataflow).url
    if now.startswith(f"{before}/"):
        return _NestedRoots(removed=f"{now.removeprefix(f'{before}/')}/")
    if before.startswith(f"{now}/"):
        return _NestedRoots(added=f"{before.removeprefix(f'{now}/')}/")
    return None
