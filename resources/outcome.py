"""What a run says of itself while it works and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from partitions.errors import BadPart, StrandlineError, UpstreamNotLoaded
from partitions.plan import CountsRows, Plan, ReadsBack, Slice
from partitions.sentinels import Watermark, encode
from partitions.spark_stream.batch_progress import BatchProgress
from partitions.state_of_kind import shortened
from partitions.stream.state import StreamState
from resources.watermarks.entry import Entry

Status = Literal["committed", "nothing", "recovered", "failed", "held", "blocked", "skipped"]


class Step(StrEnum):
    """Points between which a crash must not matter, in their order; an observer hears each after it was done."""

    PLANNED = "planned"
    LIST_KEPT = "list_kept"
    INTENT_PUT = "intent_put"
    SET_ASIDE = "set_aside"
    WRITTEN = "written"
    VERIFIED = "verified"
    APPENDED = "appended"
    FENCED = "fenced"
    ABANDONED = "abandoned"
    TABLE_REMOVED = "table_removed"
    FORGOTTEN = "forgotten"


_MOST_EPOCHS = 100
"""That are told one by one, the last ones."""

_STATUS_BY_EXIT: dict[int, Status] = {3: "held", 4: "blocked"}

Observer = Callable[[Step, str], None]
"""Hears of each step, with a line for people."""


@dataclass(frozen=True)
class Committed:
    """One number of this run.

    Attributes:
        rows: as the commit itself counted them.
        removed: rows that were deleted in the same commit; None if all of the table's were.
        slice: what was loaded.
        stats: what the write counted of its parts.
        changed: the error of a file that changed while it was read; the slice is committed all the same.
        bytes: of the source, as listed.
        seconds: from the check of the files to the entry.
    """

    entry: Entry
    rows: int
    files: int
    bytes: int
    seconds: float
    recovered: bool = False
    removed: int | None = 0
    slice: Slice | None = None
    stats: Mapping[Any, Sequence[Any]] = field(default_factory=dict)
    changed: BadPart | None = None

    @property
    def grown(self) -> int:
        """By how much the table has grown."""
        return self.rows - (self.removed or 0)


@dataclass(frozen=True)
class NotCommitted:
    """A slice that was not committed.

    Attributes:
        entry: the newest one now: the number's, abandoned, or the one before if no number was taken.
        why: the part of it that cannot be read, say.
    """

    entry: Entry | None
    why: StrandlineError


class LeftOut(NamedTuple):
    """A bad part of a slice beside the watermark, which waits for a later run.

    Attributes:
        kind: how people call it: ``late`` or ``released``.
    """

    kind: str
    bad: BadPart

    def __str__(self) -> str:
        """What and why, in a line."""
        return f"{self.kind} file {self.bad.part}: {self.bad.why}"


@dataclass
class Outcome:
    """A run of one dataflow, complete or failed half-way: what was committed stays counted.

    Attributes:
        before: the watermark that the run found.
        calls: LIST calls, or folders opened.
        left_out: by part, what held back nothing but itself.
        batches: what Spark said of those that the run has committed, of a stream on its engine; None of all others.
        repeated: those of the warnings that an earlier run has given already; people are not told them again.
    """

    dataflow: str
    run_id: str | None
    before: Watermark
    started_at_number: int
    plan: Plan[Slice] | None = None
    committed: list[Committed] = field(default_factory=list)
    newest: Entry | None = None
    calls: int = 0
    seconds: float = 0.0
    warnings: list[str] = field(default_factory=list)
    left_out: dict[str, LeftOut] = field(default_factory=dict)
    repeated: frozenset[str] = frozenset()
    batches: list[BatchProgress] | None = None
    error: StrandlineError | None = None

    @property
    def status(self) -> Status:
        """In one word (docs/reference/cli.md, JSON)."""
        if isinstance(self.error, UpstreamNotLoaded):
            return "skipped"
        if self.error is not None:
            return _STATUS_BY_EXIT.get(self.error.exit_code, "failed")
        if any(committed.recovered for committed in self.committed):
            return "recovered"
        return "committed" if self.committed else "nothing"

    @property
    def news(self) -> list[str]:
        """The warnings that people are told."""
        return [warning for warning in self.warnings if warning not in self.repeated]

    @property
    def rows(self) -> int:
        """Rows written, over all slices."""
        return sum(committed.rows for committed in self.committed)

    @property
    def files(self) -> int:
        """Files loaded, over all slices."""
        return sum(committed.files for committed in self.committed)

    @property
    def late(self) -> int:
        """How many of these files were late; of a stream the late rows."""
        files = sum(committed.files for committed in self.committed if committed.entry.why == "late")
        return files + self._sum("late")

    @property
    def quarantined(self) -> int:
        """Files that were passed over; of a stream the rows in quarantine."""
        files = sum(committed.entry.quarantined for committed in self.committed)
        return files + self._sum("quarantined")

    @property
    def _epochs(self) -> list[dict[str, Any]]:
        slices: list[object] = [committed.slice for committed in self.committed]
        return [slice_.counts_of_rows() for slice_ in slices if isinstance(slice_, CountsRows)]

    def _sum(self, what: str) -> int:
        return sum(int(epoch[what]) for epoch in self._epochs)

    @property
    def stream(self) -> dict[str, Any] | None:
        """What became of a stream's rows, in all and by epoch; None of other kinds."""
        if self.batches is not None:
            told = [batch.as_json() for batch in self.batches[-_MOST_EPOCHS:]]
            return {"engine": "structured_streaming", "batches": told}
        if self.kind != "stream":
            return None
        epochs = self._epochs
        sums = {
            name: sum(epoch[name] for epoch in epochs)
            for name in ("rows_in", "emitted", "late", "quarantined")
        }
        buffered = StreamState.of(self.after).buffered
        return {"engine": "splits", **sums, "buffered": buffered, "epochs": epochs[-_MOST_EPOCHS:]}

    @property
    def rows_add_up(self) -> bool:
        """Whether each row of a stream that came in, or waited before, is in one place after the run; True of other kinds, and of Spark's engine."""
        told = self.stream
        if told is None or self.batches is not None or self.error is not None:
            return True
        waited = StreamState.of(self.before).buffered
        places = ("emitted", "late", "quarantined", "buffered")
        return bool(told["rows_in"] + waited == sum(told[place] for place in places))

    @property
    def kind(self) -> str | None:
        """Of the watermark; None if the run came to no plan and found no entry."""
        return self.plan.kind if self.plan else self.newest.kind if self.newest else None

    @property
    def work_units(self) -> int:
        """Windows of units that were loaded."""
        return sum(committed.entry.work_units for committed in self.committed)

    @property
    def failed_units(self) -> int:
        """Windows of units that could not be read."""
        return sum(committed.entry.failed_units for committed in self.committed)

    @property
    def bytes(self) -> int:
        """Bytes of these files."""
        return sum(committed.bytes for committed in self.committed)

    @property
    def after(self) -> Watermark:
        """The watermark when the run was over."""
        return self.newest.state() if self.newest else self.before

    @property
    def effective(self) -> Watermark:
        """The watermark that the run read from, after look-back."""
        first = self.plan.slices[0] if self.plan and self.plan.slices else None
        return first.effective if isinstance(first, ReadsBack) else self.before

    def as_json(self) -> dict[str, Any]:
        """The run in the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "dataflow": self.dataflow,
            "run_id": self.run_id,
            "status": self.status,
            "state_number": self.newest.number if self.newest else 0,
            "slices": len(self.committed),
            "rows": self.rows,
            "files": self.files,
            "late": self.late if self.batches is None else None,
            "quarantined": self.quarantined if self.batches is None else None,
            "work_units": self.work_units,
            "failed_units": self.failed_units,
            "watermark_before": self._short(self.before),
            "watermark_effective": self._short(self.effective),
            "watermark_after": self._short(self.after),
            "seconds": round(self.seconds, 3),
            "error": error_json(self.error),
            "warnings": self.warnings,
            "stream": self.stream,
        }

    def _short(self, watermark: Watermark) -> Any:
        return encode(shortened(self.kind or "", watermark)) or None


def error_json(error: StrandlineError | None) -> dict[str, Any] | None:
    """An error in the public JSON form."""
    return (
        None
        if error is None
        else {"code": error.code, "message": error.message, "choices": list(error.choices)}
    )
