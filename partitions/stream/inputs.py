"""The input of an epoch: versions of a table, or files (docs/reference/streams.md).

Epochs are cut between chunks: a version or a file is never split.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from partitions.path.definition import Checkpoint
from partitions.path.hive import partition_values
from partitions.path.order import FileKey
from partitions.path.source import SourceFile
from partitions.path.state import PathState
from partitions.plan import Size
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.stream.event_time import EventTime


@dataclass(frozen=True)
class VersionChunk:
    """The rows of one version of a table, which belong to one epoch.

    Attributes:
        version: the table's version.
        files: the number of files that it adds.
        bytes: the size of these files in bytes.
        id: differs from the id of any other version with this number.
        whole: whether it stands for all rows of the table at that version.
    """

    version: int
    files: int
    bytes: int
    id: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class Versions:
    """The versions of a table that an epoch reads; each is a chunk.

    Attributes:
        table: id of the table; another table of the same name has another one.
        first: the first version, inclusive.
        last: the last version, inclusive.
        whole: whether the first is read with all rows before it.
        files: the number of files to read.
        bytes: the size of these files in bytes.
        id: the id of the last version; differs from any other version with its number.
        since: the version up to which the table was read before; None: nothing of it was, or the first is
            read whole.
        since_id: the id of ``since``.
    """

    table: str
    first: int
    last: int
    whole: bool
    files: int
    bytes: int
    id: str | None = None
    since: int | None = None
    since_id: str | None = None

    @property
    def one_chunk(self) -> bool:
        """Return whether all rows are of one version."""
        return self.first == self.last

    @property
    def lower(self) -> Watermark | None:
        """Return the version up to which the table was read before; None as in ``since``."""
        return None if self.since is None else {"version": self.since}

    @property
    def upper(self) -> Watermark:
        """Return its last version."""
        return {"version": self.last}

    @property
    def position(self) -> Mapping[str, Any]:
        """Return the position in the source after it."""
        return {"table": self.table, "version": self.last, "id": self.id}

    @property
    def size(self) -> Size:
        """Return the bytes to read."""
        return Size(bytes=self.bytes, ranges=1)

    @property
    def keys(self) -> Collection[Any]:
        """Return its last version, which no other epoch reads."""
        return [self.last]

    def was_read(self, position: Mapping[str, Any]) -> bool:
        """Return whether it starts at or below a position."""
        read: int = position.get("version", -1)
        return self.first <= read

    def up_to(self, part: str) -> None:
        """Return None: versions before a bad one cannot be read alone."""

    def describe(self) -> dict[str, Any]:
        """Return its versions for a plan."""
        return {"files": None, "versions": {"first": self.first, "last": self.last}}

    def to_plain(self) -> dict[str, Any]:
        """Return plain data that :func:`input_of` reads."""
        return {"versions": asdict(self)}


@dataclass(frozen=True)
class Files:
    """The files that an epoch reads; each is a chunk.

    Attributes:
        source_files: in the order in which they are judged.
        before: the path watermark below them.
        after: the path watermark after them.
    """

    source_files: tuple[SourceFile, ...]
    before: Watermark
    after: Watermark

    @property
    def one_chunk(self) -> bool:
        """Return whether all rows are of one file."""
        return len(self.source_files) == 1

    @property
    def files(self) -> int:
        """Return the number of files."""
        return len(self.source_files)

    @property
    def bytes(self) -> int:
        """Return the total size of the files."""
        return sum(file.size for file in self.source_files)

    @property
    def lower(self) -> Watermark | None:
        """Return the path watermark below them; None on a first run."""
        return None if all(value is None for value in self.before.values()) else self.before

    @property
    def upper(self) -> Watermark:
        """Return the path watermark after them."""
        return self.after

    @property
    def position(self) -> Mapping[str, Any]:
        """Return the position in the source after them."""
        return {"path": self.after}

    @property
    def size(self) -> Size:
        """Return the number of files and their bytes."""
        return Size(self.files, self.bytes)

    @property
    def keys(self) -> Collection[Any]:
        """Return the paths."""
        return [file.path for file in self.source_files]

    def was_read(self, position: Mapping[str, Any]) -> bool:
        """Return whether a file lies at or below a position."""
        state = PathState.of(position.get("path"))
        keys = (FileKey.of(file.path) for file in self.source_files)
        return any(
            key <= state.last if state.last else key.name <= state.names.get(key.partition, "")
            for key in keys
        )

    def up_to(self, part: str) -> Files | None:
        """Return the files before a bad one, in the order in which they are judged; None if there are none.

        They close no partition.
        """
        count = next((at for at, file in enumerate(self.source_files) if file.path == part), 0)
        return after_files(self.before, self.source_files[:count]) if count else None

    def describe(self) -> dict[str, Any]:
        """Return the paths in order for a plan."""
        return {"files": [file.path for file in self.source_files], "versions": None}

    def to_plain(self) -> dict[str, Any]:
        """Return plain data that :func:`input_of` reads."""
        rows = [list(file.row) for file in self.source_files]
        return {"files": rows, "before": serialise(self.before), "after": serialise(self.after)}


@dataclass(frozen=True)
class NoInput:
    """No input: waiting rows leave although no row comes (docs/reference/streams.md, When input ends).

    Attributes:
        up_to_time: the global watermark after it, unless it is higher already; None: it rises until all rows
            leave.
        ends: whether all rows leave, even rows whose values look ahead to missing rows.
        why: ``flush`` or ``close_after``.
    """

    up_to_time: EventTime | None
    ends: bool
    why: str

    files: ClassVar[int] = 0
    bytes: ClassVar[int] = 0
    one_chunk: ClassVar[bool] = True

    @property
    def lower(self) -> None:
        """Return None: nothing is read."""
        return

    @property
    def upper(self) -> Watermark:
        """Return the global watermark after it."""
        return {"global": self.up_to_time}

    @property
    def size(self) -> Size:
        """Return the size of no input."""
        return Size(bytes=0, ranges=1)

    @property
    def keys(self) -> Collection[Any]:
        """Return no keys."""
        return ()

    def was_read(self, _position: Mapping[str, Any]) -> bool:
        """Return False: nothing is read."""
        return False

    def up_to(self, part: str) -> None:
        """Return None: it has no parts."""

    def describe(self) -> dict[str, Any]:
        """Return neither files nor versions."""
        return {"files": None, "versions": None}

    def to_plain(self) -> dict[str, Any]:
        """Return plain data that :func:`input_of` reads."""
        return {"nothing": serialise({"to": self.up_to_time}), "ends": self.ends, "why": self.why}


Input = Versions | Files | NoInput
"""The input of an epoch."""


def input_of(plain: Mapping[str, Any]) -> Input:
    """Return the input of plain data (``to_plain``)."""
    if "nothing" in plain:
        return NoInput(deserialise(plain["nothing"])["to"], plain["ends"], plain["why"])
    if "versions" in plain:
        return Versions(**plain["versions"])
    files = tuple(SourceFile(*row) for row in plain["files"])
    return Files(files, deserialise(plain["before"]), deserialise(plain["after"]))


def after_files(before: Watermark, files: Sequence[SourceFile]) -> Files:
    """Return the input of files above a path watermark, with the watermark after them in the same form."""
    state = PathState.of(before).after_files(file.path for file in files)
    by_partition = "paths" in before
    after = state.partition_watermark() if by_partition else state.global_watermark()
    return Files(tuple(files), before, after)


def cut_versions(
    limits: Checkpoint, table: str, chunks: Sequence[VersionChunk], since: tuple[int, str | None] | None
) -> list[Input]:
    """Cut versions into epochs of limited size; each epoch has a version with files.

    Versions without files join the epoch before, or the first one.

    Args:
        limits: the limits of an epoch.
        table: the table's id.
        chunks: oldest first, including those without files.
        since: the version that was read last, and its id; None: none was.
    """
    groups: list[list[VersionChunk]] = []
    for chunk in chunks:
        group = groups[-1] if groups else None
        if group is None or (_has_files(group) and chunk.files and not _fits(group, chunk, limits)):
            groups.append([chunk])
        else:
            group.append(chunk)
    epochs: list[Input] = []
    for group in groups:
        first, last = group[0], group[-1]
        files, size = sum(chunk.files for chunk in group), sum(chunk.bytes for chunk in group)
        if files:
            below = (None, None) if since is None or first.whole else since
            epochs.append(
                Versions(table, first.version, last.version, first.whole, files, size, last.id, *below)
            )
        since = last.version, last.id
    return epochs


def input_before_start(table: str, newest: tuple[int, str | None]) -> Versions:
    """Return the input of an epoch that reads nothing, but records the version at which a stream starts.

    Args:
        table: the table's id.
        newest: version of the table at the start, and its id.
    """
    version, id_ = newest
    return Versions(table, version, version, False, 0, 0, id_, version, id_)


def cut_files(
    limits: Checkpoint, before: Watermark, files: Sequence[SourceFile], split: Sequence[str]
) -> list[Input]:
    """Cut files into epochs of limited size.

    If folders name the split, and each folder has its own watermark, splits take turns file by file. So
    none runs ahead only because its folder comes first.

    Args:
        limits: the limits of an epoch.
        before: the path watermark below them.
        files: the files to cut, in pair order.
        split: the columns that tell a row's split.
    """
    in_turn = "paths" in before
    ordered = _take_turns(files, split) if in_turn else list(files)
    epochs: list[Input] = []
    start = 0
    while start < len(ordered):
        size, end = 0, start
        for file in ordered[start : start + limits.interval_files]:
            size += file.size
            if end > start and size > limits.interval_bytes:
                break
            end += 1
        epochs.append(epoch := after_files(before, ordered[start:end]))
        before, start = epoch.after, end
    return epochs


def _take_turns(files: Sequence[SourceFile], split: Sequence[str]) -> list[SourceFile]:
    waiting: dict[tuple[str, ...], deque[SourceFile]] = {}
    for file in files:
        values = partition_values(FileKey.of(file.path).partition)
        named = tuple(values[name] for name in split if name in values)
        waiting.setdefault(named if len(named) == len(split) else (), deque()).append(file)
    return list(_round_robin(list(waiting.values())))


Item = TypeVar("Item")


def _round_robin(queues: Sequence[deque[Item]]) -> Iterator[Item]:
    while queues:
        for queue in queues:
            yield queue.popleft()
        queues = [queue for queue in queues if queue]


def _has_files(group: Sequence[VersionChunk]) -> bool:
    return any(chunk.files for chunk in group)


def _fits(group: Sequence[VersionChunk], chunk: VersionChunk, limits: Checkpoint) -> bool:
    files = sum(member.files for member in group) + chunk.files
    size = sum(member.bytes for member in group) + chunk.bytes
    return files <= limits.interval_files and size <= limits.interval_bytes
