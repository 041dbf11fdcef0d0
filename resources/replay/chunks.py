"""A chunk of a replay, of any kind of watermark: for plans, reports and storage.

See docs/reference/replay.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partitions.column.predicates import format_bound
from partitions.request import CommitNumber
from partitions.sentinels import deserialise, serialise
from partitions.window.work_outcomes import TimeBound
from resources.watermarks.entry import StoredRecord

StoredWork = tuple[TimeBound, TimeBound, str, str]
"""A window of a unit: start and end in epoch milliseconds, the unit's identity, and the text of how the window is cut."""


class ReplayChunk(StoredRecord):
    """A chunk of a replay.

    Attributes:
        range: lower and upper bound, sentinel JSON text: values of a column, paths of files, or times.
        files: paths of files, in pair order; empty for other kinds.
        works: windows of units; empty for other kinds.
        gone_paths: paths of files that are gone at the source, whose rows are deleted.
        commits: the commit before the first one, and the last one; None for other kinds.
    """

    range: str
    files: tuple[str, ...] = ()
    works: tuple[StoredWork, ...] = ()
    gone_paths: tuple[str, ...] = ()
    commits: tuple[CommitNumber | None, CommitNumber] | None = None

    @classmethod
    def of(
        cls,
        lower: Any,
        upper: Any,
        files: Sequence[str] = (),
        works: Sequence[StoredWork] = (),
        gone_paths: Sequence[str] = (),
        commits: tuple[CommitNumber | None, CommitNumber] | None = None,
    ) -> ReplayChunk:
        """Return the chunk between two bounds."""
        range_ = serialise({"lower": lower, "upper": upper})
        return cls(
            range=range_,
            files=tuple(files),
            works=tuple(works),
            gone_paths=tuple(gone_paths),
            commits=commits,
        )

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The lower and upper bound."""
        bounds = deserialise(self.range)
        return bounds["lower"], bounds["upper"]

    @property
    def words(self) -> str:
        """The bounds for people."""
        lower, upper = self.bounds
        return f"{format_bound(lower)} to {format_bound(upper)}"

    @property
    def keys(self) -> frozenset[Any]:
        """The keys of the chunk's parts; empty for a column or commits, which are known by their bounds."""
        paths = (*self.files, *self.gone_paths)
        return frozenset(paths or ((start, unit) for start, _, unit, _ in self.works))
