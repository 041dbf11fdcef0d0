"""Replay into a table aside: chunk by chunk, by the loop that loads everything, under a log and a hold of its own (docs/replay.md, Aside)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from partitions.column.predicates import Range, shown
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, StrandlineError
from partitions.plan import Plan, Skip, counted
from partitions.replay.chunks import Chunk, chunk_column, chunks, remaining
from partitions.replay.every import fitted_chunks, interval_of
from partitions.sentinels import deserialise, serialise
from resources.aside.promoting import promoted_entry
from resources.aside.standing import (
    Aside,
    begin,
    drop_command,
    is_marked,
    mark,
    remaining_chunks,
    stored_asides,
)
from resources.kinds.column import ColumnKind
from resources.kinds.kind import WriteStats
from resources.kinds.states import state_of
from resources.loop.loop import Loop
from resources.loop.outcome import Observer, Outcome
from resources.platform import Platform
from resources.tables import find_format
from resources.tables.table import CanStandAside
from resources.watermarks.entry import Entry, Intent, new_id, utc_now

_ALL = 1_000_000
"""Chunks of one run: a limit would end it as if it was complete."""


@dataclass(frozen=True)
class Asked:
    """What a user asks for, as it is written.

    Attributes:
        start: inclusive.
        end: exclusive.
        table: ``<layer>/<name>``.
        every: the interval of the chunks; None: one chunk.
        column: that is cut; None: the first watermark column.
    """

    start: str
    end: str
    table: str
    every: str | None = None
    column: str | None = None

    @property
    def request(self) -> dict[str, str]:
        """As it is kept."""
        given = {"start": self.start, "end": self.end, "every": self.every, "column": self.column}
        return {name: text for name, text in given.items() if text is not None}

    @property
    def interval(self) -> dict[str, int] | None:
        """Of the chunks."""
        return interval_of(self.every) if self.every is not None else None


@dataclass(frozen=True)
class ReplayedColumns(ColumnKind):
    """A column kind whose next slice is the next chunk of a replay that holds rows, whole; the state after it is its end.

    One chunk is planned at a time, so that what cannot be read stops the replay at its own chunk.

    Attributes:
        chunks: of the replay, in order.
        looked: hears of each chunk that is looked at.
    """

    chunks: tuple[Chunk, ...] = ()
    looked: Callable[[Chunk], None] = lambda chunk: None

    @property
    def replans_after_load(self) -> bool:
        """The next chunk is planned when one is done."""
        return True

    def _plan_due(self, entry: Entry | None, now: datetime) -> Plan[ColumnSlice]:
        state = state_of(ColumnState, self.dataflow, entry)
        version = self.above.observe(self._definition.columns, now).version
        plan = Plan[ColumnSlice](self.dataflow.name, "column", entry.number if entry else 0, now, "")
        for chunk in remaining(self.chunks, {name: done.value for name, done in state.marks.items()}):
            self.looked(chunk)
            slice_ = _slice(chunk, state, version)
            if self.above.holds_any(self._sought(slice_), version):
                return replace(plan, why=f"replay of {slice_.words}", slices=(slice_,))
        return replace(plan, why="no chunk with rows is left")

    def state_after(self, intent: Intent, stats: WriteStats) -> str:  # noqa: ARG002 - whatever was written
        """The end of the chunk."""
        return intent.watermark


@dataclass(frozen=True)
class Replayed:
    """What a replay has done.

    Attributes:
        aside: where it stands.
        outcome: of the run.
        chunks: each with what became of it, in the public JSON form.
    """

    aside: Aside
    outcome: Outcome
    chunks: Sequence[dict[str, Any]]


def plan_aside(platform: Platform, dataflow: Dataflow, asked: Asked, now: datetime) -> Plan[Any]:
    """Return what a replay would read, one slice a chunk. Opens no source, changes nothing.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_aside`.
    """
    planned, known = _checked(platform, dataflow, asked)
    left = remaining_chunks(platform.log, known) if known else planned
    done = (known.chunks if known else planned)[: len(planned) - len(left)]
    slices = tuple(_slice(chunk, ColumnState(), None) for chunk in left)
    skips = tuple(Skip(_words(chunk), "done before") for chunk in done)
    why = f"{counted(len(left), 'chunk')} of {len(planned)} to replay into {asked.table}"
    return Plan(dataflow.name, dataflow.kind, 0, now, why, slices, skips)


def replay_aside(
    platform: Platform,
    dataflow: Dataflow,
    asked: Asked,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    begun: Callable[[int, int], None] = lambda done, all_: None,
    **how: Any,
) -> Replayed:
    """Read a range again into a table aside, or go on where the same replay has stopped.

    Args:
        platform: the resources.
        dataflow: whose rows they are.
        asked: the range, and the table.
        now: the clock, aware.
        observer: hears of every step.
        begun: hears how many chunks are done, and how many there are.
        how: run_id, job_id, and attributes of :class:`resources.loop.waiting.Patience`, with a run that loads the same replay.

    Raises:
        ConfigurationError: the range, the table or the dataflow is not one that can be replayed so; nothing was changed.
        NeedsDecision: the replay there is being dropped, or is promoted.
    """
    planned, known = _checked(platform, dataflow, asked)
    log = platform.log
    aside = known or begin(log, _new(platform, dataflow, asked, planned, now))
    _check_same(aside, asked)
    before = log.newest(aside.log)
    left = remaining_chunks(log, aside)
    begun(len(planned) - len(left), len(planned))
    if is_marked(log, aside, "complete"):
        outcome = Outcome(dataflow.name, how.get("run_id"), {}, before.number if before else 0, newest=before)
        return Replayed(aside, outcome, _reports(aside, (), outcome, None))
    at_work = list(left[:1])
    outcome = _loop(platform, aside.of(dataflow), aside, now, observer, at_work.append, how).run()
    reports = _reports(aside, left, outcome, at_work[-1] if at_work else None)
    if outcome.error is None:
        mark(log, aside, "complete")
        begun(len(planned), len(planned))
    else:
        _name_chunk(outcome.error, reports, aside)
    return Replayed(aside, outcome, reports)


def _checked(platform: Platform, dataflow: Dataflow, asked: Asked) -> tuple[tuple[Chunk, ...], Aside | None]:
    """Return the chunks that are asked for, and the replay that is there."""
    _check_kind(platform, dataflow)
    column = chunk_column(asked.column, dataflow.column.columns)
    planned = chunks(column, asked.start, asked.end, asked.interval)
    _check_name(platform, dataflow, asked.table)
    log = platform.log
    known = next((each for each in stored_asides(log, dataflow.name) if each.table == asked.table), None)
    if known is None:
        if find_format(platform.lake.child(asked.table)) is not None:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected no table {asked.table}, or one of a replay of this dataflow, found another. Use another name"
            )
        return planned, None
    _check_same(known, asked)
    if is_marked(log, known, "dropping"):
        raise NeedsDecision(
            f"dataflow {dataflow.name}: a drop of {asked.table} was begun. End it, and replay again",
            code="replay_dropping",
            choices=(drop_command(known),),
        )
    if promoted_entry(log, known, log.newest(dataflow.name)) is not None:
        raise NeedsDecision(
            f"dataflow {dataflow.name}: the replay into {asked.table} is promoted; only its table and its log are left. Remove them",
            code="replay_promoted",
            choices=(drop_command(known),),
        )
    return planned, known


def _check_kind(platform: Platform, dataflow: Dataflow) -> None:
    name, target = dataflow.name, dataflow.target
    if dataflow.kind != "column":
        raise ConfigurationError(
            f"dataflow {name}: expected a watermark of type column, found {dataflow.kind}: others cannot be replayed aside yet"
        )
    if target.load == "scd2":
        raise ConfigurationError(
            f"dataflow {name}: expected a load that replaces rows of a range, found scd2: versions of a key follow each other over all ranges"
        )
    if not isinstance(platform.table(dataflow), CanStandAside):
        raise ConfigurationError(
            f"dataflow {name}: expected a target of format delta or iceberg, found {target.format}: readers would see a part of a promote"
        )


def _check_name(platform: Platform, dataflow: Dataflow, table: str) -> None:
    parts = table.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") for part in parts
    ):
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --into: expected <layer>/<name> in the lake, letters, digits and underscores, found {table!r}"
        )
    made_from = table.removesuffix("_bad_records")
    if {table, made_from} & platform.lineage.tables:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --into: expected a table that no dataflow loads or reads, found {table}"
        )
    for other in platform.lineage.names:
        if other != dataflow.name and table in {each.table for each in stored_asides(platform.log, other)}:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --into: expected a table of its own, found {table}, which a replay of {other} holds"
            )


def _check_same(aside: Aside, asked: Asked) -> None:
    if aside.request != asked.request:
        raise ConfigurationError(
            f"dataflow {aside.dataflow}: table {aside.table} holds another replay, of {aside.words}. Promote or drop it, or use another table",
            choices=(drop_command(aside),),
        )


def _new(
    platform: Platform, dataflow: Dataflow, asked: Asked, planned: Sequence[Chunk], now: datetime
) -> Aside:
    """Return a replay that begins now. Its bounds are values of the column, which the source tells."""
    column = planned[0].column
    kind = platform.column_kind(dataflow)
    seen = kind.above.observe(dataflow.column.columns, now)
    known = kind.with_kinds(seen)
    fitted = fitted_chunks(planned, known.get(column))
    newest = platform.log.newest(dataflow.name)
    return Aside(
        id=new_id(),
        dataflow=dataflow.name,
        table=asked.table,
        request=asked.request,
        column=column,
        interval=asked.interval,
        range=serialise({"lower": fitted[0].lower, "upper": fitted[-1].upper}),
        number=newest.number if newest else 0,
        watermark=newest.watermark if newest else "{}",
        fingerprint=dataflow.fingerprint,
        time=utc_now(),
    )


def _loop(
    platform: Platform,
    standing: Dataflow,
    aside: Aside,
    now: datetime,
    observer: Observer,
    looked: Callable[[Chunk], None],
    how: dict[str, Any],
) -> Loop[Any]:
    watermark = standing.watermark.model_copy(update={"max_slices": _ALL})
    loop = platform.loop(standing.model_copy(update={"watermark": watermark}), now, observer=observer, **how)
    kind = loop.context.kind
    assert isinstance(kind, ColumnKind)
    replayed = ReplayedColumns(kind.dataflow, kind.rows, kind.above, aside.chunks, looked)
    return Loop(replace(loop.context, kind=replayed), loop.patience, loop.history)


def _slice(chunk: Chunk, state: ColumnState, version: int | str | None) -> ColumnSlice:
    range_ = Range(chunk.column, chunk.lower, chunk.upper, lower_inclusive=True, upper_inclusive=False)
    return ColumnSlice(state.watermark(), (range_,), version=version, why="replay")


def _reports(
    aside: Aside, left: Sequence[Chunk], outcome: Outcome, at_work: Chunk | None
) -> list[dict[str, Any]]:
    """What became of each chunk: up to the one that failed they are loaded, or hold no row."""
    rows = {
        deserialise(done.entry.upper)[aside.column]: done.rows
        for done in outcome.committed
        if done.entry.upper is not None
    }
    failed, reports = False, []
    for chunk in aside.chunks:
        status, error = "nothing", None
        if chunk not in left:
            status = "skipped"
        elif chunk.upper in rows:
            status = "committed"
        elif failed:
            status = "pending"
        elif outcome.error is not None and chunk == at_work:
            failed, status, error = True, "failed", outcome.error.message
        reports.append({**_bounds(chunk), "status": status, "rows": rows.get(chunk.upper, 0), "error": error})
    return reports


def _name_chunk(error: StrandlineError, reports: Sequence[dict[str, Any]], aside: Aside) -> None:
    """Have an error say which chunk has failed, and call the dataflow by its own name."""
    said = error.message.replace(aside.log, aside.dataflow)
    number = next((index for index, report in enumerate(reports) if report["status"] == "failed"), None)
    if number is not None:
        said = f"chunk {_words(aside.chunks[number])} of the replay into {aside.table}: {said}"
    error.args = (said,)
    for report in reports:
        report["error"] = said if report["status"] == "failed" else None


def _bounds(chunk: Chunk) -> dict[str, Any]:
    bounds: dict[str, Any] = json.loads(serialise({"lower": chunk.lower, "upper": chunk.upper}))
    return bounds


def _words(chunk: Chunk) -> str:
    return f"{shown(chunk.lower)} to {shown(chunk.upper)}"
