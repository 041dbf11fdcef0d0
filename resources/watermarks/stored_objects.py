"""Objects beside the entries of a log: lists, pinned schemas, leases, notes (docs/reference/state.md).

Each kind has a folder of its own per dataflow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from partitions.errors import CorruptWatermark
from resources.watermarks.blobs import Blobs
from resources.watermarks.lists import ListKind, StoredList, corrupt_object_error, read_list

FILES = "files"
"""The folder of the lists of files, one per intent, named by its number."""

LEASES = "leases"
"""The folder of leases, one per intent that a process works on, named by its number."""

QUARANTINE = "quarantine"
"""The folder of the lists of quarantined files, named by the number of their intent."""

DELETES = "deletes"
"""The folder of the lists of deletes in force, named by the number of their intent."""

OBSERVED = "observed"
"""The folder of observations of work units by writes, named by the number of their intent."""

LOADED_WINDOWS = "loads"
"""The folder of the record of what deleted entries have loaded, named by the newest of them."""

_FOLDERS = (
    "entries",
    "intents",
    FILES,
    LEASES,
    QUARANTINE,
    DELETES,
    OBSERVED,
    LOADED_WINDOWS,
    "schemas",
    "floor",
    "ingested",
    "notes",
    "chunks",
    "chunks_done",
    "addresses",
)
"""All folders of a dataflow's log. Entries come first: without them there is no log."""

_PAGE = 1000


class StoredObjects:
    """Write, read and delete objects beside the entries."""

    def __init__(self, blobs: Blobs) -> None:
        """Use a store."""
        self._blobs = blobs

    @property
    def blobs(self) -> Blobs:
        """The store that holds the objects."""
        return self._blobs

    def put_list(self, dataflow: str, name: str, stored: StoredList, folder: str = FILES) -> str:
        """Store a list beside the log, and return its key."""
        return self.put_object(dataflow, folder, f"{name}.json.gz", stored.to_bytes())

    def get_list(self, key: str, kind: ListKind) -> StoredList:
        """Read a list of a kind.

        Raises:
            NeedsDecision: code ``newer_state``: another version of the product wrote it.
            CorruptWatermark: it is missing, does not read, or has another kind.
        """
        data = self._blobs.get(key)
        if data is None:
            self._check_folder(key)
        return read_list(kind, data, key)

    def find_list(self, dataflow: str, folder: str, name: str, kind: ListKind) -> StoredList | None:
        """Return a list by its folder and the name that it was stored under; None if there is none."""
        key = f"{folder_of(dataflow)}/{folder}/{name}.json.gz"
        data = self._blobs.get(key)
        return None if data is None else read_list(kind, data, key)

    def put_schema(self, dataflow: str, ddl: str) -> str:
        """Store a pinned schema under the hash of its text, unless it exists, and return its key."""
        key = _schema_key(folder_of(dataflow), ddl.encode())
        if (
            self._blobs.get(key) is None
        ):  # a read is cheaper than a write, and all slices but the first find it
            self._blobs.put_if_absent(key, ddl.encode())
        return key

    def get_schema(self, key: str) -> str:
        """Read a pinned schema.

        Raises:
            CorruptWatermark: it is missing, or differs from the text that was stored.
        """
        data = self._blobs.get(key)
        if data is None or key != _schema_key(key.partition("/")[0], data):
            if data is None:
                self._check_folder(key)
            text = "nothing" if data is None else "another text"
            raise corrupt_object_error(
                f"pinned schema {key}",
                unquote(key.partition("/")[0]),
                f"expected the text whose hash is its name, found {text}",
            )
        return data.decode()

    def _check_folder(self, key: str) -> None:
        """Raise if the folder of a missing object has no entries: somebody has renamed it.

        Raises:
            CorruptWatermark: names the folder and the command that renames a dataflow.
        """
        folder = key.partition("/")[0]
        if not self._blobs.first_names(f"{folder}/entries", 1):
            name = unquote(folder)
            raise CorruptWatermark(
                f"{key}: expected an object of dataflow {name}, whose entries name it, found no state of {name}: "
                f"a folder of the state was renamed by hand. Rename it back to {folder}, then run "
                f"`strandline rename {name} NEW`",
                choices=(f"strandline rename {name} NEW",),
            )

    def put_object(self, dataflow: str, folder: str, name: str, data: bytes) -> str:
        """Store bytes beside the log, unless the name exists, and return the key."""
        key = f"{folder_of(dataflow)}/{folder}/{name}"
        self._blobs.put_if_absent(key, data)
        return key

    def put_over(self, dataflow: str, folder: str, name: str, data: bytes) -> None:
        """Write bytes beside the log, over an existing object."""
        self._blobs.put(f"{folder_of(dataflow)}/{folder}/{name}", data)

    def get_object(self, dataflow: str, folder: str, name: str) -> bytes | None:
        """Return the bytes that :meth:`put_object` stored; None if they are missing."""
        return self._blobs.get(f"{folder_of(dataflow)}/{folder}/{name}")

    def names(self, dataflow: str, folder: str, count: int) -> list[str]:
        """Return the first names of a folder beside the log, in byte order."""
        return self._blobs.first_names(f"{folder_of(dataflow)}/{folder}", count)

    def delete(self, dataflow: str, folder: str, names: Iterable[str]) -> None:
        """Delete objects of a folder."""
        for name in names:
            self._blobs.delete(f"{folder_of(dataflow)}/{folder}/{name}")

    def note(self, dataflow: str, name: str) -> dict[str, Any] | None:
        """Return a note of a run or a chore; None if it is missing or does not read.

        Notes hold no truth: without one the chore starts again.
        """
        data = self._blobs.get(f"{folder_of(dataflow)}/notes/{name}.json")
        try:
            note = json.loads(data) if data else None
        except ValueError:
            return None
        return note if isinstance(note, dict) else None

    def put_note(self, dataflow: str, name: str, note: Mapping[str, Any]) -> None:
        """Write a note over an existing one."""
        self.put_over(dataflow, "notes", f"{name}.json", json.dumps(note).encode())

    def delete_all(self, dataflow: str, keep: str) -> None:
        """Delete all objects of a dataflow outside one folder, once nobody writes there any more."""
        for folder in _FOLDERS:
            while folder != keep and (names := self.names(dataflow, folder, _PAGE)):
                self.delete(dataflow, folder, names)

    def delete_numbered(self, dataflow: str, folder: str, floor: int, keep: Collection[str] = ()) -> None:
        """Delete objects whose names start with a number at or below the floor, except those to keep."""
        names = self.names(dataflow, folder, 2 * _PAGE)
        old = [name for name in names if name not in keep and int(name[:10]) <= floor]
        self.delete(dataflow, folder, old)


def folder_of(dataflow: str) -> str:
    """Return the folder of a dataflow."""
    return quote(dataflow, safe="")


def _schema_key(folder: str, text: bytes) -> str:
    return f"{folder}/schemas/{hashlib.sha256(text).hexdigest()[:16]}.ddl"
