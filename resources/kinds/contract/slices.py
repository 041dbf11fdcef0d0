"""The type of a kind's slices, shared by its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

from partitions.plan import Slice

SliceT = TypeVar("SliceT", bound=Slice)
SliceContra = TypeVar("SliceContra", bound=Slice, contravariant=True)


@runtime_checkable
class MayReadNothing(Protocol):
    """A slice that may do without its source, which may then be missing."""

    @property
    def reads_nothing(self) -> bool:
        """Whether this slice does not read its source."""
        ...


@runtime_checkable
class GroupsFailures(Protocol):
    """A slice that tells the failed parts of several slices by their reasons."""

    def failure_lines(self, owners: Mapping[Any, Any], /) -> Sequence[str]:
        """Return a line for each kind of reason; ``owners`` has the slice of each failed part, by key."""
        ...


def describe_failures(owners: Mapping[Any, Slice]) -> list[str]:
    """Return the failed parts as lines; ``owners`` has the slice that records each of them, by key."""
    if not owners:
        return []
    first: Any = next(iter(owners.values()))
    if isinstance(first, GroupsFailures):
        return list(first.failure_lines(owners))
    return [slice_.failures[key] for key, slice_ in owners.items()]


def reads_source(slice_: Slice) -> bool:
    """Return whether a slice reads its source."""
    return not (isinstance(slice_, MayReadNothing) and slice_.reads_nothing)
