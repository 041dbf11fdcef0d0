"""Object stores whose listing ends only where a store ended it.

A login page, a proxy's page or a console answers each request with HTTP 200, and obstore reads it as a
listing without keys: "nothing new", "no state", "removed at the source". So before an empty listing counts,
and one that may have lost its next page, the store must say that it lacks a key that nobody has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from obstore.exceptions import PermissionDeniedError
from obstore.store import AzureStore, GCSStore, S3Store

from resources.connections.not_a_store import NotAStoreError

ABSENT_KEY = "strandline-asks-for-a-key-that-nobody-has"
"""The key that a store must lack."""

_PAGE = 1000
"""The most keys of one response: from so many on a listing may have had a next page."""


class _ConfirmedListings:
    """A store that confirms the end of its listings."""

    def list(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        """Yield the pages of a listing.

        Raises:
            NotAStoreError: what answers is no store.
        """
        keys = 0
        for page in super().list(*arguments, **options):  # type: ignore[misc]  # obstore's store has it
            keys += len(page)
            yield page
        self._confirm_end(keys)

    def list_with_delimiter(self, *arguments: Any, **options: Any) -> Any:
        """Return the objects and folders of a folder.

        Raises:
            NotAStoreError: what answers is no store.
        """
        content = super().list_with_delimiter(*arguments, **options)  # type: ignore[misc]  # obstore's store has it
        self._confirm_end(len(content["objects"]) + len(content["common_prefixes"]))
        return content

    def _confirm_end(self, keys: int) -> None:
        if 0 < keys < _PAGE:
            return
        try:
            self.head(ABSENT_KEY)  # type: ignore[attr-defined]  # obstore's store has it
        except (FileNotFoundError, PermissionDeniedError):
            return
        raise NotAStoreError


class ConfirmedS3Store(_ConfirmedListings, S3Store):  # type: ignore[misc]  # its listings are iterators alone
    """A bucket of S3."""


class ConfirmedGCSStore(_ConfirmedListings, GCSStore):  # type: ignore[misc]  # its listings are iterators alone
    """A bucket of Google Cloud Storage."""


class ConfirmedAzureStore(_ConfirmedListings, AzureStore):  # type: ignore[misc]  # its listings are iterators alone
    """A container of Azure's storage."""
