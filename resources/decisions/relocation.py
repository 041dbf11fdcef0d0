"""The moved tables of a dataflow and their new addresses (docs/how-to/moving-and-restoring.md)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from partitions.dataflow import Dataflow
from partitions.table_names import side_tables
from resources.platform.stores import Stores
from resources.replay.isolated.standing import stored_replays
from resources.tables.contract.relocation import CanRelocate, Relocation
from resources.tables.registry import open_table


@dataclass(frozen=True)
class TableToRelocate:
    """A table whose log names another address.

    Attributes:
        name: ``<layer>/<name>``.
        table: the table.
        relocation: what its relocation does.
    """

    name: str
    table: CanRelocate
    relocation: Relocation


def moved_tables(platform: Stores, dataflow: Dataflow) -> Iterator[TableToRelocate]:
    """Yield the tables of a dataflow that were moved. Starts no Spark, changes nothing.

    Its own table comes first, then side tables, then tables of isolated replays.

    Raises:
        TargetError: a table was moved and cannot be relocated.
    """
    replays = (replay.table for replay in stored_replays(platform.log, dataflow.name))
    sides = (name for name, _ in side_tables(dataflow).values())
    for name in dict.fromkeys((dataflow.table, *sides, *replays)):
        table = open_table(dataflow.target.format, platform.lake.child(name))
        if isinstance(table, CanRelocate) and (relocation := table.plan_relocation()) is not None:
            yield TableToRelocate(name, table, relocation)
