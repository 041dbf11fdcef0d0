"""Files that came twice: the same content under two names (docs/reference/files.md, Duplicates)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from partitions.path.hive import partition_values
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.spelling import first_few

DuplicatePolicy = Literal["load", "skip", "alert"]

SAME_CONTENT = "same content as "
"""The beginning of the reason of a file that was not loaded, as a copy; the original's path follows."""

_MD5 = re.compile(r"[0-9a-f]{32}")
_NAMED = 3


class Content(NamedTuple):
    """What two files of the same content share.

    Attributes:
        size: the size in bytes.
        checksum: names its algorithm.
        folders: sorted names and values of the folders ``name=value`` above it, which become columns.
    """

    size: int
    checksum: str
    folders: tuple[tuple[str, str], ...] = ()


class CopiedFile(NamedTuple):
    """A file with the content of another one.

    Attributes:
        file: the file.
        original: path of the file whose rows are in the table, or will be by the same commit.
    """

    file: SourceFile
    original: str

    @property
    def reason(self) -> str:
        """The reason that the record of ingested files keeps."""
        return reason_of_copy(self.original)


def reason_of_copy(original: str) -> str:
    """Return the reason that the record of ingested files keeps for a copy of a file."""
    return f"{SAME_CONTENT}{original}"


def original_of(reason: str | None) -> str | None:
    """Return the path of the file that a skipped file was a copy of; None for any other reason."""
    return (
        reason.removeprefix(SAME_CONTENT) if reason is not None and reason.startswith(SAME_CONTENT) else None
    )


def content_of(path: str, size: int, version: str, checksum: str | None) -> Content | None:
    """Return the content of a file; None if nothing tells it, or the file is empty.

    Args:
        path: the path below the root.
        size: the size in bytes.
        version: the etag or another version; an etag of 32 hex digits is the MD5 of the content.
        checksum: a checksum that was computed; None if there is none.
    """
    if checksum is None and _MD5.fullmatch(version):
        checksum = f"md5:{version}"
    if not size or not checksum:
        return None
    folders = partition_values(path.rpartition("/")[0])
    return Content(size, checksum, tuple(sorted((name.lower(), value) for name, value in folders.items())))


def find_copies(
    files: Sequence[SourceFile],
    contents: Mapping[str, Content],
    loaded_paths: Collection[str],
    loaded_contents: Mapping[Content, str],
) -> tuple[CopiedFile, ...]:
    """Return the files of a slice that are copies, in their order.

    Of several new files with one content the first is the original. A file whose rows are in the table
    already is never a copy: its rows are replaced, or would be lost.

    Args:
        files: the files of the slice, in pair order.
        contents: their contents by path, as far as known.
        loaded_paths: those of them that were loaded before.
        loaded_contents: the path of a loaded file outside of the slice, by content.
    """
    originals = {
        contents[file.path]: file.path
        for file in reversed(files)
        if file.path in loaded_paths and file.path in contents
    }
    copies = []
    for file in files:
        content = contents.get(file.path)
        if content is None or file.path in loaded_paths:
            continue
        original = loaded_contents.get(content) or originals.setdefault(content, file.path)
        if original != file.path:
            copies.append(CopiedFile(file, original))
    return tuple(copies)


def copies_warning(copies: Sequence[CopiedFile], *, are_loaded: bool) -> str:
    """Return the warning about copies, with the first few."""
    count = pluralize(len(copies), "file")
    named = first_few([f"{copy.file.path} ({copy.reason})" for copy in copies], _NAMED)
    if are_loaded:
        return (
            f"{count} with the content of another file loaded: {named}. To skip such files, set "
            "duplicates: skip"
        )
    return f"{count} with the content of another file skipped: {named}"


def freed_copies_warning(files: Sequence[SourceFile]) -> str:
    """Return the warning about files that were skipped as copies and are loaded after all."""
    return f"{_describe_freed(files)}. {'It is' if len(files) == 1 else 'They are'} late now"


def freed_copies_preview(files: Sequence[SourceFile]) -> str:
    """Return what a preview says about files that were skipped as copies and will be loaded after all."""
    are_freed = "It is freed: its content" if len(files) == 1 else "They are freed: each content"
    return f"{_describe_freed(files)}. {are_freed} is loaded once"


def _describe_freed(files: Sequence[SourceFile]) -> str:
    named = first_few([file.path for file in files], _NAMED)
    return f"{pluralize(len(files), 'file')} skipped before as the copy of a file that has other content now, or whose rows go: {named}"
