"""The decision to flush the waiting rows of a stream whose input has ended."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError, name_dataflow
from partitions.instants import Instant
from partitions.plan import pluralize
from partitions.sentinels import serialise
from partitions.stream.ending import request_flush
from partitions.stream.event_time import EventTime
from partitions.stream.operators import Aggregate, OverWindow, splits_operator
from partitions.stream.state import StreamState
from partitions.stream.ticks import HIGHEST, LOWEST
from resources.decisions.draft import Draft, DraftBuilder, draft_entry, require_current_definition
from resources.kinds.state_of_entry import state_of
from resources.loop.loop import clock
from resources.platform.opener import Opener
from resources.watermarks.entry import Entry


class NothingWaits(ConfigurationError):
    """Raised if a flush would let out no row: none waits, or all rows below the time have left."""

    code = "nothing_waits"


def flush(reason: str, before: str | None = None) -> DraftBuilder:
    """Return the builder of a decision: the next run lets waiting rows out, and later rows are late.

    Args:
        reason: the operator's reason.
        before: an event time as text (:func:`event_time_of`), exclusive: rows below it leave. None:
            all rows leave, as if none came after them.

    Raises:
        ConfigurationError: the dataflow is no stream over splits or has no state, or ``before`` is no
            event time of it.
        NothingWaits: no row would leave.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        if dataflow.streams_with_spark:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected engine: splits, found engine: structured_streaming: "
                "only a later row raises Spark's watermark. Send a row that is later than the waiting "
                "rows by more than the timeout; or load the stream with engine: splits"
            )
        definition = dataflow.stream
        last = require_current_definition(platform, dataflow, last)
        state, now = state_of(StreamState, dataflow, last), clock()
        until = None if before is None else event_time_of(dataflow, before, now)
        if until is None and not state.buffered and not _has_input(platform, dataflow, last, now):
            raise NothingWaits(f"dataflow {dataflow.name}: no row waits, so there is nothing to flush")
        if until is not None and state.value is not None and until <= state.value:
            raise NothingWaits(
                f"dataflow {dataflow.name}: the global watermark is already {_in_words(state.value)}: all "
                f"rows below {_in_words(until)} have left, or leave with the next run"
            )
        waiting_rows = f"{pluralize(state.buffered, 'row')} wait{'s' if state.buffered == 1 else ''}"
        leaving = "all" if until is None else _leaving_rows(dataflow)
        below = "the last of them" if until is None else _in_words(until)
        policy = {"divert": "go to the table of late rows", "drop": "are dropped", "fail": "stop the run"}
        notes = [
            f"{waiting_rows}: {leaving} leave with the next run, after it has read the existing input",
            (
                f"rows below {below} that arrive later are late: they {policy[definition.late]} (late: "
                f"{definition.late})"
            ),
        ]
        if isinstance(until, datetime) and until > now:
            notes.append(f"{_in_words(until)} lies in the future: rows up to then are late when they arrive")
        after = request_flush(state, until)
        watermark = serialise(after.watermark())
        return Draft(draft_entry(platform, dataflow, last, "flush", reason, watermark=watermark), notes=notes)

    return build_draft


def _has_input(platform: Opener, dataflow: Dataflow, last: Entry, now: datetime) -> bool:
    """Return whether the source has unread input; False if the source cannot be planned."""
    try:
        return bool(platform.kind(dataflow).planning.plan(last, now).slices)
    except StrandlineError:
        return False


def _leaving_rows(dataflow: Dataflow) -> str:
    """Describe the rows that leave when the global watermark rises to a time."""
    match splits_operator(dataflow.operators):
        case Aggregate():
            return "the windows that end by then"
        case OverWindow():
            return "the rows whose values need no row from then on"
    return "the rows below it"


def event_time_of(dataflow: Dataflow, text: str, now: datetime) -> EventTime:
    """Parse an event time of a stream: an aware timestamp in UTC, or a whole number of 64 bits.

    Args:
        dataflow: the stream; its timeout tells which of both event times are.
        text: ISO 8601 (UTC if it has no offset), an instant such as a duration before now, or a
            number.
        now: the clock, aware.

    Raises:
        ConfigurationError: the text is none of these.
    """
    if isinstance(dataflow.stream.timeout, timedelta):
        with suppress(ValueError, OverflowError):  # Instant keeps milliseconds only, event times microseconds
            at = datetime.fromisoformat(text)
            return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        try:
            return datetime.fromtimestamp(Instant.parse(text, UTC).at(now) / 1000, UTC)
        except ConfigurationError as error:
            raise ConfigurationError(name_dataflow(dataflow.name, f"--before: {error.message}")) from error
    try:
        number = int(text)
    except ValueError:
        number = HIGHEST + 1
    if not LOWEST <= number <= HIGHEST:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --before: expected a whole number of 64 bits, like the stream's "
            f"event times, found {text!r}"
        )
    return number


def _in_words(at: EventTime | None) -> str:
    """Return an event time as a message shows it."""
    return "undefined" if at is None else at.isoformat() if isinstance(at, datetime) else f"{at:,}"
