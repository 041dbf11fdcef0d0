"""The numbered log of one dataflow's watermark (docs/explanation/watermarks.md, The log).

Names of entries count down (``9999999990-0000000009.json``), so the newest is the first of a listing:
reading the state costs one listing and one read, however long the history is. Below the store's root each
dataflow has a folder with::

    entries/…json   intents/…json   files/…json.gz   schemas/…ddl   floor/…   leases/…
    quarantine/…json.gz   deletes/…json.gz   observed/…json.gz   loads/…json.gz   ingested/…json, …parquet   notes/…json

A used number stays used: the *floor* rises above old entries before they are deleted, and every writer of
an entry checks it afterwards. So a writer that slept through a deletion cannot bring a deleted number
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from partitions.errors import Conflict, CorruptWatermark, ProviderError
from resources.watermarks import snapshots
from resources.watermarks.blobs.dry_run import DryRunBlobs
from resources.watermarks.entry import Entry, Intent, corrupt_record_error, read_record
from resources.watermarks.entry_names import descending_name, number_of
from resources.watermarks.stored_objects import StoredObjects, folder_of

_RECENT = 50
_ALL = 1_000_000


class WatermarkLog(StoredObjects):
    """Entries and intents, and the objects that they refer to, over any :class:`Blobs`."""

    def rehearsal(self) -> WatermarkLog:
        """Return the same log, whose writes stay in memory."""
        return WatermarkLog(DryRunBlobs(self._blobs))

    def newest(self, dataflow: str) -> Entry | None:
        """Return the newest entry, or None for a dataflow without any.

        Raises:
            CorruptWatermark: it does not read; an older entry never replaces it.
            NeedsDecision: code ``newer_state``: a newer version of the product wrote it.
        """
        names = self._blobs.first_names(f"{folder_of(dataflow)}/entries", 1)
        return self.entry(dataflow, _number(dataflow, names[0])) if names else None

    def append(self, dataflow: str, entry: Entry, *, expected: int) -> Entry:
        """Append ``entry`` after the entry of number ``expected`` (0: there is none).

        Returns:
            the entry as the log holds it: another run that finished the same intent may have written it.

        Raises:
            Conflict: another writer has taken the number, or has continued from ``expected`` in another
                way.
            ProviderError: the store failed, or the entry does not follow ``expected``.
        """
        if entry.number <= expected or entry.previous != expected:
            raise ProviderError(
                f"dataflow {dataflow}: expected an entry after {expected}, found {entry.number} after {entry.previous}"
            )
        key = f"{folder_of(dataflow)}/{_entry_name(entry.number)}"
        entry = snapshots.assign_snapshot(entry)
        if entry.number > expected + 1 and next(iter(self._numbers(dataflow, 1)), 0) != expected:
            raise _number_taken_error(dataflow, entry, self.newest(dataflow))
        if not self._blobs.put_if_absent(key, self._stored(dataflow, entry).to_bytes()):
            winner = self.entry(dataflow, entry.number)
            if winner.id != entry.id:
                raise _number_taken_error(dataflow, entry, winner)
            entry = (
                winner  # a retried put whose first answer was lost, or another run finished the same intent
            )
        if not self._stands(dataflow, entry, key):
            raise _number_taken_error(dataflow, entry, self.newest(dataflow))
        return entry

    def _stored(self, dataflow: str, entry: Entry) -> Entry:
        """Return the entry as it is stored."""
        if entry.snapshot is None or entry.snapshot == entry.number:
            return entry
        return snapshots.keep_changes_only(entry, self.entry(dataflow, entry.snapshot))

    def _stands(self, dataflow: str, entry: Entry, key: str) -> bool:
        """Return whether a new entry belongs to the log; remove it if readers would follow it all the same."""
        floor = self.floor(dataflow)
        if entry.number <= floor:
            return False
        numbers = self._numbers(dataflow, 2 * _RECENT)
        above = [number for number in numbers if number > entry.number]
        below = next((number for number in numbers if number < entry.number), None)
        if not above and below != entry.previous and entry.previous > floor:
            # It continues from an entry that the log lacks: as the newest it would hide the existing ones.
            self._blobs.delete(key)
            return False
        # A writer that continued from this entry saw it; any other writer continued from another one.
        return not above or self.entry(dataflow, above[-1]).previous == entry.number

    def floor(self, dataflow: str) -> int:
        """Return the number up to which all numbers were used and deleted; 0 if there is none."""
        names = self._blobs.first_names(f"{folder_of(dataflow)}/floor", 1)
        return _number(dataflow, names[0]) if names else 0

    def raise_floor(self, dataflow: str, number: int) -> None:
        """Raise the floor to a number, before all entries up to it are deleted. It never falls."""
        self._blobs.put_if_absent(f"{folder_of(dataflow)}/floor/{descending_name(number)}", b"")

    def delete_entries(self, dataflow: str, numbers: Iterable[int]) -> None:
        """Delete entries at or below the floor."""
        for number in numbers:
            self._blobs.delete(f"{folder_of(dataflow)}/{_entry_name(number)}")
        floors = self.names(dataflow, "floor", _ALL)
        self.delete(dataflow, "floor", floors[1:])

    def history(self, dataflow: str, limit: int = 1000) -> Iterator[Entry]:
        """Yield the entries, newest first, without entries that a late writer put beside the chain."""
        floor, expected = self.floor(dataflow), None
        for number in self._numbers(dataflow, limit):
            if number <= floor or (expected is not None and number > expected):
                continue
            if expected is not None and number < expected:
                self.entry(dataflow, expected)  # says what is missing
            entry = self.entry(dataflow, number)
            expected = entry.previous
            yield entry

    def find(self, dataflow: str, number: int) -> Entry | None:
        """Return the entry of a number; None if it does not exist, or was deleted."""
        if number <= self.floor(dataflow) or number not in self._numbers(dataflow, _ALL):
            return None
        return self.entry(dataflow, number)

    def numbers(self, dataflow: str) -> list[int]:
        """Return the numbers of all entries, descending."""
        return self._numbers(dataflow, _ALL)

    def _numbers(self, dataflow: str, limit: int) -> list[int]:
        """Return the numbers of the newest entries, descending."""
        return [
            _number(dataflow, name)
            for name in self._blobs.first_names(f"{folder_of(dataflow)}/entries", limit)
        ]

    def intent(self, dataflow: str, number: int) -> Intent | None:
        """Return the intent of a number, if there is one."""
        key = f"{folder_of(dataflow)}/intents/{number:010d}.json"
        data = self._blobs.get(key)
        return None if data is None else read_record(Intent, data, f"intent {number} of {dataflow} ({key})")

    def open_intent(self, dataflow: str, newest: Entry | None) -> Intent | None:
        """Return the intent after the newest entry, the unfinished work of a run or a decision, or None."""
        return self.intent(dataflow, newest.number + 1 if newest else 1)

    def put_intent(self, intent: Intent) -> Intent:
        """Store an intent if its number has none, and return the intent that holds the number."""
        key = f"{folder_of(intent.dataflow)}/intents/{intent.number:010d}.json"
        if self._blobs.put_if_absent(key, intent.to_bytes()):
            return intent
        return self.intent(intent.dataflow, intent.number) or intent

    def entry(self, dataflow: str, number: int) -> Entry:
        """Return the entry of a number that is in use.

        Raises:
            CorruptWatermark: it is missing, or does not read.
            NeedsDecision: code ``newer_state``: a newer version of the product wrote it.
        """
        key = f"{folder_of(dataflow)}/{_entry_name(number)}"
        data = self._blobs.get(key)
        if data is None:
            raise CorruptWatermark(f"entry {number} of {dataflow} ({key}): expected a record, found nothing")
        where = f"entry {number} of {dataflow} ({key})"
        entry = read_record(Entry, data, where)
        if entry.number != number:
            raise corrupt_record_error(where, f"expected its own number, found {entry.number}")
        if entry.changes is not None:
            entry = snapshots.restore_whole(entry, self.entry(dataflow, entry.snapshot or 0), where)
        try:
            entry.state()
        except CorruptWatermark as error:
            raise corrupt_record_error(where, error.message) from error
        return entry


def _entry_name(number: int) -> str:
    return f"entries/{descending_name(number)}.json"


def _number(dataflow: str, name: str) -> int:
    number = number_of(name)
    if number is None:
        raise CorruptWatermark(
            f"dataflow {dataflow}: expected an entry's name in the log, found {name!r}: another program wrote it. Remove it"
        )
    return number


def _number_taken_error(dataflow: str, entry: Entry, winner: Entry | None) -> Conflict:
    by = f" (run {winner.run_id or 'unknown'}, {winner.why}, {winner.time})" if winner else ""
    return Conflict(
        f"dataflow {dataflow}: number {entry.number} was taken by another writer{by}. This run saved nothing under it;"
        " run again to continue from there"
    )
