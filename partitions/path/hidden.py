"""Hidden files and folders, which every listing skips (docs/explanation/watermarks.md, Listing).

A path is hidden if one of its components starts with ``_`` or ``.``.
"""

from __future__ import annotations

from partitions.path.order import LAST

_HIDDEN = ("_", ".")
"""Prefixes of hidden files and folders; Spark skips them, too."""

_HIDDEN_INSIDE = tuple(f"/{start}" for start in _HIDDEN)


def is_hidden_name(name: str) -> bool:
    """Return whether a single component is hidden: such files are never listed."""
    return name.startswith(_HIDDEN)


def is_hidden_path(path: str) -> bool:
    """Return whether any component of a path is hidden."""
    return is_hidden_name(path) or any(start in path for start in _HIDDEN_INSIDE)


def key_after_hidden_folder(path: str) -> str | None:
    """Return the last key of the hidden folder that holds ``path``; None if no hidden folder does.

    A listing can go on after it.
    """
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if is_hidden_name(part):
            return f"{'/'.join(parts[: index + 1])}/{LAST}"
    return None
