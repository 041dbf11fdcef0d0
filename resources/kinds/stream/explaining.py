"""Why the rows of a split are loaded, or wait: from the state and the log.

See docs/reference/cli.md, why.
"""

from __future__ import annotations

from collections.abc import Iterator

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.spelling import nearest_name
from partitions.stream.event_time import EventTime
from partitions.stream.idle_splits import excluded_splits
from partitions.stream.state import Split, StreamState
from partitions.stream.waiting_rows import slowest_splits, time_in_words, waiting_rows
from partitions.why_answer import LoadingEntry, Reason, Status, WhyAnswer
from resources.kinds.loading_entry import loading_entry
from resources.kinds.state_of_entry import state_of
from resources.platform.opener import Opener

_ENTRIES = 500
"""The most entries of the log that are searched for the newest rows of a split."""


def explain_split(opener: Opener, dataflow: Dataflow, subject: str) -> WhyAnswer:
    """Return how far a split is, and what its rows wait for. Opens no source.

    Raises:
        ConfigurationError: there is no such split.
        NeedsDecision: as a run would.
    """
    _refuse_engine(dataflow)
    definition = dataflow.stream
    state = state_of(StreamState, dataflow, opener.checked_entry(dataflow))
    splits = {**dict.fromkeys(definition.splits, Split()), **state.splits}
    if not definition.split_columns or subject not in splits:
        raise _unknown_split(dataflow, subject, list(splits))
    split = splits[subject]
    idle = subject in excluded_splits(definition.policy, {name: other.idle for name, other in splits.items()})
    entries = list(_newest_rows(opener, dataflow, subject))
    if split.watermark is None:
        silence = f"; {pluralize(split.idle, 'epoch')} without one" if split.idle else ""
        waits = "" if idle else ", and the global watermark waits for it"
        return WhyAnswer(dataflow.name, "waits", f"declared, no row yet{waits}{silence}", subject)
    status, summary = _position(dataflow, state, subject, split, idle=idle)
    rows = waiting_rows(definition, state)
    reasons = [Reason(pluralize(rows.rows, "buffered row"), f"wait for {rows.in_words}")] if rows else []
    return WhyAnswer(dataflow.name, status, summary, subject, entries, reasons)


def _position(
    dataflow: Dataflow, state: StreamState, name: str, split: Split, *, idle: bool
) -> tuple[Status, str]:
    """Return how a split stands to the global watermark, in a word and in a sentence."""
    at = time_in_words(split.watermark)
    silence = f", no rows for {pluralize(split.idle, 'epoch')}" if split.idle else ""
    if idle:
        return (
            "waits",
            f"idle at {at}{silence}: the global watermark goes on without it, and rows of it below are late",
        )
    if name in {named.name for named in slowest_splits(dataflow.stream, state)}:
        return "waits", f"the slowest: the global watermark waits for it, at {at}{silence}"
    if state.value is None:
        return "waits", f"at {at}{silence}; there is no global watermark yet"
    reach = time_in_words(state.value)
    return (
        "loaded_in_part",
        f"at {at}{silence}; its rows below {reach} are loaded, those from there on wait in the buffer",
    )


def _newest_rows(opener: Opener, dataflow: Dataflow, name: str) -> Iterator[LoadingEntry]:
    """Yield the newest epoch that raised the split's watermark; nothing if the log does not tell."""
    after: tuple[LoadingEntry, EventTime | None] | None = None
    for entry in opener.log.history(dataflow.name, _ENTRIES):
        watermark = StreamState.of(entry.state()).splits.get(name, Split()).watermark
        if after is not None and after[1] != watermark:
            yield after[0]
            return
        part = "the newest epoch with rows that raised its watermark"
        after = loading_entry(entry, part), watermark
        if entry.previous == 0 and watermark is not None:
            yield after[0]


def _refuse_engine(dataflow: Dataflow) -> None:
    """Raise ConfigurationError for Spark's engine, which has no splits."""
    if dataflow.streams_with_spark:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected no second argument beside engine: structured_streaming, which has one"
            " watermark and no splits"
        )


def _unknown_split(dataflow: Dataflow, subject: str, names: list[str]) -> ConfigurationError:
    name = dataflow.name
    if not dataflow.stream.split_columns:
        expected = "no second argument: the stream is one split"
        return ConfigurationError(f"dataflow {name}: expected {expected}, found {subject!r}")
    close = nearest_name(subject, names)
    hint = f"did you mean {close}?" if close else f"it has {pluralize(len(names), 'split')}"
    return ConfigurationError(
        f"dataflow {name}: expected a split of column {', '.join(dataflow.stream.split_columns)}, found {subject!r}; {hint}"
    )
