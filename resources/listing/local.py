"""List the files of a local folder.

Folders are opened in the order of their components, parents first, and only if the position says that they
can hold a file above it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from partitions.path.hidden import is_hidden_name
from partitions.path.listing_positions import ListingStart
from partitions.path.source import SourceFile, in_pair_order
from resources.listing.budget import Budget
from resources.listing.failures import folder_failure
from resources.listing.step import Listing, ListingStep
from resources.listing.unchanged import require_unchanged

_NOT_TEXT = "a name that is not UTF-8"


class _Folder(NamedTuple):
    """A folder to open; ``parent_ids`` holds device and inode of the folders on the way to it."""

    path: str
    parent_ids: frozenset[tuple[int, int]] = frozenset()


class _Content(NamedTuple):
    """The contents of one folder.

    Attributes:
        folders: paths, without hidden ones.
        files: paths with a right ending that are not hidden.
        other_paths: paths of other names with contents; hidden folders end in a slash.
        parent_ids: device and inode of the folders on the way to its folders.
    """

    folders: list[str]
    files: list[str]
    other_paths: list[str]
    parent_ids: frozenset[tuple[int, int]]


def list_local(
    root: Path,
    position: ListingStart,
    endings: tuple[str, ...],
    *,
    budget: Budget | None = None,
    resume: str | None = None,
) -> Listing:
    """List the files of a local folder above a position.

    Args:
        root: the root, an absolute path.
        position: the committed position.
        endings: the endings of the names to list.
        budget: counts folders, and is checked after each one that no earlier step has listed.
        resume: ``/`` and the last folder that the earlier steps have listed.

    Raises:
        SourceError: as in ``resources.listing.list_above``.
    """
    last_listed = (
        resume[1:] if resume and resume.startswith("/") else None
    )  # another token is no truth: start again
    step, fresh = ListingStep(position, endings, budget), 0
    waiting = [_Folder("")]
    while waiting:
        folder = waiting.pop()
        content = _open(root, folder, endings)
        step.calls += 1
        inner = [path for path in content.folders if position.may_hold(path) and _to_list(path, last_listed)]
        waiting += [
            _Folder(path, content.parent_ids) for path in sorted(inner, reverse=True) if _is_text(path)
        ]
        step.root_files |= not folder.path and bool(content.files)
        if last_listed is not None and _on_the_way(folder.path, last_listed):
            continue  # opened again only for the folders in it
        fresh += 1
        step.files += [
            file for path in content.files if position.is_above(path) and (file := _take(root, path, step))
        ]
        _skip(step, [path for path in inner if not _is_text(path)], content.other_paths)
        if waiting and step.used_up(fresh):
            return step.listing(resume=f"/{folder.path}")
    return step.listing()


def _take(root: Path, path: str, step: ListingStep) -> SourceFile | None:
    """Return the current state of the file; note its name if it can never be loaded."""
    if not _is_text(path):
        step.skipped.take_unreadable(path, _NOT_TEXT)
    elif file := _stat(root, path):
        return file
    elif (root / path).is_symlink():
        step.skipped.take_unreadable(path, "a link that leads to no file")
    elif (root / path).exists():
        step.skipped.take_unreadable(path, "a pipe, a socket or a device, which is no file")
    return None


def _skip(step: ListingStep, folders: Sequence[str], other_paths: Sequence[str]) -> None:
    """Note other names above the position: folders that cannot be opened by name, and other files."""
    for path in folders:
        step.skipped.take_unreadable(f"{path}/", _NOT_TEXT)
    for path in other_paths:
        if step.position.may_hold(path[:-1]) if path.endswith("/") else step.position.is_above(path):
            step.skipped.take(path)


def check_local(root: Path, files: Sequence[SourceFile]) -> None:
    """Stat every file again.

    Raises:
        BadFile: for the first file in pair order that differs from the listing.
    """
    for file in in_pair_order(files):
        require_unchanged(file, _stat(root, file.path))


def stat_local(root: Path, paths: Sequence[str]) -> dict[str, SourceFile]:
    """Return the current state of these files; missing ones are left out."""
    return {path: file for path in paths if (file := _stat(root, path)) is not None}


def _open(root: Path, folder: _Folder, endings: tuple[str, ...]) -> _Content:
    folders: list[str] = []
    files: list[str] = []
    other_paths: list[str] = []
    where = root / folder.path
    try:
        identity = (status := where.stat()).st_dev, status.st_ino
        if identity in folder.parent_ids:
            # A link to a folder above itself: its files are listed there.
            return _Content([], [], [], folder.parent_ids)
        parent_ids = folder.parent_ids | {identity}
        with os.scandir(where) as entries:
            for entry in entries:
                path = f"{folder.path}/{entry.name}" if folder.path else entry.name
                if is_hidden_name(entry.name):
                    other_paths += [f"{path}/"] if _is_folder(entry) else [path] if _is_filled(entry) else []
                elif _is_folder(entry):
                    folders.append(path)
                elif entry.name.endswith(endings):
                    files.append(path)
                elif _is_filled(entry):
                    other_paths.append(path)
    except OSError as error:
        raise folder_failure(folder.path, str(root), error) from error
    return _Content(folders, files, other_paths, parent_ids)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads nowhere: a file, if it has the right ending
        return False


def _is_filled(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file() and entry.stat().st_size > 0
    except OSError:
        return False


def _stat(root: Path, path: str) -> SourceFile | None:
    """Return the current state of the file; None if it does not exist (any more)."""
    try:
        status = os.stat(f"{root}/{path}")  # noqa: PTH116  a Path for each of a million files costs more than the stat
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise folder_failure(path, str(root), error) from error
    if not stat.S_ISREG(status.st_mode):
        return None  # a pipe or a socket
    return SourceFile(path, status.st_size, str(status.st_mtime_ns), status.st_mtime_ns // 1_000_000)


def _to_list(folder: str, last_listed: str | None) -> bool:
    """Return whether earlier steps have not listed a folder, or not all folders inside it."""
    return (
        last_listed is None or folder.split("/") > last_listed.split("/") or _on_the_way(folder, last_listed)
    )


def _on_the_way(folder: str, last_listed: str) -> bool:
    return not folder or folder == last_listed or last_listed.startswith(f"{folder}/")


def _is_text(path: str) -> bool:
    """Return whether a name is UTF-8: any other has no place in the order, and no JSON can hold it."""
    if path.isascii() or path.isprintable():
        return True
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
