"""The folder of a Spark stream in the lake: inboxes, drafts, Spark's checkpoint and the outbox.

Each life of a dataflow's state has its own folder: a reset starts a new one
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
"""Folder in the lake. No layer's name starts with an underscore."""

_ENDED = "_SUCCESS"
"""File that Spark writes last into a folder."""

_TABLES = "tables.json"
"""File with the newest version of each source table before Spark's last read."""

_COMPACT = ".compact"
"""Suffix of an entry in a source's log that also has all entries before it."""

_LARGE = 2**20
"""Size in bytes above which a Parquet file surely has rows, and is not opened to check."""


@dataclass(frozen=True)
class WrittenBatch:
    """A finished batch in the outbox.

    Attributes:
        number: Spark's number of the batch.
        bytes: total size of its Parquet files.
        has_rows: whether it has any rows.
    """

    number: int
    bytes: int
    has_rows: bool


@dataclass(frozen=True)
class StreamFolder:
    """The folder of one life of a stream.

    Attributes:
        place: location of the folder.
    """

    place: Place

    @property
    def checkpoint(self) -> Place:
        """Spark's checkpoint."""
        return self.place.child("checkpoint")

    @property
    def outbox(self) -> Place:
        """Folder with a subfolder for each batch."""
        return self.place.child("outbox")

    def inbox(self, number: int) -> Place:
        """Return the folder from which Spark reads the files of a source, by the source's number."""
        return self.place.child(f"inbox/{number}")

    @property
    def drafts(self) -> Place:
        """Folder with a subfolder for each attempt to copy files into an inbox."""
        return self.place.child("drafts")

    def query(self) -> str | None:
        """Return Spark's id of the query; None if there is no checkpoint.

        Raises:
            CorruptWatermark: Spark's file cannot be parsed.
        """
        text = _read(self.checkpoint, "metadata")
        try:
            return str(json.loads(text)["id"]) if text is not None else None
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptWatermark(
                f'{self.checkpoint}/metadata: expected {{"id": …}}, found {text!r}. Restore the checkpoint from a backup'
            ) from error

    def newest(self) -> int:
        """Return the number of the newest finished batch; -1 if no batch has finished."""
        _, files = _names(self.checkpoint.child("commits"))
        return max((int(name) for name in files if name.isdigit()), default=-1)

    def files_read(self) -> Mapping[str, bool]:
        """Return the files that Spark has read or started to read, by path.

        The value is False if Spark never reads the file again.
        """
        sources, files = self.checkpoint.child("sources"), dict[str, bool]()
        # Spark looks again at the files of the newest batch when it starts.
        offsets = self._offsets(self.newest() - 1)
        for source in _names(sources)[0]:
            log = sources.child(source)
            names = [name for name in _names(log)[1] if name.removesuffix(_COMPACT).isdigit()]
            # Every tenth entry also has all entries before it.
            compact = max((_number(name) for name in names if name.endswith(_COMPACT)), default=-1)
            for name in names:
                if _number(name) > compact or (_number(name) == compact and name.endswith(_COMPACT)):
                    lines = (_read(log, name) or "").splitlines()
                    entries = [json.loads(line) for line in lines if line.startswith("{")]
                    last_ended = offsets.get(source, -1)
                    files |= {
                        _decoded(file["path"]): file["batchId"] > last_ended
                        for file in entries
                        if "path" in file
                    }
        return files

    def _offsets(self, number: int) -> Mapping[str, int]:
        """Return the last entry of each file source's log that a batch has read, by the source's number."""
        lines = (_read(self.checkpoint.child("offsets"), str(number)) or "").splitlines()
        offsets = (json.loads(line) if line.startswith("{") else {} for line in lines[2:])
        return {
            str(source): offset["logOffset"] for source, offset in enumerate(offsets) if "logOffset" in offset
        }

    def watermark_after(self, number: int) -> datetime | None:
        """Return the watermark after a batch, in UTC; None if it had none, or Spark has removed its record."""
        text = _read(self.checkpoint.child("commits"), str(number))
        lines = (text or "").splitlines()
        milliseconds = json.loads(lines[1]).get("nextBatchWatermarkMs", 0) if len(lines) > 1 else 0
        return (
            datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds) if milliseconds else None
        )

    def batches(self, above: int) -> Sequence[WrittenBatch]:
        """Return the finished batches in the outbox above a number, ascending."""
        newest = self.newest()
        folders, _ = _names(self.outbox)
        numbers = sorted(int(name) for name in folders if name.isdigit())
        batches = (self._written(number) for number in numbers if above < number <= newest)
        return [batch for batch in batches if batch is not None]

    def rows_of(self, number: int) -> Place | None:
        """Return the folder of a batch's attempt that finished last; None if no attempt has finished."""
        place = self.outbox.child(batch_folder(number))
        finished: list[tuple[datetime, str]] = []
        for name in _names(place)[0]:
            with store_failures(place):
                objects = place.child(name).store.list_with_delimiter()["objects"]
            finished += [(meta["last_modified"], name) for meta in objects if meta["path"].endswith(_ENDED)]
        return place.child(max(finished)[1]) if finished else None

    def _written(self, number: int) -> WrittenBatch | None:
        """Return a batch of the outbox; None if no attempt at it has finished."""
        folder = self.rows_of(number)
        if folder is None:
            return None
        with store_failures(folder):
            files = [
                meta for page in folder.store.list() for meta in page if meta["path"].endswith(".parquet")
            ]
        filled = (meta["size"] > _LARGE or _has_rows(folder, meta["path"]) for meta in files)
        return WrittenBatch(number, sum(meta["size"] for meta in files), any(filled))

    def note_tables(self, tables: Mapping[str, TableCommit]) -> None:
        """Store the newest commit of each source table, before Spark reads on."""
        commits = {name: [commit.version, commit.id] for name, commit in tables.items()}
        if self.place.local is not None:
            self.place.local.mkdir(parents=True, exist_ok=True)
        with store_failures(self.place):
            self.place.store.put(_TABLES, json.dumps(commits).encode())

    def noted_tables(self) -> Mapping[str, TableCommit]:
        """Return the commits stored last, by table; empty in folders of older versions."""
        commits = json.loads(_read(self.place, _TABLES) or "{}")
        return {name: TableCommit(version, id_) for name, (version, id_) in commits.items()}

    def keep(self, reports: Sequence[BatchProgress]) -> None:
        """Store Spark's progress reports beside their batches, for a run that commits them after a crash."""
        for report in reports:
            folder = self.outbox.child(batch_folder(report.batch_id))
            with store_failures(folder):
                folder.store.put("_progress.json", json.dumps(report.as_json()).encode())

    def report(self, number: int) -> BatchProgress | None:
        """Return Spark's progress report of a batch; None if the run that read it died before storing it."""
        text = _read(self.outbox.child(batch_folder(number)), "_progress.json")
        return BatchProgress.from_json(json.loads(text)) if text is not None else None

    def remove_up_to(self, number: int) -> None:
        """Remove the batches up to a number (inclusive) from the outbox."""
        folders, _ = _names(self.outbox)
        for name in folders:
            if name.isdigit() and int(name) <= number:
                remove_folder(self.outbox.child(name))


def remove_others(folders: Place, name: str) -> None:
    """Remove the folders of a stream's earlier lives; ``name`` is the present folder."""
    for folder in _names(folders)[0]:
        if folder != name:
            remove_folder(folders.child(folder))


def describe_files(root: Place) -> str:
    """Return a text that changes with a folder's files: their count, total size and last modification."""
    count = size = newest = 0
    with store_failures(root):
        for page in root.store.list():
            for meta in page:
                count, size = count + 1, size + meta["size"]
                newest = max(newest, int(meta["last_modified"].timestamp() * 1000))
    return f"{count} files, {size} bytes, {newest}"


def _names(place: Place) -> tuple[list[str], list[str]]:
    """Return the names of folders and of files directly below a place; none if it does not exist."""
    if place.local is not None and not place.local.is_dir():
        return [], []
    with store_failures(place):
        listing = place.store.list_with_delimiter()
    folders = [prefix.strip("/").rpartition("/")[2] for prefix in listing["common_prefixes"]]
    return folders, [meta["path"].rpartition("/")[2] for meta in listing["objects"]]


def _read(place: Place, name: str) -> str | None:
    """Return the text of a file in a folder; None if either does not exist."""
    if place.local is not None and not place.local.is_dir():
        return None
    with store_failures(place):
        try:
            return bytes(place.store.get(name).bytes()).decode()
        except FileNotFoundError:
            return None


def _number(name: str) -> int:
    """Return the number of an entry in a source's log."""
    return int(name.removesuffix(_COMPACT))


def _decoded(uri: str) -> str:
    """Return the plain path of a URI from Spark's log: ``file:///a%20b`` is ``/a b``."""
    return unquote(re.sub("^file:/+", "/", uri))


def _has_rows(folder: Place, path: str) -> bool:
    """Return whether a Parquet file has rows, by its footer."""
    import pyarrow.parquet as pq

    with store_failures(folder):
        content = bytes(folder.store.get(path).bytes())
    return bool(pq.ParquetFile(io.BytesIO(content)).metadata.num_rows)
