"""Objects beside the entries of a log: lists, pinned schemas, leases, notes, each in a folder of its dataflow (docs/reference/state.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from resources.watermarks.blobs import Blobs
from resources.watermarks.lists import ListKind, StoredList, corrupt_object_error, read_list

FILES = "files"
"""The folder of the lists of files, one an intent, named by its number."""

LEASES = "leases"
"""The folder of leases, one an intent that a process works on, named like them."""

QUARANTINE = "quarantine"
"""The folder of the lists of files in quarantine, named like them."""

OBSERVED = "observed"
"""The folder of what writes saw of their work units, named like them."""

_FOLDERS = (
    "entries",
    "intents",
    FILES,
    LEASES,
    QUARANTINE,
    OBSERVED,
    "schemas",
    "floor",
    "ingested",
    "notes",
    "chunks",
    "chunks_done",
)
"""All folders beside the log of a dataflow, its entries first: without them it is none."""

_PAGE = 1000


class StoredObjects:
    """Puts, reads and deletes objects beside the entries."""

    def __init__(self, blobs: Blobs) -> None:
        """Use a store."""
        self._blobs = blobs

    def put_list(self, dataflow: str, name: str, stored: StoredList, folder: str = FILES) -> str:
        """Keep a list beside the log; returns the name to find it by."""
        return self.put_object(dataflow, folder, f"{name}.json.gz", stored.to_bytes())

    def get_list(self, key: str, kind: ListKind) -> StoredList:
        """Read a list of a kind back.

        Raises:
            NeedsDecision: code ``newer_state``: another version of the product wrote it.
            CorruptWatermark: it is gone, does not read, or is of another kind.
        """
        return read_list(kind, self._blobs.get(key), key)

    def find_list(self, dataflow: str, folder: str, name: str, kind: ListKind) -> StoredList | None:
        """A list of a folder beside the log by the name that it was put under; None if there is none."""
        key = f"{folder_of(dataflow)}/{folder}/{name}.json.gz"
        data = self._blobs.get(key)
        return None if data is None else read_list(kind, data, key)

    def put_schema(self, dataflow: str, ddl: str) -> str:
        """Keep a pinned schema under the hash of its text, unless it is there; returns the name to find it by."""
        key = _schema_key(folder_of(dataflow), ddl.encode())
        if self._blobs.get(key) is None:  # as before each slice but the first: a look costs less than a write
            self._blobs.put_if_absent(key, ddl.encode())
        return key

    def get_schema(self, key: str) -> str:
        """Read a pinned schema back.

        Raises:
            CorruptWatermark: if it is gone, or is not the text that was put.
        """
        data = self._blobs.get(key)
        if data is None or key != _schema_key(key.partition("/")[0], data):
            text = "nothing" if data is None else "another one"
            raise corrupt_object_error(
                f"pinned schema {key}",
                unquote(key.partition("/")[0]),
                f"expected the text that its name is the hash of, found {text}",
            )
        return data.decode()

    def put_object(self, dataflow: str, folder: str, name: str, data: bytes) -> str:
        """Keep bytes beside the log, unless the name is taken; returns the name to find them by."""
        key = f"{folder_of(dataflow)}/{folder}/{name}"
        self._blobs.put_if_absent(key, data)
        return key

    def put_over(self, dataflow: str, folder: str, name: str, data: bytes) -> None:
        """Write bytes beside the log, over what is there."""
        self._blobs.put(f"{folder_of(dataflow)}/{folder}/{name}", data)

    def get_object(self, dataflow: str, folder: str, name: str) -> bytes | None:
        """What :meth:`put_object` has kept; None if it is gone."""
        return self._blobs.get(f"{folder_of(dataflow)}/{folder}/{name}")

    def names(self, dataflow: str, folder: str, count: int) -> list[str]:
        """The first names of a folder beside the log, in byte order."""
        return self._blobs.first(f"{folder_of(dataflow)}/{folder}", count)

    def delete(self, dataflow: str, folder: str, names: Iterable[str]) -> None:
        """Remove what is no longer needed."""
        for name in names:
            self._blobs.delete(f"{folder_of(dataflow)}/{folder}/{name}")

    def note(self, dataflow: str, name: str) -> dict[str, Any] | None:
        """Return how far a chore has come. No truth: if a note is gone or does not read, the chore starts again."""
        data = self._blobs.get(f"{folder_of(dataflow)}/notes/{name}.json")
        try:
            note = json.loads(data) if data else None
        except ValueError:
            return None
        return note if isinstance(note, dict) else None

    def put_note(self, dataflow: str, name: str, note: Mapping[str, Any]) -> None:
        """Write a note over the one that is there."""
        self.put_over(dataflow, "notes", f"{name}.json", json.dumps(note).encode())

    def delete_all(self, dataflow: str, keep: str) -> None:
        """Remove all objects of a dataflow but those of one folder. Nobody may write there any more."""
        for folder in _FOLDERS:
            while folder != keep and (names := self.names(dataflow, folder, _PAGE)):
                self.delete(dataflow, folder, names)

    def delete_numbered(self, dataflow: str, folder: str, floor: int, keep: str | None = None) -> None:
        """Delete objects whose names begin with a number at or below the floor, but for one."""
        names = self.names(dataflow, folder, 2 * _PAGE)
        old = [name for name in names if name != keep and int(name[:10]) <= floor]
        self.delete(dataflow, folder, old)


def folder_of(dataflow: str) -> str:
    """Return the folder of a dataflow."""
    return quote(dataflow, safe="")


def _schema_key(folder: str, text: bytes) -> str:
    return f"{folder}/schemas/{hashlib.sha256(text).hexdigest()[:16]}.ddl"
