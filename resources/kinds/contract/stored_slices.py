"""The part of a kind that stores a slice with its intent, and brings the same slice back for the run that finishes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic

from resources.kinds.contract.slices import SliceT
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList


class StoredSlices(ABC, Generic[SliceT]):
    """Slices of one dataflow, as the log has them."""

    @property
    @abstractmethod
    def list_kind(self) -> ListKind:
        """Of the lists that slices are kept as."""

    @abstractmethod
    def to_rows(self, slice_: SliceT) -> StoredList:
        """Return what must be kept so that exactly this slice can be read again."""

    @abstractmethod
    def from_rows(self, intent: Intent, stored: StoredList) -> SliceT:
        """Return the slice of an intent."""
