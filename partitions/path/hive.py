"""Values in hive-style folders: ``date=2024-01-28/hour=14/`` (spec 01; spec 09, Files above a path watermark)."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import unquote

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The value that Hive and Spark write for NULL."""


def partition_values(path: str, columns: Collection[str] | None = None) -> dict[str, str]:
    """Read every ``key=value`` component, the last one too, split at the first ``=``.

    Args:
        path: a relative path or a URI.
        columns: names to read; ``None`` reads all, an empty list none.

    Returns:
        the values as the text that stands there; a column that is not in the path is left out.
    """
    pairs = (part.partition("=") for part in path.split("/"))
    return {
        key: value for key, equals, value in pairs if equals and key and (columns is None or key in columns)
    }


def partition_columns(paths: Collection[str]) -> list[str]:
    """The names of all hive-style folders above these files, in order of appearance."""
    folders = dict.fromkeys(path.rpartition("/")[0] for path in paths)
    return list(dict.fromkeys(key for folder in folders for key in partition_values(folder)))


def unescaped(text: str | None) -> str | None:
    """A folder's text as the value it stands for: Hive's and Spark's writers escape it with ``%XX``, and have a word for NULL."""
    return None if text is None or text == NULL_FOLDER else unquote(text)
