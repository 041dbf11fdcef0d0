"""Notice that the files of a project have changed, by their times and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from platform_assets.installation import DATAFLOWS

Stamps = Mapping[str, tuple[int, int, int]]
"""The time of change, size and number of each file, by its path in the project."""


class ProjectFiles:
    """The settings, dataflows and Python modules of a project, looked at again and again.

    Files of data, which may be millions, are not looked at: only the top folder, ``dataflows/`` and Python
    packages below the top folder are.
    """

    def __init__(self, folder: Path) -> None:
        """Remember the files as they are now.

        Args:
            folder: the project's folder.
        """
        self._folder = folder
        self._told_stamps = self._previous = file_stamps(folder)

    def changed(self) -> Sequence[str]:
        """Return the files that changed since they were last returned, once two looks see them alike.

        So a file that is being written is not told before its end. Paths are relative to the project, sorted.
        """
        stamps = file_stamps(self._folder)
        is_settled, self._previous = stamps == self._previous, stamps
        if not is_settled or stamps == self._told_stamps:
            return []
        told_stamps, self._told_stamps = self._told_stamps, stamps
        return sorted(
            name for name in told_stamps.keys() | stamps.keys() if told_stamps.get(name) != stamps.get(name)
        )


def file_stamps(folder: Path) -> Stamps:
    """Return the stamps of a project's settings, dataflows and Python modules, as they are now."""
    stamps = {}
    for path in _paths(folder):
        try:
            stat = path.stat()
        except OSError:  # removed since it was listed
            continue
        stamps[path.relative_to(folder).as_posix()] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return stamps


def _paths(folder: Path) -> Iterator[Path]:
    for suffix in ("*.yaml", "*.yml", "*.py"):
        yield from folder.glob(suffix)
    for suffix in ("*.y*ml", "*.py"):
        yield from (folder / DATAFLOWS).glob(suffix)
    for package in folder.glob("*/__init__.py"):
        yield from package.parent.rglob("*.py")
