"""Blobs in memory: the objects of a log that is read from a file."""

from __future__ import annotations


class MemoryBlobs:
    """A store that lives as long as its process."""

    def __init__(self) -> None:
        """Begin without any object."""
        self._objects: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """Return a value."""
        return self._objects.get(key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Keep a value unless the key has one; return False if it has."""
        if key in self._objects:
            return False
        self._objects[key] = data
        return True

    def put(self, key: str, data: bytes) -> None:
        """Keep a value, in place of an earlier one."""
        self._objects[key] = data

    def first_names(self, folder: str, count: int) -> list[str]:
        """Return the first names of a folder."""
        names = (key.rpartition("/") for key in self._objects)
        return sorted(name for parent, _, name in names if parent == folder)[:count]

    def folders(self, folder: str) -> list[str]:
        """Return the folders of a folder."""
        prefix = f"{folder}/" if folder else ""
        below = (key.removeprefix(prefix) for key in self._objects if key.startswith(prefix))
        return sorted({path.partition("/")[0] for path in below if "/" in path})

    def delete(self, key: str) -> None:
        """Remove a value."""
        self._objects.pop(key, None)
