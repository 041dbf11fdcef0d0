"""Slices of a stream on Spark's engine: batches that lie in the outbox, one commit, and the state after it (docs/reference/streams-on-spark.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from partitions.errors import BadPart
from partitions.plan import Size
from partitions.sentinels import Watermark
from partitions.stream.state import StreamState


@dataclass(frozen=True)
class BatchSlice:
    """Batches that Spark has ended and the table does not have.

    Attributes:
        batches: their numbers, ascending; of all but the last the outbox has no rows. None for input that Spark has not read yet.
        after: the state after them.
        bytes: of their files; None if unknown.
    """

    batches: tuple[int, ...]
    after: StreamState
    bytes: int | None = None

    lower: None = None
    since: None = None
    why: Literal["run"] = "run"
    replaces: bool = False

    @property
    def upper(self) -> Watermark:
        """The state after it."""
        return self.after.watermark()

    @property
    def size(self) -> Size:
        """How many bytes lie in the outbox."""
        return Size(bytes=self.bytes, ranges=1)

    @property
    def keys(self) -> Collection[int]:
        """The batches' numbers."""
        return self.batches

    @property
    def failures(self) -> Mapping[int, str]:
        """None: a batch is loaded whole, or not at all."""
        return {}

    def contains(self, _bad: BadPart) -> bool:
        """No: what is in an outbox was read already."""
        return False

    def up_to(self, bad: BadPart) -> None:
        """None: a batch is not cut."""

    def advance(self, _before: Watermark) -> Watermark:
        """The state after it."""
        return self.after.watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Which batches, or that there is new input."""
        epoch = self.batches[-1] + 1 if self.batches else self.after.epoch + 1
        reason = "run" if self.batches else "new input"
        return [{"epoch": epoch, "files": None, "versions": None, "reason": reason}]

    def halve(self) -> tuple[BatchSlice, ...]:
        """Only itself: a batch is one commit."""
        return (self,)
