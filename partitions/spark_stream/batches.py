"""Slices of a stream on Spark's engine: batches in the outbox, one commit.

See docs/reference/streams-on-spark.md.
"""

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
    """Batches that Spark has finished and the table does not have.

    Attributes:
        batches: their numbers, ascending; only the last one has rows in the outbox. Empty for input that
        Spark has not read yet.
        after: the state after them.
        bytes: the size of their files in bytes; None if unknown.
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
        """Return the state after it."""
        return self.after.watermark()

    @property
    def size(self) -> Size:
        """Return the number of bytes in the outbox."""
        return Size(bytes=self.bytes, ranges=1)

    @property
    def keys(self) -> Collection[int]:
        """Return the batches' numbers."""
        return self.batches

    @property
    def failures(self) -> Mapping[int, str]:
        """Return no failures: a batch is loaded whole, or not at all."""
        return {}

    def contains(self, _bad: BadPart) -> bool:
        """Return False: the rows in an outbox have been read already."""
        return False

    def up_to(self, bad: BadPart) -> None:
        """Return None: a batch is not cut."""

    def advance(self, _before: Watermark) -> Watermark:
        """Return the state after it."""
        return self.after.watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Return the number of its epoch, and whether it loads batches or new input."""
        epoch = self.batches[-1] + 1 if self.batches else self.after.epoch + 1
        reason = "run" if self.batches else "new input"
        return [{"epoch": epoch, "files": None, "versions": None, "reason": reason}]

    def halve(self) -> tuple[BatchSlice, ...]:
        """Return only itself: a batch is one commit."""
        return (self,)
