"""The slices of a kind, as its parts have them in common."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

from partitions.plan import Slice

SliceT = TypeVar("SliceT", bound=Slice)
SliceContra = TypeVar("SliceContra", bound=Slice, contravariant=True)


@runtime_checkable
class MayReadNothing(Protocol):
    """A slice of a kind whose slices need not read the source: it need not be there then."""

    @property
    def reads_nothing(self) -> bool:
        """Whether this one does not."""
        ...


def reads_source(slice_: Slice) -> bool:
    """Return whether a slice reads its source."""
    return not (isinstance(slice_, MayReadNothing) and slice_.reads_nothing)
