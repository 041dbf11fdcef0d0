"""The reports of a run: its steps while it works, and its outcome when it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from partitions.errors import BadPart, StrandlineError, UpstreamNotLoaded
from partitions.plan import CountsRows, Plan, Slice, TellsLowerBound
from partitions.sentinels import Watermark, encode
from partitions.spark_stream.batch_progress import BatchProgress
from partitions.state_of_kind import shorten_watermark
from partitions.stream.state import StreamState
from resources.watermarks.entry import Entry

Status = Literal["committed", "nothing", "recovered", "failed", "held", "blocked", "skipped"]


class Step(StrEnum):
    """Steps of a run, promote or drop between which a crash must not matter; observers hear of each."""

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


_MAX_EPOCHS = 100
"""The most epochs, or batches, in the JSON form: the last ones."""

_STATUS_BY_EXIT: dict[int, Status] = {3: "held", 4: "blocked"}

Observer = Callable[[Step, str], None]
"""Called after each step, with a line for people."""


@dataclass(frozen=True)
class Committed:
    """A slice that a run committed or recovered, with its entry and its counts.

    Attributes:
        rows: as the commit itself counted them.
        removed: the number of rows that the same commit deleted; None if it deleted the whole table.
        slice: the loaded slice.
        stats: counts of the write by part.
        changed: the error of a file that changed during the read; the slice is committed all the same.
        bytes: the source's bytes, as listed.
        seconds: from the start of its commit to its entry.
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
    def net_rows(self) -> int:
        """Return the number of rows by which the table has grown."""
        return self.rows - (self.removed or 0)


@dataclass(frozen=True)
class NotCommitted:
    """A slice that was not committed.

    Attributes:
        entry: the newest entry now: of the abandoned number, or the one before if no number was taken.
        why: the error, such as an unreadable part.
    """

    entry: Entry | None
    why: StrandlineError


class LeftOut(NamedTuple):
    """A bad part that waits for a later run, while the watermark moves on.

    Attributes:
        kind: its name for people: ``late`` or ``released``.
    """

    kind: str
    bad: BadPart

    def __str__(self) -> str:
        """Return the part and the reason in a line."""
        return f"{self.kind} file {self.bad.part}: {self.bad.why}"


@dataclass
class Outcome:
    """A run of one dataflow, complete or failed half-way: committed slices stay counted.

    Attributes:
        before: the watermark at the start of the run.
        calls: LIST calls, or folders opened.
        left_out: by part, the bad parts that wait for a later run.
        batches: Spark's progress of the committed batches, if the stream runs on its engine; else None.
        repeated: warnings that an earlier run has already given; people are not told again.
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
        """Return the status in one word (docs/reference/cli.md, JSON)."""
        if isinstance(self.error, UpstreamNotLoaded) and not self.committed:
            return "skipped"
        if self.error is not None:
            return _STATUS_BY_EXIT.get(self.error.exit_code, "failed")
        if any(committed.recovered for committed in self.committed):
            return "recovered"
        return "committed" if self.committed else "nothing"

    @property
    def new_warnings(self) -> list[str]:
        """Return the warnings to tell people."""
        return [warning for warning in self.warnings if warning not in self.repeated]

    @property
    def rows(self) -> int:
        """Return the number of written rows of all slices."""
        return sum(committed.rows for committed in self.committed)

    @property
    def files(self) -> int:
        """Return the number of loaded files of all slices."""
        return sum(committed.files for committed in self.committed)

    @property
    def deleted(self) -> int:
        """Return the number of rows that rows of the source took out of the table by their key."""
        return sum(committed.entry.deleted for committed in self.committed)

    @property
    def withheld(self) -> int:
        """Return the number of rows that were not written because of a delete in force."""
        return sum(sum((committed.entry.withheld or {}).values()) for committed in self.committed)

    @property
    def rejected(self) -> int:
        """Return the number of rows that failed a rule and went into the table of rejected rows."""
        return sum(committed.entry.rejected for committed in self.committed)

    @property
    def failed_rules(self) -> dict[str, int]:
        """Return the number of rows that failed each rule, by its name."""
        counts: dict[str, int] = {}
        for committed in self.committed:
            for rule, rows in (committed.entry.failed_rules or {}).items():
                counts[rule] = counts.get(rule, 0) + rows
        return counts

    @property
    def late(self) -> int:
        """Return the number of late files; for a stream, of late rows."""
        files = sum(committed.files for committed in self.committed if committed.entry.why == "late")
        return files + self._sum("late")

    @property
    def quarantined(self) -> int:
        """Return the number of quarantined files; for a stream, of quarantined rows."""
        files = sum(committed.entry.quarantined for committed in self.committed)
        return files + self._sum("quarantined")

    @property
    def _epochs(self) -> list[dict[str, Any]]:
        slices: list[object] = [committed.slice for committed in self.committed]
        return [slice_.counts_of_rows() for slice_ in slices if isinstance(slice_, CountsRows)]

    def _sum(self, name: str) -> int:
        return sum(int(epoch[name]) for epoch in self._epochs)

    @property
    def stream(self) -> dict[str, Any] | None:
        """Return the counts of a stream's rows, in total and by epoch; None for other kinds."""
        if self.batches is not None:
            batches = [batch.as_json() for batch in self.batches[-_MAX_EPOCHS:]]
            return {"engine": "structured_streaming", "batches": batches}
        if self.kind != "stream":
            return None
        epochs = self._epochs
        sums = {
            name: sum(epoch[name] for epoch in epochs)
            for name in ("rows_in", "emitted", "late", "quarantined")
        }
        buffered = StreamState.of(self.after).buffered
        return {"engine": "splits", **sums, "buffered": buffered, "epochs": epochs[-_MAX_EPOCHS:]}

    @property
    def rows_add_up(self) -> bool:
        """Return whether a stream's rows in + buffered before = emitted + late + quarantined + buffered.

        True if the run failed, or is no stream that the splits engine runs.
        """
        counts = self.stream
        if counts is None or self.batches is not None or self.error is not None:
            return True
        waited = StreamState.of(self.before).buffered
        places = ("emitted", "late", "quarantined", "buffered")
        return bool(counts["rows_in"] + waited == sum(counts[place] for place in places))

    @property
    def kind(self) -> str | None:
        """Return the kind of the watermark; None if the run made no plan and found no entry."""
        return self.plan.kind if self.plan else self.newest.kind if self.newest else None

    @property
    def work_units(self) -> int:
        """Return the number of loaded windows of units."""
        return sum(committed.entry.work_units for committed in self.committed)

    @property
    def failed_units(self) -> int:
        """Return the number of windows of units that could not be read."""
        return sum(committed.entry.failed_units for committed in self.committed)

    @property
    def bytes(self) -> int:
        """Return the bytes of the loaded files."""
        return sum(committed.bytes for committed in self.committed)

    @property
    def after(self) -> Watermark:
        """Return the watermark at the end of the run."""
        return self.newest.state() if self.newest else self.before

    @property
    def effective(self) -> Watermark:
        """Return the watermark that the run read from, after look-back."""
        first = self.plan.slices[0] if self.plan and self.plan.slices else None
        return first.effective if isinstance(first, TellsLowerBound) else self.before

    def as_json(self) -> dict[str, Any]:
        """Return the public JSON form of the run (docs/reference/cli.md, JSON)."""
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
            "deleted": self.deleted,
            "withheld": self.withheld,
            "rejected": self.rejected,
            "failed_rules": self.failed_rules,
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
        return encode(shorten_watermark(self.kind or "", watermark)) or None


def error_json(error: StrandlineError | None) -> dict[str, Any] | None:
    """Return an error in the public JSON form; None if there is no error."""
    return (
        None
        if error is None
        else {"code": error.code, "message": error.message, "choices": list(error.choices)}
    )
