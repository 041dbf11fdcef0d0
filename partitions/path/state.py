"""The state of a path watermark: the last file, or one name per open partition.

See docs/explanation/watermarks.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, Self

from partitions.errors import CorruptWatermark
from partitions.path.order import FileKey
from partitions.path.time_template import TimeTemplate
from partitions.sentinels import Watermark, value_text
from partitions.watermark import is_empty
from partitions.watermark_state import WatermarkState

Status = Literal["initial", "active", "idle"]


@dataclass(frozen=True)
class PathState(WatermarkState):
    """The committed state; none of its values ever falls.

    Attributes:
        last: scope global: the last committed file in pair order.
        names: scope partition: the last committed name by partition; the root is the partition ``""``.
        closed_before: scope partition: partitions whose time lies below this instant are closed.
        status: ``initial``: no file so far; ``active``: the last tick found files; ``idle``: it found
        none.
    """

    last: FileKey | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    closed_before: datetime | None = None
    status: Status = "initial"

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Parse the watermark of either scope; empty is the state of a new source.

        The forms are ``{"path": …}`` and ``{"paths": {…}, "closed_before": …}``.

        Raises:
            CorruptWatermark: the object has another form.
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
            f" found {value_text(dict(watermark))}"
        )

    @property
    def path(self) -> str | None:
        """The last committed file's path (scope global), in every status."""
        return self.last.path if self.last else None

    def global_watermark(self) -> Watermark:
        """Return the watermark of scope global."""
        return {"path": self.path}

    def partition_watermark(self) -> Watermark:
        """Return the watermark of scope partition."""
        return {"paths": dict(self.names), "closed_before": self.closed_before}

    def covers(self, older: PathState, template: TimeTemplate | None = None) -> bool:
        """Return whether no value falls from ``older`` to this state.

        Args:
            older: another state.
            template: parses a partition's time, to tell a closed partition from a lost one.
        """
        if older.last is not None and (self.last is None or self.last < older.last):
            return False
        if older.closed_before and (self.closed_before is None or self.closed_before < older.closed_before):
            return False
        return all(
            self.names[name] >= last if name in self.names else self._closed(name, template)
            for name, last in older.names.items()
        )

    def _closed(self, partition: str, template: TimeTemplate | None) -> bool:
        start = template.time(partition) if template else None
        return start is not None and self.closed_before is not None and start < self.closed_before

    def after_files(self, paths: Iterable[str]) -> PathState:
        """Return the state after these files were committed, in any order; the source becomes active."""
        last, names = self.last, dict(self.names)
        for key in map(FileKey.of, paths):
            last = key if last is None else max(last, key)
            names[key.partition] = max(names.get(key.partition, ""), key.name)
        return replace(self, last=last, names=names, status="active")

    def idle(self) -> PathState:
        """Return the state after a tick that found nothing; a source without any file so far stays initial."""
        return self if self.status == "initial" else replace(self, status="idle")
