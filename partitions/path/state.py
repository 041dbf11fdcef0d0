"""The state of a path watermark: the last file, or one name per open partition (docs/explanation/watermarks.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from partitions.errors import CorruptWatermark
from partitions.path.order import FileKey
from partitions.path.time_template import TimeTemplate
from partitions.sentinels import Watermark, shown
from partitions.watermark import is_empty

Status = Literal["initial", "active", "idle"]


@dataclass(frozen=True)
class PathState:
    """What is committed. Nothing of it ever falls.

    Attributes:
        last: scope global: the last committed file in pair order.
        names: scope partition: the last committed name by partition; the root is the partition ``""``.
        closed_before: scope partition: partitions whose time lies below this instant are closed.
        status: ``initial`` never saw a file, ``active`` the last tick found files, ``idle`` it found none.
    """

    last: FileKey | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    closed_before: datetime | None = None
    status: Status = "initial"

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> PathState:
        """Read ``{"path": …}`` or ``{"paths": {…}, "closed_before": …}``; empty is the state of a new source.

        Raises:
            CorruptWatermark: for an object of another form.
        """
        if watermark is None or is_empty(watermark):
            return cls()
        path, names, closed = (watermark.get(key) for key in ("path", "paths", "closed_before"))
        if isinstance(path, str) and names is None:
            return cls(last=FileKey.of(path), status="active")
        zoned = closed is None or (isinstance(closed, datetime) and closed.tzinfo is not None)
        if (
            path is None
            and zoned
            and isinstance(names, dict)
            and all(isinstance(name, str) for name in names.values())
        ):
            return cls(names=names, closed_before=closed, status="active")
        raise CorruptWatermark(
            'path watermark: expected {"path": text} or {"paths": {partition: name}, "closed_before": instant or null},'
            f" found {shown(dict(watermark))}"
        )

    @staticmethod
    def holds_nothing(_watermark: Mapping[str, Any]) -> bool:
        """Return whether a watermark that is not empty counts nothing as loaded: of this kind none does."""
        return False

    @property
    def path(self) -> str | None:
        """The last committed file's path (scope global); readable in every status."""
        return self.last.path if self.last else None

    def global_watermark(self) -> Watermark:
        """The watermark of scope global."""
        return {"path": self.path}

    def partition_watermark(self) -> Watermark:
        """The watermark of scope partition."""
        return {"paths": dict(self.names), "closed_before": self.closed_before}

    def covers(self, other: PathState, template: TimeTemplate | None = None) -> bool:
        """Whether nothing of ``other`` lies above this state: going from it to this one, no value falls.

        Args:
            other: the state below, if it is one.
            template: parses a partition's time, which tells a closed one from one that was forgotten.
        """
        if other.last is not None and (self.last is None or self.last < other.last):
            return False
        if other.closed_before and (self.closed_before is None or self.closed_before < other.closed_before):
            return False
        return all(
            self.names[name] >= last if name in self.names else self._closed(name, template)
            for name, last in other.names.items()
        )

    def _closed(self, partition: str, template: TimeTemplate | None) -> bool:
        start = template.time(partition) if template else None
        return start is not None and self.closed_before is not None and start < self.closed_before

    def processed(self, paths: Iterable[str]) -> PathState:
        """The state after these files were committed, in any order; a processed file makes the source active."""
        last, names = self.last, dict(self.names)
        for key in map(FileKey.of, paths):
            last = key if last is None else max(last, key)
            names[key.partition] = max(names.get(key.partition, ""), key.name)
        return replace(self, last=last, names=names, status="active")

    def idle(self) -> PathState:
        """The state after a tick that found nothing; a source that never saw a file stays initial."""
        return self if self.status == "initial" else replace(self, status="idle")
