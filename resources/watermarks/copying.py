"""Copy the logs of dataflows into another store, and read each object back.

See docs/how-to/moving-and-restoring.md. Of all objects, the newest entry follows the objects that it needs and
precedes all other entries, and the intents of those. So an interrupted copy holds no state, or the newest
one: never an older one that a run could continue from, nor an ended intent without its entry, which would
look open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import unquote

from partitions.errors import ConfigurationError, Conflict, ProviderError
from resources.watermarks.blobs.protocol import Blobs
from resources.watermarks.entry import Entry, Intent, read_record
from resources.watermarks.entry_names import number_of
from resources.watermarks.log import WatermarkLog
from resources.watermarks.stored_objects import LEASES, folder_of

_ENTRIES, _INTENTS, _NOTES = "entries", "intents", "notes"
_ALL = 1_000_000
_AT_ONCE = 8
"""Objects that are copied at the same time: requests to a bucket mostly wait."""


@dataclass(frozen=True)
class CopiedLog:
    """The contents of one copied log.

    Attributes:
        dataflow: the dataflow's name; ``~replays`` for the claims of replays.
        number: number of its newest entry; 0 if there is none.
        entries: number of entries.
        objects: number of other objects: intents, lists, schemas, notes.
        written: number of objects that the other store did not have yet.
    """

    dataflow: str
    number: int
    entries: int
    objects: int
    written: int


@dataclass(frozen=True)
class LogKeys:
    """The keys of a log's objects except leases, in the parts that are written one after the other.

    Attributes:
        beside: lists, schemas, notes and what else is neither entry nor intent.
        entries: newest first.
        open_intent: the intent after the newest entry, if there is one.
        ended_intents: all others. Without its entry such an intent would look open.
    """

    beside: tuple[str, ...]
    entries: tuple[str, ...]
    open_intent: tuple[str, ...]
    ended_intents: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """The keys of all objects."""
        return self.beside + self.open_intent + self.entries + self.ended_intents


def keys_by_step(blobs: Blobs, dataflow: str) -> LogKeys:
    """Return the keys of a log's objects, which another store gets step by step."""
    keys = list(log_keys(blobs, dataflow))
    entries = tuple(key for key in keys if _folder(key) == _ENTRIES)
    newest = (number_of(_name(entries[0])) or 0) if entries else 0
    intents = [key for key in keys if _folder(key) == _INTENTS]
    is_open = {key: int(_name(key).partition(".")[0]) > newest for key in intents}
    return LogKeys(
        tuple(key for key in keys if _folder(key) not in (_ENTRIES, _INTENTS)),
        entries,
        tuple(key for key in intents if is_open[key]),
        tuple(key for key in intents if not is_open[key]),
    )


def stored_logs(blobs: Blobs) -> list[str]:
    """Return the sorted names of the dataflows that have a log in a store.

    The claims of replays are one of them.
    """
    return sorted(unquote(folder) for folder in blobs.folders(""))


def copy_log(source: Blobs, target: Blobs, dataflow: str, name: str | None = None) -> CopiedLog:
    """Copy all objects of a dataflow's log except leases, and compare each copy with its original.

    A repeated copy adds new objects. It deletes nothing in the other store.

    Args:
        source: the store of the log.
        target: another store; or the same, if the copy has another name.
        dataflow: the dataflow's name.
        name: the dataflow that the copy belongs to; None: the same.

    Raises:
        ConfigurationError: the other store holds another log of the dataflow, or one that has continued.
        Conflict: a run or decision changed the log meanwhile.
        CorruptWatermark: the log does not read.
        ProviderError: a store failed, or did not return the written object.
    """
    before = _last_steps(source, dataflow)
    copier = _Copier(source, target, dataflow, name or dataflow)
    copier.check_same_log()
    keys = keys_by_step(source, dataflow)
    written = 0
    for step in (keys.beside, keys.open_intent, keys.entries[:1], keys.entries[1:], keys.ended_intents):
        written += sum(copier.copy(step))
    if _last_steps(source, dataflow) != before:
        raise Conflict(
            f"dataflow {dataflow}: a run or decision changed its state during the copy. Stop the "
            "project's sensors and runs, then copy again; objects already copied stay"
        )
    newest = WatermarkLog(target).newest(copier.name)
    entries = len(keys.entries)
    return CopiedLog(copier.name, newest.number if newest else 0, entries, len(keys.all) - entries, written)


def delete_log(blobs: Blobs, dataflow: str) -> None:
    """Delete all objects of a dataflow's log, once nobody writes there any more.

    Entries are deleted first, so that an interrupted deletion leaves no state.
    """
    for folder in sorted(blobs.folders(folder_of(dataflow)), key=lambda folder: folder != _ENTRIES):
        for key in reversed(list(_keys_of(blobs, dataflow, folder))):
            blobs.delete(key)


def _last_steps(blobs: Blobs, dataflow: str) -> tuple[str | None, str | None]:
    """Return the ids of the newest entry and of the intent after it.

    Raises:
        CorruptWatermark: one of them does not read.
    """
    log = WatermarkLog(blobs)
    newest = log.newest(dataflow)
    intent = log.open_intent(dataflow, newest)
    return newest.id if newest else None, intent.id if intent else None


def log_keys(blobs: Blobs, dataflow: str) -> Iterator[str]:
    """Yield the keys of all objects of a log except leases, which belong to the store's own processes."""
    for folder in blobs.folders(folder_of(dataflow)):
        if folder != LEASES:
            yield from _keys_of(blobs, dataflow, folder)


def _keys_of(blobs: Blobs, dataflow: str, folder: str) -> Iterator[str]:
    path = f"{folder_of(dataflow)}/{folder}"
    return (f"{path}/{name}" for name in blobs.first_names(path, _ALL))


def _folder(key: str) -> str:
    return key.split("/")[1]


def _name(key: str) -> str:
    return key.rpartition("/")[2]


@dataclass(frozen=True)
class _Copier:
    """A copier of one log's objects to another name."""

    source: Blobs
    target: Blobs
    dataflow: str
    name: str

    def check_same_log(self) -> None:
        """Raise ConfigurationError if the source never had the target's newest entry."""
        copied = next(_keys_of(self.target, self.name, _ENTRIES), None)
        if copied is None:
            return
        original = f"{folder_of(self.dataflow)}/{copied.partition('/')[2]}"
        data = self.source.get(original)
        if data is not None and self._renamed(original, data) == self.target.get(copied):
            return
        log, number = WatermarkLog(self.source), number_of(copied.rpartition("/")[2]) or 0
        newest = log.newest(self.dataflow)
        if newest is not None and number <= log.floor(self.dataflow):  # its newest entry was compacted since
            return
        is_newer = newest is None or number > newest.number
        raise ConfigurationError(
            f"dataflow {self.dataflow}: expected no state at the target, or an earlier copy of this one; "
            f"found entry {number}, which "
            f"{'the state here does not have' if is_newer else 'differs from the one here'}. Use another "
            f"{'address' if self.name == self.dataflow else 'name'}, or remove {folder_of(self.name)} there",
            code="other_state",
        )

    def copy(self, keys: Iterable[str]) -> Iterator[bool]:
        """Copy objects, several at a time; yield whether each was written."""
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(self._copy_object, keys)

    def _copy_object(self, original: str) -> bool:
        """Copy one object and read it back.

        Return False if the target has it already, or the source no longer has it.
        """
        data = self.source.get(original)
        if data is None:
            return False
        data, key = self._renamed(original, data), f"{folder_of(self.name)}/{original.partition('/')[2]}"
        if self.target.get(key) == data:
            return False
        if _folder(key) == _NOTES:
            self.target.put(key, data)
        else:
            self.target.put_if_absent(key, data)
        stored = self.target.get(key)
        if stored is None:
            raise ProviderError(f"{key}: expected the object that was written, found none. Copy again")
        if stored != data:
            raise ConfigurationError(
                f"{key}: expected no such object at the target, or the same one; found a different one. "
                f"Use another address, or remove {key.partition('/')[0]} there",
                code="other_state",
            )
        return True

    def _renamed(self, key: str, data: bytes) -> bytes:
        """Return an object's bytes under the new name.

        Entries and intents name other objects of their log, and intents name the dataflow.
        """
        records: Mapping[str, type[Entry | Intent]] = {_ENTRIES: Entry, _INTENTS: Intent}
        if self.name == self.dataflow or _folder(key) not in records:
            return data
        stored = read_record(records[_folder(key)], data, key)
        changes = {
            field: folder_of(self.name) + value.removeprefix(folder_of(self.dataflow))
            for field in ("pinned", "file_list", "quarantine", "deletes", "forgotten")
            if isinstance(value := getattr(stored, field, None), str)
            and value.startswith(f"{folder_of(self.dataflow)}/")
        }
        if isinstance(stored, Intent):
            changes["dataflow"] = self.name
        return stored.model_copy(update=changes).to_bytes()
