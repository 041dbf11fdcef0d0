"""Name what answers in an object store's place."""

from __future__ import annotations


class NotAStoreError(OSError):
    """What answers is no object store."""

    def __init__(self) -> None:
        """Name what was expected, and what answers instead."""
        super().__init__(
            "expected an object store, found something that claims to have every key: a login page, a proxy, "
            "or the port of a console"
        )
