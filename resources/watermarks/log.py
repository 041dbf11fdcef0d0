"""The numbered log of one dataflow's watermark (docs/watermarks.md, The log).

Names of entries count down (``9999999990-0000000009.json``), so the newest is the first of a listing: reading the state
costs one listing and one read, however long the history is. Layout below the store's root, a folder a dataflow::

    entries/…json   intents/…json   files/…json.gz   schemas/…ddl   floor/…   leases/…
    quarantine/…json.gz   observed/…json.gz   ingested/…json, …parquet   notes/…json

A used number stays taken: before old entries are deleted the *floor* is raised above them, and whoever has put an entry
looks at it. So a writer that slept through all that cannot bring a deleted number back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from partitions.difference import applied, difference
from partitions.errors import Conflict, CorruptWatermark, ProviderError
from resources.watermarks.blobs import Blobs
from resources.watermarks.blobs.rehearsed import RehearsedBlobs
from resources.watermarks.entry import Entry, Intent, corrupt, read_record
from resources.watermarks.lists import ListKind, StoredList, corrupt_object, read_list

FILES = "files"
"""The folder of the lists of files, one an intent, named by its number."""

LEASES = "leases"
"""The folder of signs of life, one an intent that somebody works on, named like them."""

QUARANTINE = "quarantine"
"""The folder of the lists of files in quarantine, named like them."""

OBSERVED = "observed"
"""The folder of what writes saw of their work units, named like them."""

SNAPSHOT_EVERY = 100
"""Entries after which a long watermark is stored whole again."""

_LONG = 2048
"""Characters of a watermark below which it is always stored whole."""

_TOP = 9_999_999_999
_RECENT = 50
_PAGE = 1000
_ALL = 1_000_000


class WatermarkLog:
    """Entries, intents and what they refer to, over any :class:`Blobs`."""

    def __init__(self, blobs: Blobs) -> None:
        """Use a store."""
        self._blobs = blobs

    def rehearsal(self) -> WatermarkLog:
        """The same log, of which nothing that is written is kept."""
        return WatermarkLog(RehearsedBlobs(self._blobs))

    def newest(self, dataflow: str) -> Entry | None:
        """The newest entry, or None for a dataflow without any.

        Raises:
            CorruptWatermark: if it does not read; an older entry is never taken in its place.
        """
        names = self._blobs.first(f"{_folder(dataflow)}/entries", 1)
        return self.entry(dataflow, _number(dataflow, names[0])) if names else None

    def append(self, dataflow: str, entry: Entry, *, expected: int) -> Entry:
        """Append ``entry`` after the entry of number ``expected`` (0: there is none).

        Returns:
            the entry as it stands in the log: another run that finished the same intent may have put it.

        Raises:
            Conflict: if another writer has taken the number, or has gone on from ``expected`` in another way.
        """
        if entry.number <= expected or entry.previous != expected:
            raise ProviderError(
                f"dataflow {dataflow}: expected an entry after {expected}, found {entry.number} after {entry.previous}"
            )
        key = f"{_folder(dataflow)}/{_entry_name(entry.number)}"
        entry = self._numbered(entry)
        if entry.number > expected + 1 and next(iter(self._numbers(dataflow, 1)), 0) != expected:
            raise _taken(dataflow, entry, self.newest(dataflow))
        if not self._blobs.put_if_absent(key, self._shortened(dataflow, entry).to_bytes()):
            winner = self.entry(dataflow, entry.number)
            if winner.id != entry.id:
                raise _taken(dataflow, entry, winner)
            entry = winner  # an answer was lost and the put was tried twice; or another run has finished the same intent
        if not self._stands(dataflow, entry, key):
            raise _taken(dataflow, entry, self.newest(dataflow))
        return entry

    def _numbered(self, entry: Entry) -> Entry:
        """The entry with the number of its snapshot: the one that it goes on from, itself, or none for a short watermark."""
        start = entry.snapshot
        if len(entry.watermark) < _LONG:
            return entry if start is None else entry.model_copy(update={"snapshot": None})
        whole = start is None or entry.number - start >= SNAPSHOT_EVERY
        return entry.model_copy(update={"snapshot": entry.number}) if whole else entry

    def _shortened(self, dataflow: str, entry: Entry) -> Entry:
        """The entry as it is stored: a long watermark as what differs from its snapshot's."""
        if entry.snapshot is None or entry.snapshot == entry.number:
            return entry
        base = self.entry(dataflow, entry.snapshot)
        return entry.model_copy(
            update={
                "watermark": "",
                "changes": difference(json.loads(base.watermark), json.loads(entry.watermark)),
            }
        )

    def _whole(self, dataflow: str, entry: Entry, where: str) -> Entry:
        """The entry as it is handed out."""
        if entry.changes is None:
            return entry
        base = self.entry(dataflow, entry.snapshot or 0)
        try:
            watermark = json.dumps(applied(json.loads(base.watermark), entry.changes), sort_keys=True)
        except ValueError as error:
            raise corrupt(where, f"changes: {error}") from error
        return entry.model_copy(update={"watermark": watermark, "changes": None})

    def _stands(self, dataflow: str, entry: Entry, key: str) -> bool:
        """Whether an entry that was just put belongs to the log; one that does not is ignored by all readers, or removed."""
        floor = self.floor(dataflow)
        if entry.number <= floor:
            return False
        numbers = self._numbers(dataflow, 2 * _RECENT)
        above = [number for number in numbers if number > entry.number]
        below = next((number for number in numbers if number < entry.number), None)
        if not above and below != entry.previous and entry.previous > floor:
            # It goes on from an entry that the log does not have (any more): as the newest it would hide all that are there.
            self._blobs.delete(key)
            return False
        # Who went on from ours did it after it was there; anybody else took another way.
        return not above or self.entry(dataflow, above[-1]).previous == entry.number

    def floor(self, dataflow: str) -> int:
        """All numbers up to this one were used and deleted; 0 if none was."""
        names = self._blobs.first(f"{_folder(dataflow)}/floor", 1)
        return _number(dataflow, names[0]) if names else 0

    def raise_floor(self, dataflow: str, number: int) -> None:
        """Say that all numbers up to this one are about to be deleted. It never falls."""
        self._blobs.put_if_absent(f"{_folder(dataflow)}/floor/{descending_name(number)}", b"")

    def delete_entries(self, dataflow: str, numbers: Iterable[int]) -> None:
        """Delete entries at or below the floor."""
        for number in numbers:
            self._blobs.delete(f"{_folder(dataflow)}/{_entry_name(number)}")
        floors = self.names(dataflow, "floor", _ALL)
        self.delete(dataflow, "floor", floors[1:])

    def delete_numbered(self, dataflow: str, folder: str, floor: int, keep: str | None = None) -> None:
        """Delete objects whose names begin with a number at or below the floor, but for one."""
        names = self.names(dataflow, folder, 2 * _PAGE)
        old = [name for name in names if name != keep and int(name[:10]) <= floor]
        self.delete(dataflow, folder, old)

    def history(self, dataflow: str, limit: int = 1000) -> Iterator[Entry]:
        """The entries, newest first; one that a sleeping writer put beside the chain is no part of it."""
        floor, wanted = self.floor(dataflow), None
        for number in self._numbers(dataflow, limit):
            if number <= floor or (wanted is not None and number > wanted):
                continue
            if wanted is not None and number < wanted:
                self.entry(dataflow, wanted)  # says what is missing
            entry = self.entry(dataflow, number)
            wanted = entry.previous
            yield entry

    def find(self, dataflow: str, number: int) -> Entry | None:
        """The entry of a number; None if there is none, or no more."""
        if number <= self.floor(dataflow) or number not in self._numbers(dataflow, _ALL):
            return None
        return self.entry(dataflow, number)

    def numbers(self, dataflow: str) -> list[int]:
        """The numbers of all entries, falling."""
        return self._numbers(dataflow, _ALL)

    def _numbers(self, dataflow: str, limit: int) -> list[int]:
        """The numbers of the newest entries, falling."""
        return [_number(dataflow, name) for name in self._blobs.first(f"{_folder(dataflow)}/entries", limit)]

    def intent(self, dataflow: str, number: int) -> Intent | None:
        """The intent of a number, if one was put."""
        key = f"{_folder(dataflow)}/intents/{number:010d}.json"
        data = self._blobs.get(key)
        return None if data is None else read_record(Intent, data, f"intent {number} of {dataflow} ({key})")

    def open_intent(self, dataflow: str, newest: Entry | None) -> Intent | None:
        """The intent of the number after the newest entry, if one was put: what a run or a decision has begun and not finished."""
        return self.intent(dataflow, newest.number + 1 if newest else 1)

    def put_intent(self, intent: Intent) -> Intent:
        """Put an intent if its number has none; returns the one that holds the number, whosever it is."""
        key = f"{_folder(intent.dataflow)}/intents/{intent.number:010d}.json"
        if self._blobs.put_if_absent(key, intent.to_bytes()):
            return intent
        return self.intent(intent.dataflow, intent.number) or intent

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
        key = f"{_folder(dataflow)}/{folder}/{name}.json.gz"
        data = self._blobs.get(key)
        return None if data is None else read_list(kind, data, key)

    def put_schema(self, dataflow: str, ddl: str) -> str:
        """Keep a pinned schema under the hash of its text; returns the name to find it by."""
        key = _schema_key(_folder(dataflow), ddl.encode())
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
            raise corrupt_object(
                f"pinned schema {key}",
                unquote(key.partition("/")[0]),
                f"expected the text that its name is the hash of, found {text}",
            )
        return data.decode()

    def put_object(self, dataflow: str, folder: str, name: str, data: bytes) -> str:
        """Keep bytes beside the log, unless the name is taken; returns the name to find them by."""
        key = f"{_folder(dataflow)}/{folder}/{name}"
        self._blobs.put_if_absent(key, data)
        return key

    def put_over(self, dataflow: str, folder: str, name: str, data: bytes) -> None:
        """Write bytes beside the log, over what is there."""
        self._blobs.put(f"{_folder(dataflow)}/{folder}/{name}", data)

    def get_object(self, dataflow: str, folder: str, name: str) -> bytes | None:
        """What :meth:`put_object` has kept; None if it is gone."""
        return self._blobs.get(f"{_folder(dataflow)}/{folder}/{name}")

    def names(self, dataflow: str, folder: str, count: int) -> list[str]:
        """The first names of a folder beside the log, in byte order."""
        return self._blobs.first(f"{_folder(dataflow)}/{folder}", count)

    def delete(self, dataflow: str, folder: str, names: Iterable[str]) -> None:
        """Remove what nobody needs any more."""
        for name in names:
            self._blobs.delete(f"{_folder(dataflow)}/{folder}/{name}")

    def note(self, dataflow: str, name: str) -> dict[str, Any] | None:
        """Return how far a chore has come. No truth: if a note is gone or does not read, the chore starts again."""
        data = self._blobs.get(f"{_folder(dataflow)}/notes/{name}.json")
        try:
            note = json.loads(data) if data else None
        except ValueError:
            return None
        return note if isinstance(note, dict) else None

    def put_note(self, dataflow: str, name: str, note: Mapping[str, Any]) -> None:
        """Write a note over the one that is there."""
        self.put_over(dataflow, "notes", f"{name}.json", json.dumps(note).encode())

    def entry(self, dataflow: str, number: int) -> Entry:
        """The entry of a number that is in use.

        Raises:
            CorruptWatermark: if it is gone, or does not read.
        """
        key = f"{_folder(dataflow)}/{_entry_name(number)}"
        data = self._blobs.get(key)
        if data is None:
            raise CorruptWatermark(f"entry {number} of {dataflow} ({key}): expected a record, found nothing")
        where = f"entry {number} of {dataflow} ({key})"
        entry = read_record(Entry, data, where)
        if entry.number != number:
            raise corrupt(where, f"expected its own number, found {entry.number}")
        entry = self._whole(dataflow, entry, where)
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
    return f"entries/{descending_name(number)}.json"


def descending_name(number: int) -> str:
    """A name for a number: of a higher number it comes first."""
    return f"{_TOP - number:010d}-{number:010d}"


def number_of(name: str) -> int | None:
    """The number of such a name; None for any other text."""
    down, _, up = name.partition(".")[0].partition("-")
    return int(up) if down.isdecimal() and up.isdecimal() and int(down) + int(up) == _TOP else None


def _number(dataflow: str, name: str) -> int:
    number = number_of(name)
    if number is None:
        raise CorruptWatermark(
            f"dataflow {dataflow}: expected an entry's name in the log, found {name!r}: something else wrote there; remove it"
        )
    return number


def _taken(dataflow: str, entry: Entry, winner: Entry | None) -> Conflict:
    by = f" (run {winner.run_id or 'unknown'}, {winner.why}, {winner.time})" if winner else ""
    return Conflict(
        f"dataflow {dataflow}: number {entry.number} was taken by another writer{by}. Nothing of this run was saved for it;"
        " run again to go on from there"
    )
