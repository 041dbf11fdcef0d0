"""Blobs for a dry run: writes stay in memory."""

from __future__ import annotations

from resources.watermarks.blobs.protocol import Blobs


class DryRunBlobs:
    """Another store's blobs, with writes on top that stay in memory."""

    def __init__(self, below: Blobs) -> None:
        """Bind to the store to read from, which is never changed."""
        self._below = below
        self._written: dict[str, bytes | None] = {}

    def get(self, key: str) -> bytes | None:
        """Return the value in memory, else the store's."""
        return self._written[key] if key in self._written else self._below.get(key)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write in memory unless memory or the store has the key; return False if it has."""
        if self.get(key) is not None:
            return False
        self._written[key] = data
        return True

    def put(self, key: str, data: bytes) -> None:
        """Write in memory."""
        self._written[key] = data

    def first_names(self, folder: str, count: int) -> list[str]:
        """Return the first names of memory and store together."""
        new_names = {
            key.rpartition("/")[2]: data
            for key, data in self._written.items()
            if key.rpartition("/")[0] == folder
        }
        names = {*self._below.first_names(folder, count + len(new_names)), *new_names}
        return sorted(name for name in names if new_names.get(name, b"") is not None)[:count]

    def folders(self, folder: str) -> list[str]:
        """Return the folders of memory and store together."""
        prefix = f"{folder}/" if folder else ""
        below = (key.removeprefix(prefix) for key in self._written if key.startswith(prefix))
        written = {key.partition("/")[0] for key in below if "/" in key}
        return sorted({*self._below.folders(folder), *written})

    def delete(self, key: str) -> None:
        """Mark the key as deleted in memory."""
        self._written[key] = None
