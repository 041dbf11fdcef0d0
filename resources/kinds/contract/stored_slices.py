"""The part of a kind that stores a slice with its intent and restores it for another run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic

from resources.kinds.contract.slices import SliceT
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList


class StoredSlices(ABC, Generic[SliceT]):
    """Conversion between the slices of one dataflow and the lists that the log stores."""

    @property
    @abstractmethod
    def list_kind(self) -> ListKind:
        """The kind of list that stores a slice."""

    @abstractmethod
    def to_rows(self, slice_: SliceT) -> StoredList:
        """Return the rows from which the same slice can be restored."""

    @abstractmethod
    def from_rows(self, intent: Intent, stored: StoredList) -> SliceT:
        """Restore the slice of an intent."""
