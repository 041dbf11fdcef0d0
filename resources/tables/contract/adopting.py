"""The state that a table's own commits tell, for a log that is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from resources.tables.contract.table import Table


@dataclass(frozen=True)
class Adopted:
    """What a table tells of the state that it was written with.

    Attributes:
        state: sentinel JSON text of the watermark of the newest commit whose rows, and those of all commits before it, are in the table;
            None if there is no such commit any more.
        app_id: the dataflow's id in the table's tags; None if no commit tells.
        number: that the commit carries.
        owner: the intent that it belongs to.
        beyond: whether the table may hold rows of Strandline's that the state does not cover.
        rewound: whether it holds rows above the state that are deleted when they are loaded again, as the intent's entry says, too.
    """

    state: str | None
    app_id: str | None
    number: int = 0
    owner: str | None = None
    beyond: bool = False
    rewound: bool = False


@runtime_checkable
class CanAdopt(Protocol):
    """A format whose commits tell the state that they were written with.

    Without it a state that was lost is found again from rows alone, and what is loaded then has a new app id: a write that a dead run
    left under the old one is not fenced.
    """

    def adopted(self, app_id: str | None = None) -> Adopted | None:
        """Return what Strandline's commits tell that the table's rows go back to.

        A commit's state says that all rows up to it are in the table. That holds as long as the commit that the state before was true of
        is one that the table's rows go back to: not if a RESTORE or another writer's overwrite came between the two, or the table was
        removed there.

        Args:
            app_id: whose commits count; None are those of whoever wrote the newest.

        Returns:
            None if there is no commit of Strandline, and no rows were removed either.

        Raises:
            NeedsDecision: code ``state_object_missing``: the watermark lies beside the table, and is gone or is another one.
        """
        ...


def adopted_state(table: Table, app_id: str | None = None) -> Adopted | None:
    """Return what a table tells, if its format can; see :meth:`CanAdopt.adopted`."""
    return table.adopted(app_id) if isinstance(table, CanAdopt) else None
