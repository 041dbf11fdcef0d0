"""A table that several dataflows load, as one of them sees it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from partitions.errors import ConfigurationError
from resources.tables.contract.table import Table


@runtime_checkable
class CanBeShared(Protocol):
    """A format whose tables several dataflows may load.

    See docs/reference/loads.md, Tables that dataflows share.
    """

    def share_of(self, dataflow: str) -> Table:
        """Return the table as one of its dataflows sees it.

        That view deletes, updates and counts only rows whose ``_dataflow`` is this dataflow, and adopts
        states of its commits only. It accepts a table that another dataflow created.
        """
        ...


def share_of(table: Table, dataflow: str) -> Table:
    """Return a dataflow's share of a table; see :meth:`CanBeShared.share_of`.

    Raises:
        ConfigurationError: its format cannot be shared.
    """
    if isinstance(table, CanBeShared):
        return table.share_of(dataflow)
    raise ConfigurationError(
        f"dataflow {dataflow}: expected a table of a format that dataflows can share, found one of "
        "another format. Remove target.shared and give the dataflow its own table"
    )
