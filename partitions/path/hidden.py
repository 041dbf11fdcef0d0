"""Hidden files and folders: a component that starts with ``_`` or ``.`` is skipped at every level (docs/explanation/watermarks.md, Listing)."""

from __future__ import annotations

from partitions.path.order import LAST

_HIDDEN = ("_", ".")
"""How the name of a hidden file or folder starts; Spark skips those, too."""

_HIDDEN_INSIDE = tuple(f"/{start}" for start in _HIDDEN)


def is_hidden(name: str) -> bool:
    """Return whether a name, of one component, is hidden: such files are never listed."""
    return name.startswith(_HIDDEN)


def hidden(path: str) -> bool:
    """Return whether any component of a path is hidden."""
    return is_hidden(path) or any(start in path for start in _HIDDEN_INSIDE)


def hidden_until(path: str) -> str | None:
    """The key after which a listing leaves the hidden folder that ``path`` lies in; ``None`` outside of one."""
    parts = path.split("/")
    for index, part in enumerate(parts[:-1]):
        if is_hidden(part):
            return f"{'/'.join(parts[: index + 1])}/{LAST}"
    return None
