"""Staged files: rows that only this process can fetch, written below the lake for any Spark.

A run has one folder for the slice that it loads, ``<lake>/_staging/<layer>/<table>/<dataflow>/<id>``, and
removes it when the slice is over. The next run that stages removes the folders of runs that died
(docs/explanation/architecture.md, Staged files).
"""

from __future__ import annotations

import io
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import IO, TYPE_CHECKING, Self, TypeVar
from uuid import uuid4

from pydantic import ValidationError

from partitions.errors import StrandlineError
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.watermarks import holder as holders
from resources.watermarks.entry import Holder

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FOLDER = "_staging"
"""The folder in the lake. No layer's name starts with an underscore."""

_HOLDER = "holder.json"
_ABANDONED = timedelta(days=1)
"""A folder of another machine, whose processes are invisible here, counts as left over if nothing was written for so long."""
_LINES_BYTES = 8 * 2**20
"""The most bytes of a file of lines before compression: Spark reads a compressed file in one task."""
_FIRST_LINES_BYTES = 2 * 2**20
"""The bytes of the first files, so that even few lines keep several tasks busy; later files hold a quarter of all before them."""
_PACKED_AT_ONCE = 256 * 2**10
_GZIP = 16 + zlib.MAX_WBITS
"""The ``wbits`` with which zlib writes gzip."""
_ROW_GROUP_BYTES = 32 * 2**20
_UPLOAD_BYTES = 8 * 2**20


class Staging:
    """The staged files of one run of a dataflow. Nothing is created before the first file is opened.

    Attributes:
        place: below it each slice has a folder.
    """

    def __init__(self, place: Place) -> None:
        """Use the place of a dataflow's staged files, below which each run creates its own folders."""
        self.place = place
        self._folder: Place | None = None
        self._id = ""

    @classmethod
    def below(cls, lake: Place, table: str, dataflow: str) -> Self:
        """Return the staging of a dataflow.

        Args:
            lake: where its table lies.
            table: its target, ``<layer>/<name>``.
            dataflow: the dataflow's name.
        """
        return cls(lake.child(f"{FOLDER}/{table}/{dataflow}"))

    @property
    def folder(self) -> Place:
        """Return the folder of the slice, created on first use; paths of staged files are relative to it.

        Raises:
            SourceError: if the lake cannot be written.
        """
        if self._folder is None:
            self._folder = self._create_folder()
        return self._folder

    @contextmanager
    def lines(self, name: str) -> Iterator[StagedLines]:
        """Open gzip files for JSON objects, one per line.

        Args:
            name: relative to the folder, without an ending: ``a`` becomes ``a-0.ndjson.gz`` and so on.
            ``n=1/a`` gives a column ``n``.

        Raises:
            SourceError: if the lake cannot be written.
        """
        with _closing(StagedLines(self.folder, name)) as lines:
            yield lines

    @contextmanager
    def batches(self, name: str, schema: pa.Schema) -> Iterator[StagedBatches]:
        """Open a Parquet file for Arrow batches of one schema.

        Args:
            name: relative to the folder, without an ending.
            schema: the schema of all batches.

        Raises:
            SourceError: if the lake cannot be written.
        """
        with _closing(StagedBatches(self.folder, name, schema)) as batches:
            yield batches

    @contextmanager
    def file(self, path: str) -> Iterator[IO[bytes]]:
        """Open a file for bytes, which exists as a whole once it is closed.

        Args:
            path: relative to the folder.

        Raises:
            SourceError: if the lake cannot be written.
        """
        folder = self.folder
        if folder.local is None:
            with io.BufferedWriter(_Upload(folder, path), _UPLOAD_BYTES) as file:
                yield file
            return
        local = folder.local / path
        with store_failures(folder):
            local.parent.mkdir(parents=True, exist_ok=True)
            opened = local.open("wb")
        with opened as file:
            yield file

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Remove all staged files after the block, however it ends; a later run removes what is left then."""
        try:
            yield
        finally:
            self._discard()

    def _discard(self) -> None:
        if self._folder is None:
            return
        with suppress(StrandlineError):
            remove_folder(self._folder)
        holders.mark_inactive(self._id)
        self._folder = None

    def _create_folder(self) -> Place:
        """Create a folder with its holder's name in it, and remove the folders of dead runs."""
        self._id = uuid4().hex
        folder = self.place.child(self._id)
        holders.mark_active(self._id)
        try:
            _write(folder, _HOLDER, holders.current_holder(None).model_dump_json().encode())
            with suppress(StrandlineError):  # a courtesy to the lake: the next run tries again
                self._remove_leftovers(folder)
        except BaseException:
            holders.mark_inactive(self._id)
            raise
        return folder

    def _remove_leftovers(self, own: Place) -> None:
        with store_failures(self.place):
            siblings = self.place.store.list_with_delimiter()["common_prefixes"]
        for sibling in siblings:
            folder = self.place.child(sibling.strip("/"))
            if folder.url != own.url and _is_left_over(folder, own):
                remove_folder(folder)


class _Writer(ABC):
    """Files of one name, each of which exists as a whole once it is closed."""

    def __init__(self, folder: Place, name: str) -> None:
        self._place, self._name = folder, name
        self.files: tuple[SourceFile, ...] = ()
        self._object: _Upload | None = None

    @abstractmethod
    def close(self) -> None:
        """Finish the last file."""

    def _open(self, ending: str) -> _Upload:
        self._object = _Upload(self._place, f"{self._name}-{len(self.files)}{ending}")
        return self._object

    def _finish_file(self) -> None:
        if self._object is not None:
            self._object.close()
            self.files += (SourceFile(self._object.path, self._object.size, "", 0),)
            self._object = None


class StagedLines(_Writer):
    """Writes JSON objects, one per line, into files of bounded size.

    Attributes:
        files: the finished files; all of them once it is closed.
        count: the number of lines.
    """

    def __init__(self, folder: Place, name: str) -> None:
        """Use a folder; the first line opens the first file."""
        super().__init__(folder, name)
        self.count = 0
        self._packed: zlib._Compress | None = None
        self._waiting: list[bytes] = []
        self._waiting_bytes = self._file_bytes = self._bytes = 0

    def write(self, line: bytes) -> None:
        """Write an object, which must not contain a line end.

        Raises:
            SourceError: if the lake cannot be written.
        """
        self._waiting.append(line)
        self.count += 1
        self._waiting_bytes += len(line)
        if self._waiting_bytes >= min(_PACKED_AT_ONCE, _LINES_BYTES):
            self._write_waiting()
            if self._file_bytes >= min(max(self._bytes // 4, _FIRST_LINES_BYTES), _LINES_BYTES):
                self.close()

    def close(self) -> None:
        """Finish the last file."""
        self._write_waiting()
        if self._packed is not None and self._object is not None:
            self._object.write(self._packed.flush())
            self._packed = None
            self._bytes += self._file_bytes
            self._finish_file()

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        if self._packed is None or self._object is None:
            self._packed, self._file_bytes = zlib.compressobj(1, zlib.DEFLATED, _GZIP), 0
            self._open(".ndjson.gz")
        lines = b"\n".join(self._waiting) + b"\n"
        self._file_bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0
        if self._object is not None:
            self._object.write(self._packed.compress(lines))


class StagedBatches(_Writer):
    """Writes Arrow batches into one Parquet file, in row groups of bounded size.

    Attributes:
        files: the file once it is closed; it exists even without rows.
        count: the number of rows.
    """

    def __init__(self, folder: Place, name: str, schema: pa.Schema) -> None:
        """Open the file."""
        import pyarrow.parquet as pq

        super().__init__(folder, name)
        self.count = 0
        self._schema = schema
        self._waiting: list[pa.Table] = []
        self._parquet: pq.ParquetWriter | None = pq.ParquetWriter(self._open(".parquet"), schema)

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Write rows; small batches are collected first.

        Raises:
            SourceError: if the lake cannot be written.
        """
        import pyarrow as pa

        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch], self._schema)
        self.count += table.num_rows
        self._waiting.append(table)
        if sum(waiting.nbytes for waiting in self._waiting) >= _ROW_GROUP_BYTES:
            self._write_waiting()

    def close(self) -> None:
        """Finish the file."""
        if self._parquet is not None:
            self._write_waiting()
            self._parquet.close()
            self._parquet = None
            self._finish_file()

    def _write_waiting(self) -> None:
        import pyarrow as pa

        if self._waiting and self._parquet is not None:
            self._parquet.write_table(pa.concat_tables(self._waiting))
            self._waiting = []


class _Upload(io.RawIOBase):
    """An object that is uploaded in parts and exists once it is closed; at most some parts are in memory."""

    def __init__(self, place: Place, path: str) -> None:
        import obstore

        self.path, self.size, self._place = path, 0, place
        with store_failures(place):
            self._writer = obstore.open_writer(
                place.store, path, buffer_size=_UPLOAD_BYTES, max_concurrency=2
            )

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size

    def write(self, data: object) -> int:
        content = bytes(data)  # type: ignore[call-overload]  # whatever has a buffer
        with store_failures(self._place):
            self._writer.write(content)
        self.size += len(content)
        return len(content)

    def close(self) -> None:
        if not self.closed:
            super().close()
            with store_failures(self._place):
                self._writer.close()


WriterT = TypeVar("WriterT", bound=_Writer)


@contextmanager
def _closing(writer: WriterT) -> Iterator[WriterT]:
    """Close a writer after the block; an error of the block wins over an error of the close."""
    try:
        yield writer
    except BaseException:
        with suppress(Exception):
            writer.close()
        raise
    writer.close()


def _write(folder: Place, name: str, data: bytes) -> None:
    if folder.local is not None:
        with store_failures(folder):
            folder.local.mkdir(parents=True, exist_ok=True)
    with store_failures(folder):
        folder.store.put(name, data)


def _is_left_over(folder: Place, own: Place) -> bool:
    """Return whether a folder's run is gone: its process ended, or the folder got no file for a day."""
    holder = _holder_of(folder)
    alive = holders.is_alive(holder, folder.url.rpartition("/")[2], lambda _: None) if holder else None
    if alive is not None:
        return not alive
    newest, now = _newest(folder), _newest(own)
    return newest is not None and now is not None and now - newest > _ABANDONED


def _holder_of(folder: Place) -> Holder | None:
    with store_failures(folder):
        try:
            return Holder.model_validate_json(bytes(folder.store.get(_HOLDER).bytes()))
        except (FileNotFoundError, ValidationError):
            return None


def _newest(folder: Place) -> datetime | None:
    """Return when the newest file was written into a folder, by the store's clock; None if it is empty."""
    with store_failures(folder):
        return max((meta["last_modified"] for page in folder.store.list() for meta in page), default=None)
