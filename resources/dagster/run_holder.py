"""The process that works on a run, in a tag: a killed run stays "started" for ever in Dagster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from resources.dagster.run_tags import HIDDEN
from resources.watermarks.entry import Holder
from resources.watermarks.holder import current_holder

if TYPE_CHECKING:
    from dagster import DagsterInstance, DagsterRun

    from resources.dagster.names import DagsterDataflowNames

HOLDER_TAG = f"{HIDDEN}holder"
"""The hidden tag of every run that started to load: its process."""


def mark_run(instance: DagsterInstance, run_id: str, names: DagsterDataflowNames) -> None:
    """Tag a run with its dataflow, its project's name, and the process that works on it.

    With this tag a sensor detects that the process is gone.
    """
    instance.add_run_tags(run_id, {**names.run_tags, HOLDER_TAG: current_holder(run_id).model_dump_json()})


def holder_of(run: DagsterRun) -> Holder | None:
    """Return the process that works on a run; None before one does.

    A retry has the tags of the run before, whose process is not its own.
    """
    tag = run.tags.get(HOLDER_TAG)
    holder = Holder.model_validate_json(tag) if tag else None
    return holder if holder is not None and holder.run_id == run.run_id else None
