"""Why the rows of a commit are loaded, or not: from the log and the plan.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.log_position import LogPosition
from partitions.offset.slices import CommitRange, OffsetSlice
from partitions.offset.state import OffsetState
from partitions.why_answer import Reason, Status, WhyAnswer
from resources.kinds.loading_entry import loading_entry
from resources.kinds.offset.planning import OffsetPlanning
from resources.kinds.offset.stored_slices import COMMITS, StoredOffsetSlices
from resources.kinds.state_of_entry import state_of
from resources.platform.opener import Opener
from resources.watermarks.entry import LOADS, Entry

_CHANGES, _PASSED = (COMMITS.columns.index(name) for name in ("changes", "passed_over"))

_ENTRIES = 1_000
"""The most entries of the log that are searched."""


def explain_commit(opener: Opener, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
    """Return what became of the rows of a commit that a user names by its version or snapshot.

    Raises:
        ConfigurationError: the subject is no number.
        NeedsDecision: as a run would.
    """
    text = subject.removeprefix("version ").removeprefix("snapshot ").strip()
    if not text.isdigit():
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a version or a snapshot of table {dataflow.source.label}, such as 41,"
            f" found {subject!r}"
        )
    entry = opener.checked_entry(dataflow)
    state = state_of(OffsetState, dataflow, entry)
    return _CommitExplanation(opener, dataflow, subject, text, state, entry, now).answer()


@dataclass(frozen=True)
class _CommitExplanation:
    """Answers for one commit.

    Attributes:
        text: its number, or the id of its snapshot.
        state: how far the log is read.
        entry: the newest entry.
    """

    opener: Opener
    dataflow: Dataflow
    subject: str
    text: str
    state: OffsetState
    entry: Entry | None
    now: datetime

    def answer(self) -> WhyAnswer:
        """Return the entry that read the commit, or what it waits for."""
        name = self.dataflow.name
        read = next(self._reading_entries(), None)
        if read is not None:
            entry, slice_, position = read
            passed = _passed_over(slice_, position)
            reasons = (Reason(position.words, f"its changes were passed over: {passed}"),) if passed else ()
            status: Status = "skipped" if passed else "loaded"
            summary = f"{'passed over' if passed else 'loaded'}: {position.words}"
            return WhyAnswer(name, status, summary, self.subject, [loading_entry(entry)], reasons)
        if self._counts_as_read():
            assert self.state.position is not None
            summary = f"counts as loaded: the log is read up to {self.state.position.words}. No entry of the log names this commit"
            return WhyAnswer(name, "loaded", summary, self.subject)
        try:
            plan = self.opener.plan(self.dataflow, self.now)
        except NeedsDecision as error:
            reason = Reason(self.dataflow.source.label, error.message, choices=error.choices)
            summary = f"not loaded yet: {name} waits for a decision"
            return WhyAnswer(name, "stopped", summary, self.subject, reasons=(reason,), choices=error.choices)
        for number, slice_ in enumerate(plan.slices, 1):
            if self._position_in(slice_) is not None:
                summary = f"not loaded yet: the next run reads it, in slice {number} of {len(plan.slices)}"
                return WhyAnswer(name, "due", summary, self.subject, choices=(f"strandline run {name}",))
        skips = [Reason(skip.subject, skip.why) for skip in plan.skips]
        if skips or self._is_in_log():
            why = plan.why if skips else "it changes no row, so it is passed with the next one that does"
            return WhyAnswer(name, "waits", f"not loaded yet: {why}", self.subject, reasons=skips)
        summary = f"table {self.dataflow.source.label} has no such commit behind the position: {plan.why}"
        return WhyAnswer(name, "unknown", summary, self.subject)

    def _is_in_log(self) -> bool:
        """Return whether the log has the commit behind the position."""
        planning = self.opener.kind(self.dataflow).planning
        assert isinstance(planning, OffsetPlanning)
        return any(self._is_named(commit.position) for commit in planning.log.tail(self.state).commits)

    def _counts_as_read(self) -> bool:
        """Return whether the commit lies at or below the position; a snapshot's id tells no order."""
        position = self.state.position
        if position is None or (position.is_snapshot and position.id != self.text):
            return False
        return position.is_snapshot or int(self.text) <= position.version

    def _reading_entries(self) -> Iterator[tuple[Entry, OffsetSlice, LogPosition]]:
        """Yield the entries whose slices read the commit, newest first."""
        era = self.entry.era if self.entry else 0
        for entry in self.opener.log.history(self.dataflow.name, _ENTRIES):
            if entry.number <= era:
                return
            if entry.why not in LOADS or not entry.file_list:
                continue
            intent = self.opener.log.intent(self.dataflow.name, entry.number)
            if intent is None:
                continue
            slice_ = StoredOffsetSlices().from_rows(
                intent, self.opener.log.get_list(entry.file_list, COMMITS)
            )
            if (position := self._position_in(slice_)) is not None:
                yield entry, slice_, position

    def _position_in(self, slice_: OffsetSlice) -> LogPosition | None:
        commits = slice_.input.commits if isinstance(slice_.input, CommitRange) else ()
        positions = [commit.position for commit in commits] or [slice_.input.last]
        return next((position for position in positions if self._is_named(position)), None)

    def _is_named(self, position: LogPosition) -> bool:
        return self.text == (position.id if position.is_snapshot else str(position.version))


def _passed_over(slice_: OffsetSlice, position: LogPosition) -> str | None:
    """Return the changes of a commit that its slice passed over; None if it read the commit."""
    commits = slice_.input.commits if isinstance(slice_.input, CommitRange) else ()
    return next(
        (commit.changes for commit in commits if commit.position == position and commit.is_passed_over), None
    )


def passed_over(opener: Opener, dataflow: Dataflow, limit: int) -> list[tuple[int, str]]:
    """Return the newest changes that loads have passed over, with the number of their entry.

    Args:
        opener: the resources.
        dataflow: the definition.
        limit: the most changes.
    """
    changes: list[tuple[int, str]] = []
    for entry in opener.log.history(dataflow.name, _ENTRIES):
        if entry.why in LOADS and entry.why != "replay" and entry.file_list:
            rows = opener.log.get_list(entry.file_list, COMMITS).rows
            changes += [(entry.number, str(row[_CHANGES])) for row in reversed(rows) if row[_PASSED]]
        if len(changes) >= limit:
            break
    return changes[:limit]
