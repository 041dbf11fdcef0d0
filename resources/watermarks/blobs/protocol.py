"""The store of small objects that the watermark log reads and writes."""

from __future__ import annotations

from typing import Protocol


class Blobs(Protocol):
    """A store of small objects. Every method raises ProviderError when the store fails."""

    def get(self, key: str) -> bytes | None:
        """Return the value, or None if there is none."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write durably unless the key exists; return False if it does. At most one caller gets True."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write durably, over an existing value."""
        ...

    def first_names(self, folder: str, count: int) -> list[str]:
        """Return the first names directly in a folder, in key order; none if the folder does not exist."""
        ...

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in a folder, sorted.

        The root is ""; a missing folder has none.
        """
        ...

    def delete(self, key: str) -> None:
        """Remove the key, if it exists."""
        ...
