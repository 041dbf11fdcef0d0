"""Why rows with a value of a watermark column are loaded, or not: from the log and the plan.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from partitions.column.predicates import format_bound
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState, ReadBound
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.sentinels import deserialise
from partitions.watermark import compare_values
from partitions.why_answer import LoadingEntry, Reason, WhyAnswer
from resources.kinds.loading_entry import loading_entry
from resources.kinds.state_of_entry import state_of
from resources.platform.opener import Opener
from resources.watermarks.entry import LOADS, Entry

_ENTRIES, _SHOWN = 1_000, 5
"""The most entries of the log that are searched, and the most of an answer."""


def explain_value(opener: Opener, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
    """Return what became of the rows with a value that a user names.

    Raises:
        ConfigurationError: the value is none of a watermark column.
        NeedsDecision: as a run would.
    """
    entry = opener.checked_entry(dataflow)
    state = state_of(ColumnState, dataflow, entry)
    column, text = _column_of(dataflow, subject)
    bound = state.bounds.get(column)
    if bound is None:
        plan = opener.plan(dataflow, now)
        return WhyAnswer(
            dataflow.name, "due" if plan.due else "waits", f"nothing is loaded yet: {plan.why}", subject
        )
    value = _value_of(dataflow, column, text, bound.value)
    return _ValueExplanation(opener, dataflow, subject, column, value, bound, entry, now).answer()


@dataclass(frozen=True)
class _ValueExplanation:
    """Answers for the rows with one value.

    Attributes:
        column: the watermark column.
        value: of the column's type.
        bound: how far the column is read.
        entry: the newest entry.
    """

    opener: Opener
    dataflow: Dataflow
    subject: str
    column: str
    value: Any
    bound: ReadBound
    entry: Entry | None
    now: datetime

    def answer(self) -> WhyAnswer:
        """Return the entries that read the value, or what it waits for."""
        if not self.bound.covers(ReadBound(self.value)):
            return self._above()
        entries = list(self._entries())
        reach = f"{self.column} is loaded up to {format_bound(self.bound.value)}"
        summary = (
            f"loaded: {reach}"
            if entries
            else f"counts as loaded: {reach}. No entry of the log read it: a decision set the watermark, or the"
            " log no longer has the entry"
        )
        again = f"rows below {format_bound(self.bound.value)} that are committed later are not read"
        missed = () if self.dataflow.column.reads_again else (Reason("later rows", again),)
        return WhyAnswer(
            self.dataflow.name,
            "loaded",
            summary,
            self.subject,
            entries[:_SHOWN],
            missed,
            max(0, len(entries) - _SHOWN),
        )

    def _above(self) -> WhyAnswer:
        plan = self.opener.plan(self.dataflow, self.now)
        reach = f"above the watermark, {self.column} {format_bound(self.bound.value)}"
        for number, slice_ in enumerate(plan.slices, 1):
            if self._is_in(slice_):
                summary = (
                    f"not loaded yet: {reach}; the next run reads it, in slice {number} of {len(plan.slices)}"
                )
                run = f"strandline run {self.dataflow.name}"
                return WhyAnswer(self.dataflow.name, "due", summary, self.subject, choices=(run,))
        skips = [Reason(skip.subject, skip.why) for skip in plan.skips[:_SHOWN]]
        return WhyAnswer(
            self.dataflow.name, "waits", f"not loaded yet: {reach}; {plan.why}", self.subject, reasons=skips
        )

    def _is_in(self, slice_: ColumnSlice) -> bool:
        """Return whether a slice reads the value; a range without a bound reads all."""
        return any(
            range_.column == self.column
            and (range_.lower is None or compare_values(self.value, range_.lower) > 0)
            and (
                range_.upper is None
                or ReadBound(range_.upper, range_.upper_inclusive).covers(ReadBound(self.value))
            )
            for range_ in slice_.ranges
        )

    def _entries(self) -> Iterator[LoadingEntry]:
        """Yield the entries that read the value, newest first."""
        era = self.entry.era if self.entry else 0
        for entry in self.opener.log.history(self.dataflow.name, _ENTRIES):
            if entry.number <= era:
                return
            if entry.why in LOADS and entry.upper is not None and self._read_by(entry):
                yield loading_entry(entry)

    def _read_by(self, entry: Entry) -> bool:
        upper = ColumnState.of(deserialise(entry.upper or "{}")).bounds.get(self.column)
        lower = ColumnState.of(deserialise(entry.lower)).bounds.get(self.column) if entry.lower else None
        if upper is None or not upper.covers(ReadBound(self.value)):
            return False
        inclusive = self.dataflow.column.boundary == "inclusive"
        return lower is None or compare_values(self.value, lower.value) > (-1 if inclusive else 0)


def _column_of(dataflow: Dataflow, subject: str) -> tuple[str, str]:
    """Return the column and the text of ``VALUE`` or ``COLUMN=VALUE``."""
    columns = dataflow.column.columns
    name, between, text = subject.partition("=")
    if between and name in columns:
        return name, text
    if len(columns) == 1:
        return columns[0], subject
    names = ", ".join(columns)
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected COLUMN=VALUE with one of its watermark columns {names}, found {subject!r}"
    )


def _value_of(dataflow: Dataflow, column: str, text: str, like: Any) -> Any:
    """Return a text as a value of a column's type.

    A time without a zone is in UTC if those of the column have one.
    """
    with suppress(ValueError, InvalidOperation, OverflowError):
        match like:
            case datetime():
                at = datetime.fromisoformat(text)
                if (at.tzinfo is None) == (like.tzinfo is None):
                    return at
                return (
                    at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None)
                )
            case date():
                return date.fromisoformat(text)
            case int():
                return int(text)
            case float():
                return float(text)
            case Decimal():
                return Decimal(text)
            case str():
                return text
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected a value of column {column}, such as {format_bound(like)}, found {text!r}"
    )
