"""The pair order of files, and the two orders in which stores list keys.

See docs/explanation/watermarks.md. A pair is (partition, name). Texts are compared as UTF-8 bytes;
Python's ``str`` order is the same order. No comparison is left to a JVM or a database.

S3 lists whole keys in byte order. SeaweedFS and file systems list folder by folder. Both orders are equal,
except beside a folder whose name is the beginning of another's (``a=1-b/`` comes before ``a=1/`` as a key,
after it as a folder). A listing must stop and jump correctly in both; :func:`is_past` tests both.
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
        """The relative path."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


def pair_order(path: str) -> FileKey:
    """Return the sort key of a path: its pair."""
    return FileKey.of(path)


def folders_up(partition: str) -> Iterator[str]:
    """Yield a partition and every folder above it, without the root."""
    while partition:
        yield partition
        partition = partition.rpartition("/")[0]


def is_past(key: str, bound: str) -> bool:
    """Return whether a listing at ``key`` is past ``bound`` in both orders of stores."""
    return key > bound and key.split("/") > bound.split("/")


def key_before(text: str) -> str:
    """Return a key after which a listing first meets ``text`` and all keys that begin with it.

    It is not the text itself: after the key ``a=1`` SeaweedFS skips everything in the folder ``a=1/`` (S3
    does not).
    """
    text = text.rstrip("/")
    if not text:
        return ""
    head, before = text[:-1], chr(ord(text[-1]) - 1)
    if before < " " or before == "\x7f":  # no control character: no client can send it
        return key_before(head)
    if before == "/" and head.rpartition("/")[2] in ("", ".", ".."):  # nor such a component
        before = "."
    if before == "\udfff":  # nor a surrogate
        before = "\ud7ff"
    return f"{head}{before}{LAST}"
