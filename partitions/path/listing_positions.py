"""What a listing starts from: which files are new, and where they can lie (docs/explanation/watermarks.md).

A *position* answers four questions, so that every store lists with the same rule: ``above`` (is this file new?),
``may_hold`` (must this folder be opened?), ``span`` and ``seek`` (which keys must a listing by key walk?).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from itertools import pairwise, takewhile
from typing import NamedTuple, Protocol

from partitions.path.order import LAST, FileKey, below, past, upwards
from partitions.path.time_template import TimeTemplate


class KeyRange(NamedTuple):
    """Keys that a listing walks.

    Attributes:
        after: it starts strictly after this key; ``""`` is the beginning.
        until: it may stop once it is past this key; ``None`` is the end.
    """

    after: str = ""
    until: str | None = None


class _Step(NamedTuple):
    """Where the keys of one prefix start (strictly after) and end."""

    start: str
    end: str


class ListingStart(Protocol):
    """What a listing starts from."""

    @property
    def partitioned(self) -> bool:
        """Whether one path stands for all partitions and lies in one, so that root-level files would be overlooked."""
        ...

    def above(self, path: str) -> bool:
        """Whether this file is strictly above the position."""
        ...

    def may_hold(self, folder: str) -> bool:
        """Whether a file above the position can lie in this folder (``""`` is the root) or below it."""
        ...

    def span(self) -> KeyRange:
        """Where the keys above the position lie."""
        ...

    def seek(self, key: str) -> str:
        """Where a listing that has dealt with every key up to ``key`` may go on: no key between the two is above.

        Only a result that is past ``key`` is a jump; any other says to go on as it is.
        """
        ...

    def passes(self, key: str, target: str, /) -> str | None:
        """The folder (``""`` is the root) in which the jump from ``key`` to ``target`` may pass files and folders that are above."""
        ...

    def belongs(self, folder: str) -> bool:
        """Whether a jump may pass this folder, and all in it."""
        ...


@dataclass(frozen=True)
class FromBeginning:
    """No position yet: everything, or what lies in the given partitions and below them.

    Attributes:
        prefixes: partitions, none of them inside another; none at all is no filter.
    """

    prefixes: tuple[str, ...] = ()
    partitioned: bool = field(default=False, init=False)

    @classmethod
    def within(cls, prefixes: Iterable[str] | None) -> FromBeginning:
        """Leave out duplicates and what another prefix covers. None or none at all: no filter."""
        unique = dict.fromkeys(prefix.strip("/") for prefix in prefixes or ())
        if "" in unique:
            return cls()
        return cls(
            tuple(
                prefix
                for prefix in unique
                if not any(up in unique for up in upwards(FileKey.of(prefix).partition))
            )
        )

    def above(self, path: str) -> bool:
        """Whether the file lies in one of the prefixes; a prefix may be coarser than the partitions."""
        return not self.prefixes or any(up in self._chosen for up in upwards(FileKey.of(path).partition))

    def may_hold(self, folder: str) -> bool:
        """Whether the folder is on the way to a prefix or inside it."""
        return (
            not self.prefixes
            or not folder
            or folder in self._on_the_way
            or any(up in self._chosen for up in upwards(folder))
        )

    def span(self) -> KeyRange:
        """From the first prefix to the end of the last; everything if their order depends on the store's."""
        steps = self._steps
        return KeyRange(steps[0].start, steps[-1].end) if steps else KeyRange()

    def seek(self, key: str) -> str:
        """Jump from prefix to prefix."""
        steps = self._steps
        index = bisect_right(steps, key, key=lambda step: step.end)
        while index and not past(key, steps[index - 1].end):
            index -= 1
        return steps[index].start if index < len(steps) else key

    def passes(self, _key: str, _target: str, /) -> str | None:
        """Nothing is above between two prefixes."""
        return None

    def belongs(self, folder: str) -> bool:
        """Whether nothing in it is above."""
        return not self.may_hold(folder)

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        """The prefixes in the order that all stores list them in; none if there is no such order."""
        steps = sorted(_Step(below(prefix), f"{prefix}/{LAST}") for prefix in self.prefixes)
        agreed = all(
            past(later.start, step.start) and past(later.end, step.end) for step, later in pairwise(steps)
        )
        return tuple(steps) if agreed else ()

    @cached_property
    def _chosen(self) -> frozenset[str]:
        return frozenset(self.prefixes)

    @cached_property
    def _on_the_way(self) -> frozenset[str]:
        return frozenset(up for prefix in self.prefixes for up in upwards(prefix))


@dataclass(frozen=True)
class AbovePath:
    """Scope global: strictly above one file.

    Attributes:
        last: the last committed file.
        leaf: a folder holds files or folders, not both, so sub-folders of the last partition need no listing.
    """

    last: FileKey
    leaf: bool = False

    @property
    def partitioned(self) -> bool:
        """Whether the last file lies in a partition."""
        return bool(self.last.partition)

    def above(self, path: str) -> bool:
        """Compare pairs, strictly."""
        return FileKey.of(path) > self.last

    def may_hold(self, folder: str) -> bool:
        """A folder holds something above if itself, or any folder that can lie below it, is not below the partition.

        Of those before the partition these are the ones on the way to it, and those that it continues from with less than a ``/``.
        """
        partition = self.last.partition
        if not folder or folder >= partition:
            return True
        return partition.startswith(folder) and partition[len(folder)] <= "/"

    def span(self) -> KeyRange:
        """Everything from the partition on, partitions such as ``P-b`` (between ``P`` and ``P/``) included.

        At the root every folder is above, so only layout leaf (no folders beside files) can start at the last file.
        """
        if self.last.partition:
            return KeyRange(below(self.last.partition))
        return KeyRange(self.last.name if self.leaf else "")

    def seek(self, key: str) -> str:
        """In the last partition only sub-folders are above what was committed; layout leaf has none, so jump over it."""
        partition, path = self.last.partition, self.last.path
        return path if self.leaf and f"{partition}/" <= key < path else key

    def passes(self, _key: str, _target: str, /) -> str | None:
        """Nothing in the last partition, as layout leaf has promised."""
        return None

    def belongs(self, folder: str) -> bool:
        """Whether nothing in it is above."""
        return not self.may_hold(folder)


@dataclass(frozen=True)
class AbovePartitions:
    """Scope partition: above the last file of each open partition; a partition without one is new. The root is one of them.

    Attributes:
        names: the last committed name by open partition.
        template: parses a partition's time.
        closed_before: partitions whose time lies below this instant are closed; ``None``: nothing is closed.
        leaf: as for :class:`AbovePath`.
    """

    names: Mapping[str, str]
    template: TimeTemplate | None = None
    closed_before: datetime | None = None
    leaf: bool = False

    partitioned: bool = field(default=False, init=False)

    def above(self, path: str) -> bool:
        """Compare with the partition's own last name; files of a closed partition are late, not new."""
        partition, name = FileKey.of(path)
        last_name = self.names.get(partition)
        return name > last_name if last_name is not None else not self._closed(partition)

    def may_hold(self, folder: str) -> bool:
        """A closed partition is not opened, unless it is still among the known names."""
        return not self._closed(folder) or folder in self._on_the_way

    def span(self) -> KeyRange:
        """A new partition may lie anywhere."""
        return KeyRange()

    def seek(self, key: str) -> str:
        """Jump over closed partitions, and in layout leaf over what an open one has committed."""
        partition, name = FileKey.of(key)
        last_name = self.names.get(partition)
        if last_name is not None:
            # Not at the root: all partitions lie between its files.
            return FileKey(partition, last_name).path if self.leaf and partition and name < last_name else key
        if self.template is None or self.closed_before is None or not self._closed(partition):
            return key
        ahead = (below(open_) for open_ in self.names if not past(key, f"{open_}/{LAST}"))
        targets = {self.template.skip(partition, self.closed_before), *ahead}
        first = min(targets)
        return first if all(past(target, first) for target in targets - {first}) else key

    def passes(self, key: str, target: str) -> str | None:
        """The folder of the closed partitions: the root, say, whose own files lie between them."""
        if self.template is None or not self._closed(FileKey.of(key).partition):
            return None
        both = zip(key.split("/"), target.split("/"), strict=False)
        folder = "/".join(part for part, _ in takewhile(lambda pair: pair[0] == pair[1], both))
        return None if self._closed(folder) else folder

    def belongs(self, folder: str) -> bool:
        """Whether the template could have written it: what it holds is closed, or found where the jump ends."""
        return self.template is not None and self.template.leads_to(folder)

    @cached_property
    def _on_the_way(self) -> frozenset[str]:
        return frozenset(up for name in self.names for up in upwards(name))

    def _closed(self, partition: str) -> bool:
        if self.template is None or self.closed_before is None:
            return False
        start = self.template.time(partition)
        return start is not None and start < self.closed_before


@dataclass(frozen=True)
class AtOrBelow:
    """What the late-file sweep lists: everything that is not above a position.

    Attributes:
        position: what is committed.
        since: where Strandline began to read the source; what is not above it was never meant to be loaded.
    """

    position: ListingStart
    since: ListingStart

    partitioned: bool = field(default=False, init=False)

    def above(self, path: str) -> bool:
        """Whether the file is the sweep's: neither new nor from before the start."""
        return not self.position.above(path) and self.since.above(path)

    def may_hold(self, folder: str) -> bool:
        """A folder after the last partition holds only what is new."""
        last = self.position.last.partition if isinstance(self.position, AbovePath) else None
        return self.since.may_hold(folder) and (last is None or folder <= last)

    def span(self) -> KeyRange:
        """To the end: if pairs and keys are ordered differently, what is below may be listed after what is above."""
        return KeyRange(self.since.span().after)

    def seek(self, key: str) -> str:
        """Jump over what lies before the start."""
        return self.since.seek(key)

    def passes(self, key: str, target: str) -> str | None:
        """What a jump of the start passes."""
        return self.since.passes(key, target)

    def belongs(self, folder: str) -> bool:
        """Whether a jump of the start may pass it."""
        return self.since.belongs(folder)
