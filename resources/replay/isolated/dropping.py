"""Drop: remove an isolated replay's table and log; the live dataflow is not affected.

See docs/reference/replay.md.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from resources.loop.holder_wait import abandoned_intent
from resources.loop.intents import held_error
from resources.loop.lease import is_held
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.replay.isolated.removing import has_table, remove_replay
from resources.replay.isolated.standing import IsolatedReplay, find_replay, mark
from resources.tables.registry import find_table


def preview_drop(platform: Opener, dataflow: Dataflow, table: str) -> tuple[str, ...]:
    """Describe a drop in sentences. Changes nothing, starts no Spark.

    Raises:
        ConfigurationError: there is no such replay.
    """
    isolated = find_replay(platform.log, dataflow.name, table)
    if has_table(platform, isolated):
        rows = find_table(platform.lake.child(isolated.table)).contents.count_rows()
        removed = f"table {table} is removed, with {pluralize(rows, 'row')}, and so is its log"
    else:
        removed = f"the log of the replay is removed; it has no table of its own, so what is at {table} stays"
    return removed, f"{dataflow.table} and its state stay as they are"


def drop_replay(
    platform: Opener,
    dataflow: Dataflow,
    table: str,
    reason: str,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    **patience: Any,
) -> IsolatedReplay:
    """Remove a replay, or finish the drop of a process that died.

    Args:
        platform: the resources.
        dataflow: the live dataflow.
        table: the replay's table.
        reason: the operator's reason; no log keeps it.
        now: the clock, aware.
        observer: is called at each step.
        patience: attributes of :class:`resources.loop.holder_wait.HolderPolicy`, for a run that loads the
            replay.

    Raises:
        ConfigurationError: there is no such replay, or no reason.
        DataflowHeld: a process loads the replay, or promotes it.
        TargetError: a part of the table could not be removed; the same command removes the rest.
    """
    if not reason.strip():
        raise ConfigurationError(f"dataflow {dataflow.name}: expected a reason, found none")
    log = platform.log
    isolated = find_replay(log, dataflow.name, table)
    replay_loop = platform.loop(isolated.loading_dataflow(dataflow), now, **patience)
    abandoned_intent(replay_loop.context, log.newest(isolated.log), replay_loop.holder_policy)
    live_loop = platform.loop(dataflow, now, **patience)
    promote_intent = log.open_intent(dataflow.name, log.newest(dataflow.name))
    if (
        promote_intent is not None
        and promote_intent.id == isolated.intent_id(promote_intent.number)
        and is_held(
            live_loop.context.log,
            promote_intent,
            live_loop.holder_policy.run_is_live,
            live_loop.holder_policy.wait,
        )
    ):
        raise held_error(promote_intent)
    mark(log, isolated, "dropping")
    remove_replay(platform, dataflow, isolated, observer)
    return isolated
