"""What an epoch reads: versions of a table, or files; cut into epochs in chunks that no epoch cuts (docs/reference/streams.md)."""

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
class Chunk:
    """The rows of one version of a table, which no epoch cuts.

    Attributes:
        version: of the table.
        files: that it adds.
        bytes: of these.
        id: what no other version of its number has.
        whole: whether it stands for all rows that were there by then.
    """

    version: int
    files: int
    bytes: int
    id: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class Versions:
    """The versions of a table that an epoch reads: each is a chunk.

    Attributes:
        table: id of the table, which another one of the same name does not have.
        first: version, inclusive.
        last: version, inclusive.
        whole: whether the first is read with all that was there before.
        files: that are read.
        bytes: of these.
        id: what no other version of the last one's number has.
        since: the version before the first; None: there is none.
        since_id: what no other version of its number has.
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
        """Whether all rows are of one version."""
        return self.first == self.last

    @property
    def lower(self) -> Watermark | None:
        """The version before its first; None if there is none."""
        return None if self.since is None else {"version": self.since}

    @property
    def upper(self) -> Watermark:
        """Its last version."""
        return {"version": self.last}

    @property
    def position(self) -> Mapping[str, Any]:
        """Up to where the source is read after it."""
        return {"table": self.table, "version": self.last, "id": self.id}

    @property
    def size(self) -> Size:
        """The bytes that it reads."""
        return Size(bytes=self.bytes, ranges=1)

    @property
    def keys(self) -> Collection[Any]:
        """Its last version, which no other epoch reads."""
        return [self.last]

    def was_read(self, position: Mapping[str, Any]) -> bool:
        """Return whether it begins below a position."""
        read: int = position.get("version", -1)
        return self.first <= read

    def up_to(self, part: str) -> None:
        """None: no version comes before a bad one that could be read alone."""

    def describe(self) -> dict[str, Any]:
        """Its versions."""
        return {"files": None, "versions": {"first": self.first, "last": self.last}}

    def to_plain(self) -> dict[str, Any]:
        """As plain data."""
        return {"versions": asdict(self)}


@dataclass(frozen=True)
class Files:
    """The files that an epoch reads: each is a chunk.

    Attributes:
        given: in the order in which they are judged.
        before: the path watermark below them.
        after: the path watermark after them.
    """

    given: tuple[SourceFile, ...]
    before: Watermark
    after: Watermark

    @property
    def one_chunk(self) -> bool:
        """Whether all rows are of one file."""
        return len(self.given) == 1

    @property
    def files(self) -> int:
        """How many they are."""
        return len(self.given)

    @property
    def bytes(self) -> int:
        """Of all of them."""
        return sum(file.size for file in self.given)

    @property
    def lower(self) -> Watermark | None:
        """The path watermark below them; None on a first run."""
        return None if all(value is None for value in self.before.values()) else self.before

    @property
    def upper(self) -> Watermark:
        """The path watermark after them."""
        return self.after

    @property
    def position(self) -> Mapping[str, Any]:
        """Up to where the source is read after it."""
        return {"path": self.after}

    @property
    def size(self) -> Size:
        """Files and bytes."""
        return Size(self.files, self.bytes)

    @property
    def keys(self) -> Collection[Any]:
        """The paths."""
        return [file.path for file in self.given]

    def was_read(self, position: Mapping[str, Any]) -> bool:
        """Return whether it has a file at or below a position."""
        state = PathState.of(position.get("path"))
        keys = (FileKey.of(file.path) for file in self.given)
        return any(
            key <= state.last if state.last else key.name <= state.names.get(key.partition, "")
            for key in keys
        )

    def up_to(self, part: str) -> Files | None:
        """The files before a bad one, in the order in which they are judged; None if there are none. They close no partition."""
        count = next((at for at, file in enumerate(self.given) if file.path == part), 0)
        return after_files(self.before, self.given[:count]) if count else None

    def describe(self) -> dict[str, Any]:
        """The files in order."""
        return {"files": [file.path for file in self.given], "versions": None}

    def to_plain(self) -> dict[str, Any]:
        """As plain data."""
        given = [list(file.row) for file in self.given]
        return {"files": given, "before": serialise(self.before), "after": serialise(self.after)}


@dataclass(frozen=True)
class Nothing:
    """No input: what waits leaves although no row comes (docs/reference/streams.md, When input ends).

    Attributes:
        up_to_time: the global watermark after it, unless that is higher already; of one that ends all it is what lets all out.
        ends: whether all leaves, also rows whose values look ahead to rows that are not there.
        why: in words.
    """

    up_to_time: EventTime | None
    ends: bool
    why: str

    files: ClassVar[int] = 0
    bytes: ClassVar[int] = 0
    one_chunk: ClassVar[bool] = True

    @property
    def lower(self) -> None:
        """None: nothing is read."""
        return

    @property
    def upper(self) -> Watermark:
        """The global watermark after it."""
        return {"global": self.up_to_time}

    @property
    def size(self) -> Size:
        """Nothing."""
        return Size(bytes=0, ranges=1)

    @property
    def keys(self) -> Collection[Any]:
        """None."""
        return ()

    def was_read(self, _position: Mapping[str, Any]) -> bool:
        """No: nothing is read."""
        return False

    def up_to(self, part: str) -> None:
        """None: it has no parts."""

    def describe(self) -> dict[str, Any]:
        """Neither files nor versions."""
        return {"files": None, "versions": None}

    def to_plain(self) -> dict[str, Any]:
        """As plain data."""
        return {"nothing": serialise({"to": self.up_to_time}), "ends": self.ends, "why": self.why}


Input = Versions | Files | Nothing
"""What an epoch reads."""


def input_of(plain: Mapping[str, Any]) -> Input:
    """Return what :meth:`Versions.to_plain` or :meth:`Files.to_plain` gave."""
    if "nothing" in plain:
        return Nothing(deserialise(plain["nothing"])["to"], plain["ends"], plain["why"])
    if "versions" in plain:
        return Versions(**plain["versions"])
    files = tuple(SourceFile(*row) for row in plain["files"])
    return Files(files, deserialise(plain["before"]), deserialise(plain["after"]))


def after_files(before: Watermark, files: Sequence[SourceFile]) -> Files:
    """Return the input of files above a path watermark, and the watermark after them, in the form of the one before."""
    state = PathState.of(before).processed(file.path for file in files)
    by_partition = "paths" in before
    after = state.partition_watermark() if by_partition else state.global_watermark()
    return Files(tuple(files), before, after)


def versions_in_epochs(
    limits: Checkpoint, table: str, chunks: Sequence[Chunk], since: tuple[int, str | None] | None
) -> list[Input]:
    """Cut versions into epochs of at most so much input, each with one that has files; those without go with the epoch before, or the first.

    Args:
        limits: of an epoch.
        table: id of it.
        chunks: oldest first, also those without files.
        since: the version that was read last, and its id; None: none was.
    """
    groups: list[list[Chunk]] = []
    for chunk in chunks:
        group = groups[-1] if groups else None
        if group is None or (_has_files(group) and chunk.files and not _fits(group, chunk, limits)):
            groups.append([chunk])
        else:
            group.append(chunk)
    made: list[Input] = []
    for group in groups:
        first, last = group[0], group[-1]
        files, size = sum(chunk.files for chunk in group), sum(chunk.bytes for chunk in group)
        if files:
            below = (None, None) if since is None or first.whole else since
            made.append(
                Versions(table, first.version, last.version, first.whole, files, size, last.id, *below)
            )
        since = last.version, last.id
    return made


def begun_behind(table: str, newest: tuple[int, str | None]) -> Versions:
    """Return the input of an epoch that reads nothing, and that notes what was there before a stream began.

    Args:
        table: id of it.
        newest: version of the table then, and its id.
    """
    version, id_ = newest
    return Versions(table, version, version, False, 0, 0, id_, version, id_)


def files_in_epochs(
    limits: Checkpoint, before: Watermark, files: Sequence[SourceFile], split: Sequence[str]
) -> list[Input]:
    """Cut files into epochs of at most so much input.

    Where folders name the split, and each folder has a watermark of its own, splits take turns file by file: none runs ahead of the others only
    because its folder comes first.

    Args:
        limits: of an epoch.
        before: the path watermark below them.
        files: in pair order.
        split: the columns that tell a row's split.
    """
    in_turn = "paths" in before
    ordered = _in_turn(files, split) if in_turn else list(files)
    made: list[Input] = []
    start = 0
    while start < len(ordered):
        size, end = 0, start
        for file in ordered[start : start + limits.interval_files]:
            size += file.size
            if end > start and size > limits.interval_bytes:
                break
            end += 1
        made.append(epoch := after_files(before, ordered[start:end]))
        before, start = epoch.after, end
    return made


def _in_turn(files: Sequence[SourceFile], split: Sequence[str]) -> list[SourceFile]:
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


def _has_files(group: Sequence[Chunk]) -> bool:
    return any(chunk.files for chunk in group)


def _fits(group: Sequence[Chunk], chunk: Chunk, limits: Checkpoint) -> bool:
    files = sum(each.files for each in group) + chunk.files
    size = sum(each.bytes for each in group) + chunk.bytes
    return files <= limits.interval_files and size <= limits.interval_bytes
