"""How often a dataflow's table gets maintenance, as a user declares it (docs/how-to/maintenance.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from partitions.model import Duration, Model

Task = Literal["optimize", "vacuum", "retention"]
OPTIMIZE: Task = "optimize"
VACUUM: Task = "vacuum"
RETENTION: Task = "retention"
RETENTION_PERIOD = timedelta(days=1)
"""How often rows expire: the bound of a retention moves once a day."""

_SHORTEST = timedelta(hours=1)


def _not_too_short(period: timedelta) -> timedelta:
    if period < _SHORTEST:
        raise ValueError("expected PT1H or longer")
    return period


_Period = Annotated[Duration, AfterValidator(_not_too_short)]


KEEP_FOR_DOWNSTREAM = timedelta(days=30)


class Maintenance(Model):
    """The period of each maintenance task.

    Attributes:
        optimize: joins small files.
        vacuum: deletes files that no version within the table's retention needs.
        keep_for_downstream: how long vacuum waits at most for dataflows of the project that read the table
            by its commits, and have not read those whose files it would delete.
    """

    optimize: _Period | None = None
    vacuum: _Period | None = None
    keep_for_downstream: _Period = KEEP_FOR_DOWNSTREAM

    @model_validator(mode="after")
    def _names_a_task(self) -> Maintenance:
        if not self.periods():
            raise ValueError("expected optimize, vacuum or both, such as optimize: P1D")
        return self

    def periods(self) -> Mapping[Task, timedelta]:
        """Return the tasks with their periods, in the order in which they run."""
        by_task: dict[Task, timedelta | None] = {VACUUM: self.vacuum, OPTIMIZE: self.optimize}
        return {task: period for task, period in by_task.items() if period is not None}
