"""Drop: a replay aside is removed, its table and its log; the live flow notices nothing (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from resources.loop.holder_wait import abandoned_intent
from resources.loop.intents import held
from resources.loop.lease import is_held
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.replay.isolated.removing import has_table, remove
from resources.replay.isolated.standing import Aside, find_aside, mark
from resources.tables.registry import find_table


def preview_drop(platform: Opener, dataflow: Dataflow, table: str) -> tuple[str, ...]:
    """Return what a drop would do, in sentences. Changes nothing, starts no Spark.

    Raises:
        ConfigurationError: there is no such replay.
    """
    aside = find_aside(platform.log, dataflow.name, table)
    if has_table(platform, aside):
        rows = find_table(platform.lake.child(aside.table)).contents.count_rows()
        removed = f"table {table} is removed, with {pluralize(rows, 'row')}, and so is its log"
    else:
        removed = f"the log of the replay is removed; it has no table of its own, so what is at {table} stays"
    return removed, f"{dataflow.table} and its state stay as they are"


def drop(
    platform: Opener,
    dataflow: Dataflow,
    table: str,
    reason: str,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    **patience: Any,
) -> Aside:
    """Remove a replay, or end the drop of a process that died.

    Args:
        platform: the resources.
        dataflow: the live one.
        table: of the replay.
        reason: of the operator, for who runs it: no log stays.
        now: the clock, aware.
        observer: hears of every step.
        patience: attributes of :class:`resources.loop.holder_wait.Patience`, with a run that loads the replay.

    Raises:
        ConfigurationError: there is no such replay, or no reason.
        Held: a process loads the replay, or promotes it.
        TargetError: some of the table is still there; the same command removes the rest.
    """
    if not reason.strip():
        raise ConfigurationError(f"dataflow {dataflow.name}: expected a reason, found none")
    log = platform.log
    aside = find_aside(log, dataflow.name, table)
    standing = platform.loop(aside.of(dataflow), now, **patience)
    abandoned_intent(standing.context, log.newest(aside.log), standing.patience)
    live = platform.loop(dataflow, now, **patience)
    begun = log.open_intent(dataflow.name, log.newest(dataflow.name))
    if (
        begun is not None
        and begun.id == aside.intent_id(begun.number)
        and is_held(live.context.log, begun, live.patience.run_is_live, live.patience.wait)
    ):
        raise held(begun)
    mark(log, aside, "dropping")
    remove(platform, dataflow, aside, observer)
    return aside
