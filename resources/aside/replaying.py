"""Replay into a table aside: chunk by chunk, by the loop that loads everything, under a log and a hold of its own (docs/replay.md, Aside)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from partitions.column.slices import ColumnSlice
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.plan import Plan, Skip, counted
from partitions.replay.chunks import Chunk
from partitions.request import Replay
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
from resources.loop.outcome import Observer
from resources.platform import Platform
from resources.replay.asked import Asked, asked_chunks
from resources.replay.columns import typed_range
from resources.replay.reading import Piece, Replayed, Told, read_chunks
from resources.tables import find_format
from resources.tables.table import CanStandAside
from resources.watermarks.entry import new_id, utc_now


def plan_aside(platform: Platform, dataflow: Dataflow, asked: Asked, now: datetime) -> Plan[Any]:
    """Return what a replay would read, one slice a chunk. Opens no source, changes nothing.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_aside`.
    """
    planned, known = check_aside(platform, dataflow, asked)
    left = remaining_chunks(platform.log, known) if known else planned
    done = (known.chunks if known else planned)[: len(planned) - len(left)]
    slices = tuple(ColumnSlice({}, (chunk.range,), why="replay") for chunk in left)
    skips = tuple(Skip(chunk.span, "done before") for chunk in done)
    why = f"{counted(len(left), 'chunk')} of {len(planned)} to replay into {asked.table}"
    return Plan(dataflow.name, dataflow.kind, 0, now, why, slices, skips)


def replay_aside(
    platform: Platform,
    dataflow: Dataflow,
    asked: Asked,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    told: Told = lambda reports: None,
    **how: Any,
) -> Replayed:
    """Read a range again into a table aside, or go on where the same replay has stopped.

    Args:
        platform: the resources.
        dataflow: whose rows they are.
        asked: the range, and the table.
        now: the clock, aware.
        observer: hears of every step.
        told: hears what has become of all chunks, after each.
        how: run_id, job_id, and attributes of :class:`resources.loop.waiting.Patience`, with a run that loads the same replay.

    Raises:
        ConfigurationError: the range, the table or the dataflow is not one that can be replayed so; nothing was changed.
        NeedsDecision: the replay there is being dropped, or is promoted.
    """
    planned, known = check_aside(platform, dataflow, asked)
    log = platform.log
    aside = known or begin(log, _new(platform, dataflow, asked, planned, now))
    _check_same(aside, asked)
    loop = platform.loop(aside.of(dataflow), now, observer=observer, **how)
    left = remaining_chunks(log, aside)
    pieces = [
        Piece(chunk.lower, chunk.upper, partial(Replay, chunk), done=chunk not in left)
        for chunk in aside.chunks
    ]
    done = read_chunks(loop, pieces, told)
    outcome = done.outcome
    if outcome.error is None:
        mark(log, aside, "complete")
    else:  # by its own name, not that of the log
        outcome.error.args = (outcome.error.message.replace(aside.log, dataflow.name),)
        for report in done.chunks:
            report["error"] = report["error"] and outcome.error.message
    return done


def check_aside(
    platform: Platform, dataflow: Dataflow, asked: Asked
) -> tuple[tuple[Chunk, ...], Aside | None]:
    """Return the chunks that are asked for, and the replay that is there. Opens no source, changes nothing.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_aside`.
    """
    assert asked.table is not None
    if asked.save_watermark:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected --into or --save-watermark, found both: a replay aside leaves the watermark as it is"
        )
    if dataflow.kind != "column":
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a watermark of type column, found {dataflow.kind}: others are replayed in place, without --into"
        )
    planned = asked_chunks(dataflow, asked)
    _check_kind(platform, dataflow)
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
    assert asked.table is not None
    newest = platform.log.newest(dataflow.name)
    return Aside(
        id=new_id(),
        dataflow=dataflow.name,
        table=asked.table,
        request=asked.request,
        column=planned[0].column,
        interval=asked.interval,
        range=typed_range(platform, dataflow, asked, now),
        number=newest.number if newest else 0,
        watermark=newest.watermark if newest else "{}",
        fingerprint=dataflow.fingerprint,
        time=utc_now(),
    )
