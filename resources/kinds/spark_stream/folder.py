"""The folder of a stream's engine beside the table: inbox, Spark's checkpoint, and outbox.

A folder belongs to one life of a dataflow's state: a reset begins a new one
(docs/reference/streams-on-spark.md).
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import unquote

from partitions.errors import CorruptWatermark
from partitions.spark_stream.batch_progress import BatchProgress
from resources.connections.places import Place
from resources.kinds.spark_stream.run import batch_folder
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.tables.contract.commits import TableCommit

STREAMS = "_streams"
"""Folder of the lake. No layer has a name that begins with an underscore."""

_ENDED = "_SUCCESS"
"""What Spark writes last into a folder."""

_TABLES = "tables.json"
"""Which version of each table was the newest before Spark read on."""

_COMPACT = ".compact"

_LARGE = 2**20
"""Bytes of a file above which it has rows for certain, and is not opened to see."""


@dataclass(frozen=True)
class WrittenBatch:
    """A batch in the outbox.

    Attributes:
        number: Spark's.
        bytes: of its files.
        has_rows: whether there are any.
    """

    number: int
    bytes: int
    has_rows: bool


@dataclass(frozen=True)
class StreamFolder:
    """Inbox, checkpoint and outbox of one life of a stream.

    Attributes:
        place: below which all lie.
    """

    place: Place

    @property
    def checkpoint(self) -> Place:
        """Spark's."""
        return self.place.child("checkpoint")

    @property
    def outbox(self) -> Place:
        """A folder for each batch."""
        return self.place.child("outbox")

    def inbox(self, number: int) -> Place:
        """Return where Spark reads the files of a source, by its number."""
        return self.place.child(f"inbox/{number}")

    @property
    def drafts(self) -> Place:
        """A folder for each attempt to copy files into an inbox."""
        return self.place.child("drafts")

    def query(self) -> str | None:
        """Return the id that Spark gave the query; None if there is no checkpoint.

        Raises:
            CorruptWatermark: Spark's file does not read.
        """
        text = _read(self.checkpoint, "metadata")
        try:
            return str(json.loads(text)["id"]) if text is not None else None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptWatermark(
                f'{self.checkpoint}/metadata: expected {{"id": …}}, found {text!r}: put the checkpoint of a backup back'
            ) from error

    def newest(self) -> int:
        """Return the number of the newest batch that has ended; -1 if none has."""
        _, files = _names(self.checkpoint.child("commits"))
        return max((int(name) for name in files if name.isdigit()), default=-1)

    def files_read(self) -> Mapping[str, bool]:
        """Return the files that Spark has read or begun; False for those that it never reads again."""
        sources, files = self.checkpoint.child("sources"), dict[str, bool]()
        before = self._offsets(
            self.newest() - 1
        )  # Spark looks at what the newest batch has read when it starts
        for source in _names(sources)[0]:
            log = sources.child(source)
            names = [name for name in _names(log)[1] if name.removesuffix(_COMPACT).isdigit()]
            # One entry in ten holds all before it, too.
            first = max((_number(name) for name in names if name.endswith(_COMPACT)), default=-1)
            for name in names:
                if _number(name) > first or (_number(name) == first and name.endswith(_COMPACT)):
                    lines = (_read(log, name) or "").splitlines()
                    entries = [json.loads(line) for line in lines if line.startswith("{")]
                    ended = before.get(source, -1)
                    files |= {
                        _decoded(file["path"]): file["batchId"] > ended for file in entries if "path" in file
                    }
        return files

    def _offsets(self, number: int) -> Mapping[str, int]:
        """Return how far a batch has read each source of files, by the source's own log."""
        lines = (_read(self.checkpoint.child("offsets"), str(number)) or "").splitlines()
        offsets = (json.loads(line) if line.startswith("{") else {} for line in lines[2:])
        return {
            str(source): offset["logOffset"] for source, offset in enumerate(offsets) if "logOffset" in offset
        }

    def watermark_after(self, number: int) -> datetime | None:
        """Return the watermark after a batch, aware; None if it had none, or Spark has removed it."""
        text = _read(self.checkpoint.child("commits"), str(number))
        lines = (text or "").splitlines()
        milliseconds = json.loads(lines[1]).get("nextBatchWatermarkMs", 0) if len(lines) > 1 else 0
        return (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds) if milliseconds else None
        )

    def batches(self, above: int) -> Sequence[WrittenBatch]:
        """Return the batches in the outbox that have ended, above a number, ascending."""
        newest = self.newest()
        folders, _ = _names(self.outbox)
        numbers = sorted(int(name) for name in folders if name.isdigit())
        batches = (self._written(number) for number in numbers if above < number <= newest)
        return [batch for batch in batches if batch is not None]

    def rows_of(self, number: int) -> Place | None:
        """Return where the rows of a batch lie: the attempt at it that has ended last; None if none has."""
        place = self.outbox.child(batch_folder(number))
        ended: list[tuple[datetime, str]] = []
        for name in _names(place)[0]:
            with store_failures(place):
                objects = place.child(name).store.list_with_delimiter()["objects"]
            ended += [(meta["last_modified"], name) for meta in objects if meta["path"].endswith(_ENDED)]
        return place.child(max(ended)[1]) if ended else None

    def _written(self, number: int) -> WrittenBatch | None:
        folder = self.rows_of(number)
        if folder is None:
            return None
        with store_failures(folder):
            files = [
                meta for page in folder.store.list() for meta in page if meta["path"].endswith(".parquet")
            ]
        filled = (meta["size"] > _LARGE or _rows(folder, meta["path"]) for meta in files)
        return WrittenBatch(number, sum(meta["size"] for meta in files), any(filled))

    def note_tables(self, tables: Mapping[str, TableCommit]) -> None:
        """Note the newest commit of each table that is read, before Spark reads on."""
        noted = {name: [commit.version, commit.id] for name, commit in tables.items()}
        if self.place.local is not None:
            self.place.local.mkdir(parents=True, exist_ok=True)
        with store_failures(self.place):
            self.place.store.put(_TABLES, json.dumps(noted).encode())

    def noted_tables(self) -> Mapping[str, TableCommit]:
        """Return what was noted last; nothing of a folder that an older version has begun."""
        noted = json.loads(_read(self.place, _TABLES) or "{}")
        return {name: TableCommit(version, id_) for name, (version, id_) in noted.items()}

    def keep(self, reports: Sequence[BatchProgress]) -> None:
        """Keep what Spark has said of batches, for who commits them after a crash."""
        for report in reports:
            folder = self.outbox.child(batch_folder(report.batch_id))
            with store_failures(folder):
                folder.store.put("_progress.json", json.dumps(report.as_json()).encode())

    def report(self, number: int) -> BatchProgress | None:
        """Return what Spark has said of a batch; None if the run that wrote it died before it was kept."""
        text = _read(self.outbox.child(batch_folder(number)), "_progress.json")
        return BatchProgress.from_json(json.loads(text)) if text is not None else None

    def remove_up_to(self, number: int) -> None:
        """Remove batches that are in the table."""
        folders, _ = _names(self.outbox)
        for name in folders:
            if name.isdigit() and int(name) <= number:
                remove_folder(self.outbox.child(name))


def remove_others(folders: Place, name: str) -> None:
    """Remove the folders of a stream's earlier lives."""
    for other in _names(folders)[0]:
        if other != name:
            remove_folder(folders.child(other))


def listed(root: Place) -> str:
    """Return a folder's number of files, their bytes and the last modification, as text."""
    count = size = newest = 0
    with store_failures(root):
        for page in root.store.list():
            for meta in page:
                count, size = count + 1, size + meta["size"]
                newest = max(newest, int(meta["last_modified"].timestamp() * 1000))
    return f"{count} files, {size} bytes, {newest}"


def _names(place: Place) -> tuple[list[str], list[str]]:
    """Return the names right below a place; none if it does not exist."""
    if place.local is not None and not place.local.is_dir():
        return [], []
    with store_failures(place):
        listing = place.store.list_with_delimiter()
    folders = [prefix.strip("/").rpartition("/")[2] for prefix in listing["common_prefixes"]]
    return folders, [meta["path"].rpartition("/")[2] for meta in listing["objects"]]


def _read(place: Place, name: str) -> str | None:
    if place.local is not None and not place.local.is_dir():
        return None
    with store_failures(place):
        try:
            return bytes(place.store.get(name).bytes()).decode()
        except FileNotFoundError:
            return None


def _number(name: str) -> int:
    return int(name.removesuffix(_COMPACT))


def _decoded(uri: str) -> str:
    """Return a path without the scheme of Spark's URIs, such as ``file:///x``."""
    return unquote(re.sub("^file:/+", "/", uri))


def _rows(folder: Place, path: str) -> bool:
    import pyarrow.parquet as pq

    with store_failures(folder):
        content = bytes(folder.store.get(path).bytes())
    return bool(pq.ParquetFile(io.BytesIO(content)).metadata.num_rows)
