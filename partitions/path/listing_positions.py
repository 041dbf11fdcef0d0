"""Positions of a listing: which files are new, and where they can lie.

See docs/explanation/watermarks.md. A *position* lets every store list by the same rule: ``is_above`` (is
this file new?), ``may_hold`` (must this folder be opened?), ``span`` and ``seek`` (which keys must a
listing by key walk?).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise, takewhile
from typing import NamedTuple, Protocol

from partitions.path.order import LAST, FileKey, folders_up, is_past, key_before
from partitions.path.time_template import TimeTemplate


class KeyRange(NamedTuple):
    """A range of keys that a listing walks.

    Attributes:
        after: exclusive start; ``""`` is the beginning.
        until: the listing may stop once it is past this key; ``None`` is the end.
    """

    after: str = ""
    until: str | None = None


class _Step(NamedTuple):
    """The keys of one prefix; ``start`` is exclusive."""

    start: str
    end: str


class ListingStart(Protocol):
    """A position that a listing starts from."""

    @property
    def partitioned(self) -> bool:
        """Whether files at the root are overlooked, since one path inside a partition stands for all."""
        ...

    def is_above(self, path: str) -> bool:
        """Return whether a file is strictly above the position."""
        ...

    def may_hold(self, folder: str) -> bool:
        """Return whether a folder (``""`` is the root) may hold, at any depth, a file above the position."""
        ...

    def span(self) -> KeyRange:
        """Return the range of the keys above the position."""
        ...

    def seek(self, key: str) -> str:
        """Return the key to continue from after all keys up to ``key``; none in between is above.

        Only a result past ``key`` is a jump; any other means to continue without one.
        """
        ...

    def passed_folder(self, key: str, target: str, /) -> str | None:
        """Return the folder in which a jump may pass files or folders that are above; None if there is none.

        The root is ``""``.
        """
        ...

    def may_be_jumped(self, folder: str) -> bool:
        """Return whether a jump may pass this folder with its contents."""
        ...


@dataclass(frozen=True)
class FromBeginning:
    """No position yet: all files, or those at or below the given partitions.

    Attributes:
        prefixes: partitions, none of them inside another; empty: no filter.
    """

    prefixes: tuple[str, ...] = ()
    partitioned: bool = field(default=False, init=False)

    @classmethod
    def within(cls, prefixes: Iterable[str] | None) -> FromBeginning:
        """Return the position for these prefixes, without duplicates and prefixes that others cover.

        None or an empty list: no filter.
        """
        unique = dict.fromkeys(prefix.strip("/") for prefix in prefixes or ())
        if "" in unique:
            return cls()
        return cls(
            tuple(
                prefix
                for prefix in unique
                if not any(up in unique for up in folders_up(FileKey.of(prefix).partition))
            )
        )

    def is_above(self, path: str) -> bool:
        """Return whether the file lies in one of the prefixes, which may be coarser than the partitions."""
        return not self.prefixes or any(up in self._chosen for up in folders_up(FileKey.of(path).partition))

    def may_hold(self, folder: str) -> bool:
        """Return whether the folder is on the way to a prefix or inside it."""
        return (
            not self.prefixes
            or not folder
            or folder in self._on_the_way
            or any(up in self._chosen for up in folders_up(folder))
        )

    def span(self) -> KeyRange:
        """Return the first prefix to the end of the last; all keys if stores order the prefixes differently."""
        steps = self._steps
        return KeyRange(steps[0].start, steps[-1].end) if steps else KeyRange()

    def seek(self, key: str) -> str:
        """Jump from prefix to prefix."""
        steps = self._steps
        index = bisect_right(steps, key, key=lambda step: step.end)
        while index and not is_past(key, steps[index - 1].end):
            index -= 1
        return steps[index].start if index < len(steps) else key

    def passed_folder(self, _key: str, _target: str, /) -> str | None:
        """Return None: no file between two prefixes is above."""
        return None

    def may_be_jumped(self, folder: str) -> bool:
        """Return whether nothing in the folder is above."""
        return not self.may_hold(folder)

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        """The prefixes in the order of all stores; empty if stores order them differently."""
        steps = sorted(_Step(key_before(prefix), f"{prefix}/{LAST}") for prefix in self.prefixes)
        agreed = all(
            is_past(later.start, step.start) and is_past(later.end, step.end)
            for step, later in pairwise(steps)
        )
        return tuple(steps) if agreed else ()

    @cached_property
    def _chosen(self) -> frozenset[str]:
        return frozenset(self.prefixes)

    @cached_property
    def _on_the_way(self) -> frozenset[str]:
        return frozenset(up for prefix in self.prefixes for up in folders_up(prefix))


@dataclass(frozen=True)
class AbovePath:
    """Scope global: strictly above one file.

    Attributes:
        last: the last committed file.
        leaf: whether a folder holds either files or folders, so that sub-folders of the last partition
        need no listing.
    """

    last: FileKey
    leaf: bool = False

    @property
    def partitioned(self) -> bool:
        """Whether the last file lies in a partition."""
        return bool(self.last.partition)

    def is_above(self, path: str) -> bool:
        """Return whether the file's pair is above the last pair."""
        return FileKey.of(path) > self.last

    def may_hold(self, folder: str) -> bool:
        """Return whether the folder, or a folder inside it, may sort at or after the last partition.

        Of the folders before the partition these are the ones on the way to it, and those whose name the
        partition continues with a character below ``/``.
        """
        partition = self.last.partition
        if not folder or folder >= partition:
            return True
        return partition.startswith(folder) and partition[len(folder)] <= "/"

    def span(self) -> KeyRange:
        """Return all keys from the partition on, including siblings such as ``P-b``.

        ``P-b`` sorts between ``P`` and ``P/``. At the root every folder is above, so only layout leaf (no
        folders beside files) can start at the last file.
        """
        if self.last.partition:
            return KeyRange(key_before(self.last.partition))
        return KeyRange(self.last.name if self.leaf else "")

    def seek(self, key: str) -> str:
        """Jump over the committed files of the last partition if layout is leaf.

        In the last partition only sub-folders could be above them, and layout leaf has none.
        """
        partition, path = self.last.partition, self.last.path
        return path if self.leaf and f"{partition}/" <= key < path else key

    def passed_folder(self, _key: str, _target: str, /) -> str | None:
        """Return None: layout leaf promises that the last partition has no sub-folders."""
        return None

    def may_be_jumped(self, folder: str) -> bool:
        """Return whether nothing in the folder is above."""
        return not self.may_hold(folder)


@dataclass(frozen=True)
class AbovePartitions:
    """Scope partition: above the last file of each open partition; a partition without one is new.

    The root counts as a partition.

    Attributes:
        names: the last committed name by open partition.
        template: parses a partition's time.
        closed_before: partitions whose time lies below this instant are closed; ``None``: none is closed.
        leaf: as for :class:`AbovePath`.
    """

    names: Mapping[str, str]
    template: TimeTemplate | None = None
    closed_before: datetime | None = None
    leaf: bool = False

    partitioned: bool = field(default=False, init=False)

    def is_above(self, path: str) -> bool:
        """Return whether the file is above its partition's last name.

        Files of a closed partition are late, not new.
        """
        partition, name = FileKey.of(path)
        last_name = self.names.get(partition)
        return name > last_name if last_name is not None else not self._closed(partition)

    def may_hold(self, folder: str) -> bool:
        """Return whether the folder is open, or on the way to a partition with a committed name."""
        return not self._closed(folder) or folder in self._on_the_way

    def span(self) -> KeyRange:
        """Return all keys: a new partition may lie anywhere."""
        return KeyRange()

    def seek(self, key: str) -> str:
        """Jump over closed partitions, and with layout leaf over the committed files of an open one."""
        partition, name = FileKey.of(key)
        last_name = self.names.get(partition)
        if last_name is not None:
            # Not at the root: all partitions lie between its files.
            return FileKey(partition, last_name).path if self.leaf and partition and name < last_name else key
        if self.template is None or self.closed_before is None or not self._closed(partition):
            return key
        ahead = (key_before(open_) for open_ in self.names if not is_past(key, f"{open_}/{LAST}"))
        targets = {self.template.skip(partition, self.closed_before), *ahead}
        first = min(targets)
        return first if all(is_past(target, first) for target in targets - {first}) else key

    def passed_folder(self, key: str, target: str) -> str | None:
        """Return the folder that holds the passed closed partitions, such as the root.

        Its own files may lie between them.
        """
        if self.template is None or not self._closed(FileKey.of(key).partition):
            return None
        both = zip(key.split("/"), target.split("/"), strict=False)
        folder = "/".join(part for part, _ in takewhile(lambda pair: pair[0] == pair[1], both))
        return None if self._closed(folder) else folder

    def may_be_jumped(self, folder: str) -> bool:
        """Return whether the template can have written the folder.

        Then its contents are closed, or are listed where the jump ends.
        """
        return self.template is not None and self.template.leads_to(folder)

    @cached_property
    def _on_the_way(self) -> frozenset[str]:
        return frozenset(up for name in self.names for up in folders_up(name))

    def _closed(self, partition: str) -> bool:
        if self.template is None or self.closed_before is None:
            return False
        start = self.template.time(partition)
        return start is not None and start < self.closed_before


@dataclass(frozen=True)
class AtOrBelow:
    """The files that the late-file sweep lists: everything that is not above a position.

    Attributes:
        position: the committed position.
        since: the position where Strandline began to read the source; it never loads anything below.
    """

    position: ListingStart
    since: ListingStart

    partitioned: bool = field(default=False, init=False)

    def is_above(self, path: str) -> bool:
        """Return whether the sweep covers the file: neither new nor from before the start."""
        return not self.position.is_above(path) and self.since.is_above(path)

    def may_hold(self, folder: str) -> bool:
        """Return whether the folder is not after the last partition, where all files are new."""
        last = self.position.last.partition if isinstance(self.position, AbovePath) else None
        return self.since.may_hold(folder) and (last is None or folder <= last)

    def span(self) -> KeyRange:
        """Return all keys from the start on.

        It has no end: where pairs and keys sort differently, a file below may be listed after one above.
        """
        return KeyRange(self.since.span().after)

    def seek(self, key: str) -> str:
        """Jump over the keys before the start."""
        return self.since.seek(key)

    def passed_folder(self, key: str, target: str) -> str | None:
        """Return the folder that a jump of the start passes."""
        return self.since.passed_folder(key, target)

    def may_be_jumped(self, folder: str) -> bool:
        """Return whether a jump of the start may pass the folder."""
        return self.since.may_be_jumped(folder)
