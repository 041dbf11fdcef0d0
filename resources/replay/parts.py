"""A replay in place whose chunks are slices that its kind plans: files, or windows. What is done is told by the entries since it began (docs/replay.md)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from partitions.plan import Plan, Skip
from partitions.request import Request
from resources.kinds.kind import Kind
from resources.loop.loop import Loop
from resources.replay.reading import Piece
from resources.replay.replay import InPlaceReplay
from resources.replay.under_way import InPlace, begin, done_keys, find


@dataclass(frozen=True)
class PartsReplay(InPlaceReplay):
    """Slices of a range."""

    @abstractmethod
    def planned(self) -> tuple[Kind[Any], Plan[Any]]:
        """Return the kind, and all that the range holds now."""

    @abstractmethod
    def label(self, slice_: Any) -> str:
        """Name a slice for people."""

    @abstractmethod
    def bounds(self, slice_: Any) -> tuple[Any, Any]:
        """Return the bounds of a slice, for reports."""

    @abstractmethod
    def request(self, slice_: Any, since: int) -> Request:
        """Return what is asked for of a slice; ``since`` is the number of the newest entry when the replay began."""

    def plan(self) -> Plan[Any]:
        """Return the slices that are still to be read."""
        return self._plan(find(self.platform.log, self.dataflow.name, self.words))[0]

    def pieces(self, loop: Loop[Any]) -> tuple[Sequence[Piece], Sequence[str]]:  # noqa: ARG002 - of all replays
        """Begin, or go on: return all slices as chunks, and what there is to warn of."""
        begun = begin(self.platform.log, self.dataflow.name, self.words)
        made, done = self._plan(begun)
        return [
            *(self._piece(slice_, begun, done=True) for slice_ in done),
            *(self._piece(slice_, begun, done=False) for slice_ in made.slices),
        ], made.warnings

    def _piece(self, slice_: Any, begun: InPlace, *, done: bool) -> Piece:
        lower, upper = self.bounds(slice_)
        request = self.request(slice_, begun.number)
        return Piece(lower, upper, lambda: request, self.words, done=done)

    def _plan(self, begun: InPlace | None) -> tuple[Plan[Any], Sequence[Any]]:
        """The plan of what is left, and the slices that are done."""
        kind, made = self.planned()
        known = done_keys(self.platform.log, kind, begun)
        done = [slice_ for slice_ in made.slices if known.issuperset(slice_.keys)]
        left = tuple(slice_ for slice_ in made.slices if slice_ not in done)
        skips = [Skip(self.label(slice_), "done before") for slice_ in done]
        return replace(made, slices=left, skips=(*skips, *made.skips)), done
