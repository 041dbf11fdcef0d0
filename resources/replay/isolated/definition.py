"""The check that a dataflow's definition has not changed since its isolated replay began.

See docs/reference/replay.md.
"""

from __future__ import annotations

from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from resources.loop.guards.definition import definition_of
from resources.replay.isolated.standing import IsolatedReplay, drop_command, replay_command

_LAYOUT = ("partition_by",)
"""Keys of a definition that decide where rows lie, not which rows."""


def definition_of_rows(dataflow: Dataflow) -> dict[str, Any]:
    """Return the parts of a definition that decide the rows of a replay, such as source and keys."""
    return {key: value for key, value in definition_of(dataflow).items() if key not in _LAYOUT}


def check_same_definition(dataflow: Dataflow, isolated: IsolatedReplay) -> None:
    """Raise NeedsDecision ``definition_changed`` if the definition has changed since a replay began."""
    before, now = isolated.definition, definition_of_rows(dataflow)
    changed = sorted(key for key in {*before, *now} if before.get(key) != now.get(key))
    if changed:
        raise NeedsDecision(
            f"dataflow {dataflow.name}: expected the definition that the replay into {isolated.table} began with, found another ({', '.join(changed)}): its rows"
            " belong to the old definition. Drop it, and replay again; or restore the old definition",
            code="definition_changed",
            choices=(drop_command(isolated), replay_command(isolated)),
        )
