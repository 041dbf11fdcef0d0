"""Inboxes of a stream on Spark's engine: checked, exact Parquet copies of the sources' files.

Spark reads inboxes only, never a source's files. A copy's name is made from its file's path and
modification time. A run that copies a file again, after a kill or beside another run, replaces
the first copy, and Spark reads each name once. So Spark's checkpoint and the inbox suffice to
tell which files were copied.

See docs/explanation/adr/0037-spark-s-streams-read-files-from-an-inbox.md.
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
"""Column with the key of a row's file; a draft has a subfolder for each value."""

_MARKER = "_inbox"
"""File that makes an inbox without files exist, even in an object store: Spark refuses a missing folder.

Spark skips names that start with an underscore.
"""

_READ_AT_ONCE = 1000
"""The most files that are checked and copied together."""

_TASKS = 200
"""The most Spark tasks that write one draft."""

_ABANDONED = timedelta(days=1)
"""A draft whose newest file is older than this belongs to a dead run."""


@dataclass(frozen=True)
class Inbox:
    """A source of files, and the folder from which Spark reads their copies.

    Attributes:
        name: name of the source; None for the only source of a stream.
        source: the source's files.
        schema: DDL of the schema of all files.
        folder: folder of the stream's present life.
        number: number of the source in the stream, from 0.
    """

    name: str | None
    source: FileSource
    schema: str
    folder: StreamFolder
    number: int

    @property
    def place(self) -> Place:
        """Folder that Spark reads."""
        return self.folder.inbox(self.number)

    def open(self) -> None:
        """Create the folder, so that Spark can read it even without files."""
        if self.place.local is not None:
            self.place.local.mkdir(parents=True, exist_ok=True)
        with store_failures(self.place):
            self.place.store.put(_MARKER, b"")

    def waiting(self, read: Mapping[str, bool]) -> Sequence[SourceFile]:
        """Return the files without a copy, in the order in which Spark reads files: by modification time.

        Also removes the copies that Spark never reads again.

        Args:
            read: the files that Spark has read or started to read, as :meth:`StreamFolder.files_read`
                returns them.

        Raises:
            SourceError: the listing fails.
        """
        copies = self._copies()
        may_be_read_again = {
            name: again for path, again in read.items() if (name := _below(self.place, path)) is not None
        }
        if obsolete := sorted(name for name in copies if not may_be_read_again.get(name, True)):
            with store_failures(self.place):
                self.place.store.delete(obsolete)
        keys = {_key_in(name) for name in (*copies, *may_be_read_again)}
        listed_files = self.source.list_above(FromBeginning()).listed.files
        new_files = (file for file in listed_files if _key(file.path) not in keys)
        return sorted(new_files, key=lambda file: (file.modified, file.path))

    def columns(self, spark: SparkSession) -> StructType:
        """Return the columns of the files."""
        return spark.createDataFrame([], self.schema).schema

    def draft(self, spark: SparkSession, files: Sequence[SourceFile]) -> Iterator[InboxBatch]:
        """Check files, and yield exact copies of them in a folder that Spark does not read.

        Raises:
            BadFile: the first file that cannot be loaded exactly.
        """
        for start in range(0, len(files), _READ_AT_ONCE):
            yield self._draft(spark, files[start : start + _READ_AT_ONCE])

    def _draft(self, spark: SparkSession, files: Sequence[SourceFile]) -> InboxBatch:
        """Check files and copy them into a new draft."""
        pinned = self.source.pin(spark, files)
        # A stream over files without a schema is refused when the project is loaded.
        assert pinned is not None
        place = self.folder.drafts.child(uuid4().hex)
        try:
            rows = self.source.read(spark, files, pinned, origin=True)
            _write(rows, self.columns(spark).names, len(files), place)
            self.source.check_unchanged(files)
        except BadFile as bad:
            raise self._with_source_name(bad) from bad
        except Exception as error:
            by_path = {file.path: file for file in files}
            bad_file = (
                None
                if describe_engine_loss(error)
                else self.source.find_bad_file(spark, by_path, pinned, error)
            )
            if bad_file is None:
                raise
            raise self._with_source_name(bad_file) from error
        return InboxBatch(self, place, tuple(files))

    def _with_source_name(self, bad: BadFile) -> BadFile:
        """Return the error of a bad file, with the source's name if the stream has several sources."""
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
        """Return the names of the copies in the inbox."""
        if self.place.local is not None and not self.place.local.is_dir():
            return set()
        with store_failures(self.place):
            paths = [meta["path"] for page in self.place.store.list() for meta in page]
        return {path for path in paths if path != _MARKER}


@dataclass(frozen=True)
class InboxBatch:
    """Copies of files that are not in the inbox yet.

    Attributes:
        inbox: the inbox that they belong to.
        place: folder of the copies, with a subfolder for each file that has rows.
        files: the files, in the order in which Spark must read them.
    """

    inbox: Inbox
    place: Place
    files: tuple[SourceFile, ...]

    def publish(self) -> None:
        """Move the copies into the inbox, one after the other; each appears there whole."""
        root = self.inbox.folder.place
        draft = self.place.url[len(root.url) + 1 :]
        inbox = self.inbox.place.url[len(root.url) + 1 :]
        with store_failures(root):
            pages = self.place.store.list() if self._exists else ()
            paths = [meta["path"] for page in pages for meta in page if meta["path"].endswith(".parquet")]
        by_key = {path.partition("/")[0].removeprefix(f"{_KEY}="): path for path in paths}
        assert len(by_key) == len(paths), paths  # one task writes all rows of a file
        for file in self.files:
            path = by_key.get(_key(file.path))
            if path is None:
                path = "empty.parquet"
                with store_failures(root):
                    root.store.put(f"{draft}/{path}", _without_rows())
            if self.place.local is not None:
                # Spark reads files by modification time. In an object store that is when a copy is moved here.
                os.utime(self.place.local / path, ns=(file.modified * 10**6,) * 2)
            with store_failures(root):
                root.store.rename(f"{draft}/{path}", f"{inbox}/{_name(file)}")

    @property
    def _exists(self) -> bool:
        """Whether the folder exists; always True in an object store, which has no folders."""
        return self.place.local is None or self.place.local.is_dir()


def take_in(
    spark: SparkSession, inboxes: Sequence[Inbox], files_per_batch: int | None
) -> tuple[int, BadFile | None]:
    """Copy waiting files into the inboxes, by micro-batch, up to the first one with a bad file.

    Args:
        spark: the run's session.
        inboxes: inboxes of the stream's sources of files.
        files_per_batch: most files of each source in a micro-batch; None: all files.

    Returns:
        how many files were copied from the source with the most, and the bad file that stopped the
            copying; None if there is none. No file of its micro-batch was copied, from any source.

    Raises:
        SourceError: a listing fails.
    """
    if not inboxes:
        return 0, None
    folder = inboxes[0].folder
    _remove_abandoned(folder)
    read = folder.files_read()
    waiting = [inbox.waiting(read) for inbox in inboxes]
    longest = max((len(files) for files in waiting), default=0)
    size = files_per_batch or max(longest, 1)
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
    """Remove drafts of dead runs."""
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
    """Write the rows of each file into one Parquet file in a subfolder for that file."""
    from pyspark.sql import functions as F

    key = F.md5(F.encode(F.col(SOURCE_FILE), "utf-8")).alias(_KEY)
    selected = rows.select(*[F.col(quoted(name)) for name in columns], key)
    tasks = min(files, _TASKS)
    # One task writes all rows of a file, into one Parquet file: a copy exists whole or not at all.
    by_file = selected.coalesce(1) if tasks == 1 else selected.repartition(tasks, F.col(_KEY))
    writer = by_file.write.option("maxRecordsPerFile", 0).partitionBy(_KEY)
    writer.parquet(place.spark_url)


def _without_rows() -> bytes:
    """Return the bytes of a Parquet file without rows, the copy of a file without rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(pa.table({_KEY: pa.array([], pa.string())}), buffer)
    return buffer.getvalue()


def _name(file: SourceFile) -> str:
    """Return the name of a file's copy; names sort by the files' modification times.

    So copies of files that were modified within one second stay in order.
    """
    return f"{file.modified:015d}-{_key(file.path)}.parquet"


def _key_in(name: str) -> str:
    """Return the key of the file that a copy's name contains."""
    return name.rpartition("-")[2].removesuffix(".parquet")


def _key(path: str) -> str:
    """Return the key of a file: a hash of its path."""
    return md5(path.encode(), usedforsecurity=False).hexdigest()


def _below(place: Place, path: str) -> str | None:
    """Return a path relative to a place; None if it lies elsewhere."""
    root = f"{place.spark_url.rstrip('/')}/"
    return path[len(root) :] if path.startswith(root) else None
