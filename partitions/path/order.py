"""Where a file stands: the pair (partition, name), and the two orders in which a store may list keys (docs/explanation/watermarks.md).

Texts are compared as UTF-8 bytes; Python's ``str`` order is the same order. No comparison is left to a JVM or a database.

S3 lists whole keys in byte order. SeaweedFS and file systems list folder by folder: the same order, except beside a
folder whose name is the beginning of another's (``a=1-b/`` comes before ``a=1/`` as a key, after it as a folder). Where
a listing stops or jumps, it must be right in both; :func:`past` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

LAST = "\U0010ffff"
"""No name sorts above it: a noncharacter, the last one."""


class FileKey(NamedTuple):
    """A path split at its last slash; tuples of it sort in pair order."""

    partition: str
    name: str

    @classmethod
    def of(cls, path: str) -> FileKey:
        """Split a relative path; without a slash the partition is ``""``. Nothing is normalised."""
        partition, _, name = path.rpartition("/")
        return cls(partition, name)

    @property
    def path(self) -> str:
        """The relative path again."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


def pair_order(path: str) -> FileKey:
    """Sort key of a path: its pair."""
    return FileKey.of(path)


def upwards(partition: str) -> Iterator[str]:
    """A partition and every folder above it, without the root."""
    while partition:
        yield partition
        partition = partition.rpartition("/")[0]


def past(key: str, bound: str) -> bool:
    """Whether a listing that is at ``key`` has ``bound`` behind it, in whichever of the two orders it lists."""
    return key > bound and key.split("/") > bound.split("/")


def below(text: str) -> str:
    """A key that a listing may start after to meet ``text`` first, and all that begins with it.

    Not the text itself: after the key ``a=1`` SeaweedFS leaves out everything in the folder ``a=1/`` (S3 does not).
    """
    text = text.rstrip("/")
    if not text:
        return ""
    kept, before = text[:-1], chr(ord(text[-1]) - 1)
    if before < " " or before == "\x7f":  # no control character: no client can send it
        return below(kept)
    if before == "/" and kept.rpartition("/")[2] in ("", ".", ".."):  # nor such a component
        before = "."
    if before == "\udfff":  # nor a surrogate
        before = "\ud7ff"
    return f"{kept}{before}{LAST}"
