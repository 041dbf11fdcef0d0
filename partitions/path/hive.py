"""Read values from hive-style folders: ``date=2024-01-28/hour=14/`` (docs/reference/files.md)."""

from __future__ import annotations

import re
from collections.abc import Collection
from urllib.parse import unquote

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The folder value that Hive and Spark write for NULL."""


def partition_values(path: str, columns: Collection[str] | None = None) -> dict[str, str]:
    """Return the values of all ``key=value`` components, the last one too, split at the first ``=``.

    Args:
        path: a relative path or a URI.
        columns: the names to read; ``None`` reads all, an empty list none.

    Returns:
        the values as text; columns that the path lacks are left out.
    """
    pairs = (part.partition("=") for part in path.split("/"))
    return {
        key: value for key, equals, value in pairs if equals and key and (columns is None or key in columns)
    }


def partition_columns(paths: Collection[str]) -> list[str]:
    """Return the names of all hive-style folders above these files, in order of appearance."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    return list(dict.fromkeys(key for folder in folders for key in partition_values(folder)))


def folder_value(path: str, name: str) -> str | None:
    """Return the value of a path's first folder of this name; None if it has none, or the value is NULL.

    Hive's and Spark's writers escape a value with ``%XX``; a text with any other ``%`` stands for itself.
    """
    match = re.search(rf"(?:^|/){re.escape(name)}=([^/]*)/", path)
    if match is None or match[1] == NULL_FOLDER:
        return None
    return match[1] if re.search("%(?![0-9A-Fa-f]{2})", match[1]) else unquote(match[1])
