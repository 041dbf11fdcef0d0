"""Roots of files that lie in one another: a path below the one is another path below the other."""

from __future__ import annotations

from posixpath import normpath


def roots_overlap(path: str, other_path: str) -> bool:
    """Return whether one of two different folders lies in the other.

    Args:
        path: a folder, such as ``./landing``, ``/data/landing`` or ``s3://bucket/landing``.
        other_path: another one, written alike: a relative path is not compared with an absolute one.
    """
    folder, other_folder = _parts(path), _parts(other_path)
    shorter = min(len(folder), len(other_folder))
    return len(folder) != len(other_folder) and folder[:shorter] == other_folder[:shorter]


def _parts(path: str) -> list[str]:
    """Return the scheme, if there is one, and the folders of a path from its outermost; none for ``.``."""
    scheme, separator, rest = path.rpartition("://")
    normal = normpath(rest)
    start = [scheme + separator] if separator else ["/"] if normal.startswith("/") else []
    return [*start, *(part for part in normal.split("/") if part not in ("", "."))]
