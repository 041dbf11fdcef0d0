"""Replay in place: chunks go into the dataflow's own table, each under the next number of its log (docs/replay.md, In place).

One object beside the log says that a replay is under way, and since which number: whatever dies, the same command goes on after the last chunk
that has an entry. It is removed when all chunks are done, so the same command then reads them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow, short_hash
from partitions.errors import ConfigurationError
from partitions.plan import Plan, Skip, counted
from partitions.replay.chunks import Chunk, chunks, remaining
from partitions.replay.every import fitted_chunks
from partitions.replay.reading import chunk_slice
from partitions.request import Replay
from partitions.sentinels import deserialise, serialise
from partitions.unit_values import kind_of_value
from partitions.watermark import compare_values
from resources.loop.loop import Loop
from resources.loop.outcome import Observer
from resources.platform import Platform
from resources.replay.asked import Asked, asked_chunks
from resources.replay.reading import Replayed, Told, read_chunks, words
from resources.tables.table import CanStandAside
from resources.watermarks.entry import Entry, Record, read_record, utc_now
from resources.watermarks.log import WatermarkLog

REPLAYING = "replaying"
"""The folder of the objects, beside the log."""

_ANOTHER_TABLE = ("reset", "adopt", "accept", "import")
"""After these an entry before tells nothing of the table's rows."""

_MOST_ENTRIES = 1_000_000
"""All that the log has."""


class InPlace(Record):
    """A replay into the dataflow's own table that is under way.

    Attributes:
        dataflow: its name.
        asked: what was asked for, as options of the command.
        column: that bounds the range.
        interval: of its chunks, one unit and how many of it; None: one chunk.
        range: lower (inclusive) and upper (exclusive) bound, sentinel JSON text, of the column's type.
        number: of the newest entry when it began; 0 without one.
        time: when it began, ISO in UTC; for people.
    """

    dataflow: str
    asked: str
    column: str
    interval: dict[str, int] | None = None
    range: str
    number: int
    time: str

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks that it is cut into."""
        bounds = deserialise(self.range)
        return chunks(self.column, bounds["lower"], bounds["upper"], self.interval)

    def done_up_to(self, log: WatermarkLog) -> Any:
        """Return the upper bound of the last chunk that has an entry; None without one."""
        uppers = [deserialise(entry.upper)[self.column] for entry in self._entries(log) if entry.upper]
        highest = None
        for upper in uppers:
            highest = upper if highest is None or compare_values(upper, highest) > 0 else highest
        return highest

    def _entries(self, log: WatermarkLog) -> Iterable[Entry]:
        for entry in log.history(self.dataflow, _MOST_ENTRIES):
            if entry.number <= self.number or entry.why in _ANOTHER_TABLE:
                return
            if entry.why == "replay" and entry.reason == self.asked:
                yield entry


def check_in_place(platform: Platform, dataflow: Dataflow, asked: Asked) -> tuple[Chunk, ...]:
    """Return the chunks that are asked for. Opens no source, changes nothing.

    Raises:
        ConfigurationError: the range or the dataflow is not one that can be replayed so.
    """
    planned, target = asked_chunks(dataflow, asked), dataflow.target
    if target.load == "append" and not asked.replace:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected --replace, found a replay into a table of load append: its rows would be there twice. With --replace each"
            " chunk deletes its own range and adds it again, in one commit; or use --into LAYER/NAME"
        )
    if target.load == "scd2" and asked.replace:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected no --replace, found it beside load scd2: no version of a history is deleted; a replay adds those that"
            " are missing"
        )
    if not isinstance(platform.table(dataflow), CanStandAside):
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a target of format delta or iceberg, found {target.format}: nothing replaces a part of its files"
        )
    return planned


def plan_in_place(platform: Platform, dataflow: Dataflow, asked: Asked, now: datetime) -> Plan[Any]:
    """Return what a replay would read, one slice a chunk. Opens no source, changes nothing.

    Raises:
        ConfigurationError: as :func:`replay_in_place`.
    """
    planned = check_in_place(platform, dataflow, asked)
    log = platform.log
    known, newest = _read(log, dataflow.name, asked), log.newest(dataflow.name)
    state = ColumnState.of(newest.state() if newest else None)
    stored = state.marks.get(planned[0].column)
    if known is not None:
        planned = known.chunks
    elif stored is not None:
        planned = fitted_chunks(planned, kind_of_value(stored.value))
    left = _left(log, known, planned, newest, asked)
    slices = []
    skips = [Skip(words(chunk), "done before") for chunk in planned if chunk not in left]
    for chunk in left:
        slice_ = chunk_slice(dataflow.target, dataflow.column.columns, state, _request(asked, chunk), None)
        if slice_ is None:
            skips.append(Skip(words(chunk), "lies above the watermark, and is left to the next run"))
        else:
            slices.append(slice_)
    why = f"{counted(len(slices), 'chunk')} of {len(planned)} to replay into {dataflow.table}"
    number = newest.number if newest else 0
    return Plan(dataflow.name, dataflow.kind, number, now, why, tuple(slices), tuple(skips))


def replay_in_place(
    platform: Platform,
    dataflow: Dataflow,
    asked: Asked,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    told: Told = lambda reports: None,
    **how: Any,
) -> Replayed:
    """Read a range again into the dataflow's own table, or go on where the same replay has stopped.

    Args:
        platform: the resources.
        dataflow: whose rows they are.
        asked: the range, and what becomes of table and watermark.
        now: the clock, aware.
        observer: hears of every step.
        told: hears what has become of all chunks, after each.
        how: run_id, job_id, and attributes of :class:`resources.loop.waiting.Patience`, with a live run.

    Raises:
        ConfigurationError: the range or the dataflow is not one that can be replayed so; nothing was changed.
    """
    planned = check_in_place(platform, dataflow, asked)
    log, loop = platform.log, platform.loop(dataflow, now, observer=observer, **how)
    begun = _read(log, dataflow.name, asked)
    if begun is None:
        begun = _begin(platform, dataflow, asked, planned, now)
    newest = log.newest(dataflow.name)
    left = _left(log, begun, begun.chunks, newest, asked)

    def request(chunk: Chunk) -> Replay:
        made = _request(asked, chunk, begun.number)
        return made if not _deletes(dataflow, made) else _clearing(loop, made)

    done = read_chunks(loop, begun.chunks, left, request, told)
    if asked.save_watermark:
        done.outcome.warnings += _gap(newest, left, now)
    if done.outcome.error is None:
        log.delete(dataflow.name, REPLAYING, [_name(asked)])
    return done


def _begin(
    platform: Platform, dataflow: Dataflow, asked: Asked, planned: Sequence[Chunk], now: datetime
) -> InPlace:
    """Put a replay. Its bounds are values of the column, which the source tells."""
    column, log = planned[0].column, platform.log
    kind = platform.column_kind(dataflow)
    known = kind.with_kinds(kind.above.observe(dataflow.column.columns, now))
    fitted = fitted_chunks(planned, known.get(column))
    newest = log.newest(dataflow.name)
    made = InPlace(
        dataflow=dataflow.name,
        asked=asked.words,
        column=column,
        interval=asked.interval,
        range=serialise({"lower": fitted[0].lower, "upper": fitted[-1].upper}),
        number=newest.number if newest else 0,
        time=utc_now(),
    )
    log.put_object(dataflow.name, REPLAYING, _name(asked), made.to_bytes())
    return _read(log, dataflow.name, asked) or made


def _left(
    log: WatermarkLog, known: InPlace | None, planned: Sequence[Chunk], newest: Entry | None, asked: Asked
) -> tuple[Chunk, ...]:
    """The chunks that are still to be read: above the watermark that is saved, or above the last one with an entry."""
    if asked.save_watermark:
        state = ColumnState.of(newest.state() if newest else None)
        return remaining(planned, {name: mark.value for name, mark in state.marks.items()})
    done = known.done_up_to(log) if known else None
    return remaining(planned, None if done is None else {planned[0].column: done})


def _request(asked: Asked, chunk: Chunk, since: int = 0) -> Replay:
    return Replay(
        chunk,
        since,
        asked.words,
        saves=asked.save_watermark,
        replaces=asked.replace,
        leaves_above=not asked.save_watermark,
    )


def _deletes(dataflow: Dataflow, request: Replay) -> bool:
    return request.replaces or dataflow.target.replace_by_watermark


def _clearing(loop: Loop[Any], request: Replay) -> Replay:
    """The same, loaded without rows, too, if the table holds some."""
    table = loop.context.table
    holds = table.exists() and table.holds_any(table.newest_version(), request.chunk.range.rows)
    return replace(request, clears=holds)


def _gap(newest: Entry | None, left: Sequence[Chunk], now: datetime) -> list[str]:
    """What a saved watermark passes over."""
    if not left:
        return []
    column, said = left[0].column, []
    mark = ColumnState.of(newest.state() if newest else None).marks.get(column)
    if mark is not None and compare_values(mark.value, left[0].lower) < 0:
        said.append(
            f"rows of {column} between the watermark before and {words(left[0]).partition(' to ')[0]} were passed over, and no run reads them"
        )
    last = left[-1].upper
    if isinstance(last, datetime) and last.tzinfo is not None and last > now:
        said.append(
            f"the watermark may lie above now: rows of {column} that come later below it are read by no run"
        )
    return said


def _read(log: WatermarkLog, dataflow: str, asked: Asked) -> InPlace | None:
    data = log.get_object(dataflow, REPLAYING, _name(asked))
    return None if data is None else read_record(InPlace, data, f"replay of {dataflow} in place")


def _name(asked: Asked) -> str:
    return f"{short_hash({'asked': asked.words})}.json"
