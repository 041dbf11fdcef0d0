"""The files of a stream on Spark's engine: checked, and copied exactly as Parquet for Spark.

Spark reads an inbox, and never a source's files. A file is in an inbox under a name of its own, which its
path makes: whoever puts it there a second time, after a kill or beside another run, puts it over the
first, and Spark reads a name once. So nothing but Spark's checkpoint and the inbox itself needs to tell
which files were taken (docs/explanation/adr/0037-spark-s-streams-read-files-from-an-inbox.md).
"""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import md5
from typing import TYPE_CHECKING
from uuid import uuid4

from partitions.errors import BadFile
from partitions.path.listing_positions import FromBeginning
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.kinds.spark_stream.folder import StreamFolder
from resources.listing.failures import store_failures
from resources.listing.removal import remove_folder
from resources.sources.files.paths import SOURCE_FILE
from resources.sources.files.source import FileSource
from resources.spark.process import describe_engine_loss
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_KEY = "__file"
"""The column, and the folders of a draft, that tell a row's file."""

_MARKER = "_inbox"
"""Keeps an inbox without files a folder, also in an object store: Spark refuses to read one that is not there. It skips names that begin so."""

_READ_AT_ONCE = 1000
"""Files that are looked through and copied together, at most."""

_TASKS = 200
_ABANDONED = timedelta(days=1)
"""A draft into which nothing came for so long is that of a run that died."""


@dataclass(frozen=True)
class Inbox:
    """One source of files of a stream, and where Spark reads it.

    Attributes:
        name: of the source in a list; None of the only one.
        source: the files.
        schema: of all of them, DDL.
        folder: of one life of the stream.
        number: of the source among those of the stream.
    """

    name: str | None
    source: FileSource
    schema: str
    folder: StreamFolder
    number: int

    @property
    def place(self) -> Place:
        """Where Spark reads it."""
        return self.folder.inbox(self.number)

    def open(self) -> None:
        """Have a folder that Spark can read, also if no file is there."""
        if self.place.local is not None:
            self.place.local.mkdir(parents=True, exist_ok=True)
        with store_failures(self.place):
            self.place.store.put(_MARKER, b"")

    def waiting(self, read: Mapping[str, bool]) -> Sequence[SourceFile]:
        """Return the files that were not taken yet, by modification time, as Spark reads them.

        Removes the copies that Spark does not read again.

        Args:
            read: what Spark has read, or begun to, as :meth:`StreamFolder.files_read` has it.

        Raises:
            SourceError: as for a listing.
        """
        copies = self._copies()
        unfinished = {
            name: batch for path, batch in read.items() if (name := _below(self.place, path)) is not None
        }
        if ended := sorted(name for name in copies if not unfinished.get(name, True)):
            with store_failures(self.place):
                self.place.store.delete(ended)
        keys = {_key_in(name) for name in (*copies, *unfinished)}
        listed = self.source.list_above(FromBeginning()).listed.files
        new = (file for file in listed if _key(file.path) not in keys)
        return sorted(new, key=lambda file: (file.modified, file.path))

    def columns(self, spark: SparkSession) -> StructType:
        """Return the columns of the files."""
        return spark.createDataFrame([], self.schema).schema

    def draft(self, spark: SparkSession, files: Sequence[SourceFile]) -> Iterator[InboxBatch]:
        """Look files through, and write exact copies where Spark does not read them yet.

        Raises:
            BadFile: the first that cannot be loaded exactly.
        """
        for start in range(0, len(files), _READ_AT_ONCE):
            yield self._draft(spark, files[start : start + _READ_AT_ONCE])

    def _draft(self, spark: SparkSession, files: Sequence[SourceFile]) -> InboxBatch:
        pinned = self.source.pin(spark, files)
        assert (
            pinned is not None
        )  # a stream over files without a schema is refused when the project is loaded
        place = self.folder.drafts.child(uuid4().hex)
        try:
            rows = self.source.read(spark, files, pinned, origin=True)
            _write(rows, self.columns(spark).names, len(files), place)
            self.source.check_unchanged(files)
        except BadFile as bad:
            raise self._named(bad) from bad
        except Exception as error:
            by_path = {file.path: file for file in files}
            bad_file = (
                None
                if describe_engine_loss(error)
                else self.source.find_bad_file(spark, by_path, pinned, error)
            )
            if bad_file is None:
                raise
            raise self._named(bad_file) from error
        return InboxBatch(self, place, tuple(files))

    def _named(self, bad: BadFile) -> BadFile:
        """Return the error, with the name of the source if there are several."""
        if self.name is None:
            return bad
        return BadFile(
            f"source {self.name}: {bad.message}",
            path=bad.path,
            why=bad.why,
            code=bad.code,
            choices=bad.choices,
        )

    def _copies(self) -> set[str]:
        if self.place.local is not None and not self.place.local.is_dir():
            return set()
        with store_failures(self.place):
            listed = [meta["path"] for page in self.place.store.list() for meta in page]
        return {path for path in listed if path != _MARKER}


@dataclass(frozen=True)
class InboxBatch:
    """Copies of files that Spark does not read yet.

    Attributes:
        inbox: that they go into.
        place: where they lie, a folder for each file that has rows.
        files: in the order in which Spark is to read them.
    """

    inbox: Inbox
    place: Place
    files: tuple[SourceFile, ...]

    def publish(self) -> None:
        """Put each copy into the inbox, whole, one after the other."""
        home = self.inbox.folder.place
        drafts = self.place.url[len(home.url) + 1 :]
        inbox = self.inbox.place.url[len(home.url) + 1 :]
        with store_failures(home):
            written = self.place.store.list() if self._is_there else ()
            paths = [meta["path"] for page in written for meta in page if meta["path"].endswith(".parquet")]
        by_key = {path.partition("/")[0].removeprefix(f"{_KEY}="): path for path in paths}
        assert len(by_key) == len(paths), paths  # one task writes all rows of a file
        for file in self.files:
            path = by_key.get(_key(file.path))
            if path is None:
                path = "empty.parquet"
                with store_failures(home):
                    home.store.put(f"{drafts}/{path}", _without_rows())
            if self.place.local is not None:
                # Spark takes files by their modification time; in an object store that is the order in which they come.
                os.utime(self.place.local / path, ns=(file.modified * 10**6,) * 2)
            with store_failures(home):
                home.store.rename(f"{drafts}/{path}", f"{inbox}/{_name(file)}")

    @property
    def _is_there(self) -> bool:
        return self.place.local is None or self.place.local.is_dir()


def take_in(spark: SparkSession, inboxes: Sequence[Inbox], most: int | None) -> tuple[int, BadFile | None]:
    """Copy all files that wait into the inboxes, micro-batch by micro-batch, up to one with a bad file.

    Args:
        spark: the run's session.
        inboxes: of the stream's sources of files.
        most: files of each source in a micro-batch; None: all.

    Returns:
        how many files of the longest source were taken, and the bad file before which it stopped, if any: of its micro-batch no file of any source was taken.

    Raises:
        SourceError: as for a listing.
    """
    if not inboxes:
        return 0, None
    folder = inboxes[0].folder
    _remove_abandoned(folder)
    read = folder.files_read()
    waiting = [inbox.waiting(read) for inbox in inboxes]
    longest = max((len(files) for files in waiting), default=0)
    size = most or max(longest, 1)
    for start in range(0, longest, size):
        drafts: list[InboxBatch] = []
        try:
            for inbox, files in zip(inboxes, waiting, strict=True):
                drafts.extend(inbox.draft(spark, files[start : start + size]))
        except BadFile as bad:
            return start, bad
        else:
            for draft in drafts:
                draft.publish()
        finally:
            for draft in drafts:
                remove_folder(draft.place)
    return longest, None


def _remove_abandoned(folder: StreamFolder) -> None:
    """Remove the drafts of runs that died."""
    drafts, now = folder.drafts, datetime.now(UTC)
    if drafts.local is not None and not drafts.local.is_dir():
        return
    newest: dict[str, datetime] = {}
    with store_failures(drafts):
        for page in drafts.store.list():
            for meta in page:
                name = meta["path"].partition("/")[0]
                newest[name] = max(newest.get(name, meta["last_modified"]), meta["last_modified"])
    for name, at in newest.items():
        if now - at > _ABANDONED:
            remove_folder(drafts.child(name))


def _write(rows: DataFrame, columns: Collection[str], files: int, place: Place) -> None:
    """Write the rows of each file into one file of a folder of its own."""
    from pyspark.sql import functions as F

    key = F.md5(F.encode(F.col(SOURCE_FILE), "utf-8")).alias(_KEY)
    selected = rows.select(*[F.col(quoted(name)) for name in columns], key)
    tasks = min(files, _TASKS)
    # One task writes all rows of a file: a copy is there whole, or not at all.
    apart = selected.coalesce(1) if tasks == 1 else selected.repartition(tasks, F.col(_KEY))
    writer = apart.write.option("maxRecordsPerFile", 0).partitionBy(_KEY)
    writer.parquet(place.spark_url)


def _without_rows() -> bytes:
    """Return an empty Parquet file for a file without rows; its name in the inbox records the file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({_KEY: pa.array([], pa.string())}), buffer)
    return buffer.getvalue()


def _name(file: SourceFile) -> str:
    """Return the name of a file's copy, by which copies of one second stay in order."""
    return f"{file.modified:015d}-{_key(file.path)}.parquet"


def _key_in(name: str) -> str:
    return name.rpartition("-")[2].removesuffix(".parquet")


def _key(path: str) -> str:
    return md5(path.encode(), usedforsecurity=False).hexdigest()


def _below(place: Place, path: str) -> str | None:
    """Return the path below a place; None if it does not exist."""
    root = f"{place.spark_url.rstrip('/')}/"
    return path[len(root) :] if path.startswith(root) else None
