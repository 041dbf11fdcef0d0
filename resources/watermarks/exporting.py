"""A whole log as lines of text: what ``state export`` prints, and ``state import`` reads.

The entries come first, for people and programs. Then each object of the log follows as it is stored, so
that nothing of the state is lost: lists of files, quarantine, pinned schemas, intents, notes
(docs/reference/state.md, export).
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from partitions.errors import ConfigurationError, CorruptWatermark
from resources.watermarks.blobs import Blobs
from resources.watermarks.blobs.memory import MemoryBlobs
from resources.watermarks.copying import copy_log, keys_by_step, log_keys
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog

_ALL = 1_000_000
_OBJECT = "object"
_AT_ONCE = 8
"""Objects that are put at the same time: requests to a bucket mostly wait."""


def export_lines(log: WatermarkLog, dataflow: str) -> Iterator[str]:
    """Yield the entries as JSON lines, oldest first, then all objects of the log.

    Raises:
        Conflict: a run or decision changed the log meanwhile.
        CorruptWatermark: the log does not read.
    """
    copy = MemoryBlobs()
    copy_log(log.blobs, copy, dataflow)
    copied = WatermarkLog(copy)
    for entry in reversed(list(copied.history(dataflow, _ALL))):
        yield json.dumps({**entry.as_json(), "app_id": entry.app_id, "table_version": entry.table_version})
    for key in log_keys(copy, dataflow):
        yield json.dumps({_OBJECT: key, **_encode(copy.get(key) or b"")})


def _encode(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode()}


@dataclass(frozen=True)
class ExportedLog:
    """The log of an export, under the name of the dataflow that takes it.

    Attributes:
        log: all of its objects, in memory.
        dataflow: the name.
    """

    log: WatermarkLog
    dataflow: str

    @classmethod
    def parse(cls, lines: Iterable[str], dataflow: str) -> ExportedLog:
        """Read the lines of an export.

        Raises:
            ConfigurationError: they are no lines of an export, or hold the entries alone.
        """
        blobs, name = MemoryBlobs(), dataflow
        try:
            for document in (json.loads(line) for line in lines if line.strip()):
                if _OBJECT in document:
                    key = str(document[_OBJECT])
                    name = unquote(key.partition("/")[0])
                    blobs.put(key, _decode(document))
                else:
                    int(document["number"])
            exported = WatermarkLog(blobs)
            newest = exported.newest(name)
        except (ValueError, TypeError, KeyError, AttributeError, CorruptWatermark) as error:
            raise ConfigurationError(
                f"dataflow {dataflow}: expected the lines of `strandline state export`, each an entry or an object of the log as JSON, found"
                f" something else ({type(error).__name__}: {error})"
            ) from error
        if newest is None:
            raise ConfigurationError(
                f"dataflow {dataflow}: expected the lines of `strandline state export` with the objects of the log, found"
                " none. Export the state again, and import all lines"
            )
        if name != dataflow:
            renamed = MemoryBlobs()
            copy_log(blobs, renamed, name, dataflow)
            exported = WatermarkLog(renamed)
        return cls(exported, dataflow)

    @cached_property
    def newest(self) -> Entry:
        """The newest entry of the exported log."""
        newest = self.log.newest(self.dataflow)
        assert newest is not None
        return newest

    @cached_property
    def open_intent(self) -> Intent | None:
        """The intent of work that was unfinished when the log was exported; None if there was none."""
        return self.log.open_intent(self.dataflow, self.newest)

    def restore(self, blobs: Blobs) -> None:
        """Put the objects that a store lacks: lists first, then entries from the oldest on, then intents.

        So if it dies, the log is an older state as a whole, without an intent that looks open. The guards
        tell that state from the table.
        """

        def put(key: str) -> None:
            blobs.put_if_absent(key, self.log.blobs.get(key) or b"")

        keys = keys_by_step(self.log.blobs, self.dataflow)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(put, keys.beside))
            for key in (*reversed(keys.entries), *keys.open_intent):
                put(key)
            list(pool.map(put, keys.ended_intents))

    def continues(self, last: Entry | None) -> bool:
        """Return whether a log that ends with entry ``last`` is the beginning of the exported one."""
        if last is None:
            return True
        if last.number > self.newest.number:
            return False
        copied = self.log.find(self.dataflow, last.number)
        return copied is not None and copied.id == last.id

    def is_whole_in(self, last: Entry) -> bool:
        """Return whether a log whose newest entry is ``last`` holds all of the exported log's entries.

        Its newest entry may also be the one that has ended the exported open intent.
        """
        intent = self.open_intent
        ends_intent = intent is not None and last.number == intent.number and last.run_id == intent.run_id
        return last.id == self.newest.id or (ends_intent and last.previous == self.newest.number)


def _decode(document: dict[str, Any]) -> bytes:
    return b64decode(document["base64"]) if "base64" in document else str(document["text"]).encode()
