"""Read the state from a table's own commits when the watermark log is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from resources.tables.contract.table import Table


@dataclass(frozen=True)
class AdoptableState:
    """The state that a table's commits record.

    Attributes:
        state: sentinel JSON text of the watermark of the newest commit up to which no row of Strandline's
            was removed; None if there is no such commit.
        app_id: the dataflow's id in the table's tags; None if no commit records it.
        number: number of that commit.
        owner: id of the intent that made that commit.
        beyond: whether the table may hold Strandline's rows that the state does not cover.
        rewound: whether the table holds rows above the state that the next load of them deletes, as the
            intent's entry records too.
    """

    state: str | None
    app_id: str | None
    number: int = 0
    owner: str | None = None
    beyond: bool = False
    rewound: bool = False


@runtime_checkable
class CanAdopt(Protocol):
    """A format whose commits record the state that they were written with.

    Without it a lost state is derived from rows alone, and later loads use a new app id. Then a write that
    a dead run left under the old id is not fenced.
    """

    def adoptable_state(self, app_id: str | None = None) -> AdoptableState | None:
        """Return the state of the newest commit that the table's rows still include.

        The state of a commit says that all rows up to it are in the table. It counts only if the commit
        before it is part of the table's history, too: a RESTORE, another writer's overwrite or a removed
        table in between breaks the chain.

        Args:
            app_id: dataflow whose commits count; None: the dataflow of the newest tagged commit.

        Returns:
            None if the table has no commit of Strandline and no rows were removed.

        Raises:
            NeedsDecision: code ``state_object_missing``: the object with the watermark is missing or holds
                another state.
        """
        ...


def adopted_state(table: Table, app_id: str | None = None) -> AdoptableState | None:
    """Return the state that a table's commits record, or None if its format records none.

    See :meth:`CanAdopt.adoptable_state`.
    """
    return table.adoptable_state(app_id) if isinstance(table, CanAdopt) else None
