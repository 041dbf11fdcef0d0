"""The numbered log of one dataflow's watermark (spec 02, The log).

Names of entries count down (``9999999990-0000000009.json``), so the newest is the first of a listing: reading the state
costs one listing and one read, however long the history is. Layout below the store's root::

    <dataflow>/entries/…json   <dataflow>/intents/…json   <dataflow>/files/…json.gz   <dataflow>/schemas/…ddl
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from partitions.errors import Conflict, CorruptWatermark, ProviderError
from resources.watermarks.blobs import Blobs
from resources.watermarks.entry import Entry, Intent, corrupt, read_record

_TOP = 9_999_999_999


class WatermarkLog:
    """Entries, intents and what they refer to, over any :class:`Blobs`."""

    def __init__(self, blobs: Blobs) -> None:
        """Use a store."""
        self._blobs = blobs

    def newest(self, dataflow: str) -> Entry | None:
        """The newest entry, or None for a dataflow without any.

        Raises:
            CorruptWatermark: where it does not read; an older entry is never taken in its place.
        """
        names = self._blobs.first(f"{_folder(dataflow)}/entries", 1)
        return self._entry(dataflow, _number(dataflow, names[0])) if names else None

    def append(self, dataflow: str, entry: Entry, *, expected: int) -> Entry:
        """Append ``entry`` as the number after ``expected``.

        Raises:
            Conflict: where another writer has taken the number.
        """
        if entry.number != expected + 1:
            raise ProviderError(f"dataflow {dataflow}: expected entry {expected + 1}, found {entry.number}")
        key = f"{_folder(dataflow)}/{_entry_name(entry.number)}"
        if not self._blobs.put_if_absent(key, entry.to_bytes()):
            winner = self._entry(dataflow, entry.number)
            if winner.id != entry.id:  # else an answer was lost and the put was tried twice: it is ours
                raise Conflict(
                    f"dataflow {dataflow}: number {entry.number} was taken by another writer (run {winner.run_id or 'unknown'},"
                    f" {winner.why}, {winner.time}). Nothing of this run was saved for it; run again to go on from there"
                )
        return entry

    def history(self, dataflow: str, limit: int = 1000) -> Iterator[Entry]:
        """The entries, newest first."""
        for name in self._blobs.first(f"{_folder(dataflow)}/entries", limit):
            yield self._entry(dataflow, _number(dataflow, name))

    def intent(self, dataflow: str, number: int) -> Intent | None:
        """The intent of a number, if one was put."""
        key = f"{_folder(dataflow)}/intents/{number:010d}.json"
        data = self._blobs.get(key)
        return None if data is None else read_record(Intent, data, f"intent {number} of {dataflow} ({key})")

    def put_intent(self, intent: Intent) -> Intent:
        """Put an intent if its number has none; returns the one that holds the number, whosever it is."""
        key = f"{_folder(intent.dataflow)}/intents/{intent.number:010d}.json"
        if self._blobs.put_if_absent(key, intent.to_bytes()):
            return intent
        return self.intent(intent.dataflow, intent.number) or intent

    def put_list(self, dataflow: str, name: str, rows: Sequence[Sequence[Any]]) -> str:
        """Keep a list beside the log; returns the name to find it by."""
        key = f"{_folder(dataflow)}/files/{name}.json.gz"
        self._blobs.put_if_absent(key, gzip.compress(json.dumps(rows).encode(), compresslevel=6, mtime=0))
        return key

    def get_list(self, key: str) -> list[list[Any]]:
        """Read a list back.

        Raises:
            CorruptWatermark: where it is gone or does not read.
        """
        data = self._blobs.get(key)
        try:
            rows = json.loads(gzip.decompress(data)) if data is not None else None
        except (OSError, ValueError, EOFError) as error:
            raise CorruptWatermark(
                f"file list {key}: expected gzipped JSON, found something else ({error})"
            ) from error
        if not isinstance(rows, list):
            raise CorruptWatermark(
                f"file list {key}: expected a list, found {'nothing' if data is None else type(rows).__name__}"
            )
        return rows

    def put_schema(self, dataflow: str, ddl: str) -> str:
        """Keep a pinned schema under the hash of its text; returns the name to find it by."""
        key = _schema_key(_folder(dataflow), ddl.encode())
        self._blobs.put_if_absent(key, ddl.encode())
        return key

    def get_schema(self, key: str) -> str:
        """Read a pinned schema back.

        Raises:
            CorruptWatermark: where it is gone, or is not the text that was put.
        """
        data = self._blobs.get(key)
        if data is None or key != _schema_key(key.partition("/")[0], data):
            found = "nothing" if data is None else "another one"
            raise CorruptWatermark(
                f"pinned schema {key}: expected the text that its name is the hash of, found {found}. Restore the object from a backup"
            )
        return data.decode()

    def _entry(self, dataflow: str, number: int) -> Entry:
        key = f"{_folder(dataflow)}/{_entry_name(number)}"
        data = self._blobs.get(key)
        if data is None:
            raise CorruptWatermark(f"entry {number} of {dataflow} ({key}): expected a record, found nothing")
        where = f"entry {number} of {dataflow} ({key})"
        entry = read_record(Entry, data, where)
        if entry.number != number:
            raise corrupt(where, f"expected its own number, found {entry.number}")
        try:
            entry.state()
        except CorruptWatermark as error:
            raise corrupt(where, error.message) from error
        return entry


def _folder(dataflow: str) -> str:
    return quote(dataflow, safe="")


def _schema_key(folder: str, text: bytes) -> str:
    return f"{folder}/schemas/{hashlib.sha256(text).hexdigest()[:16]}.ddl"


def _entry_name(number: int) -> str:
    return f"entries/{_TOP - number:010d}-{number:010d}.json"


def _number(dataflow: str, name: str) -> int:
    down, _, up = name.removesuffix(".json").partition("-")
    if not (down.isdecimal() and up.isdecimal() and int(down) + int(up) == _TOP):
        raise CorruptWatermark(
            f"dataflow {dataflow}: expected an entry's name in the log, found {name!r}: something else wrote there; remove it"
        )
    return int(up)
