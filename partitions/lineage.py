"""Find which dataflows read whose tables: the order of runs, and cycles, which cannot run.

Several dataflows may share a table, so a table may have several makers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from itertools import chain
from typing import NamedTuple, Protocol

from partitions.inputs import Input


class TableMaker(Protocol):
    """A dataflow that makes tables; its file may have errors, so only the names are certain."""

    @property
    def name(self) -> str:
        """Its own name."""

    @property
    def asset(self) -> str:
        """The name of its table's asset, ``<layer>/<name>``."""

    @property
    def table(self) -> str:
        """The table's name in the lake, ``<layer>/<name>``."""

    @property
    def tables_beside(self) -> Mapping[str, str]:
        """The tables that it makes beside its own, by asset."""

    @property
    def tables_read(self) -> Sequence[Input]:
        """The tables of the lake that it reads."""


class Upstream(NamedTuple):
    """A table of the lake that a dataflow reads, and the name of a dataflow that makes it."""

    input: Input
    maker: str


class Lineage:
    """The tables that the dataflows of a project read and write."""

    def __init__(self, flows: Iterable[TableMaker] = ()) -> None:
        """Index what the dataflows read and write."""
        flows_by_name = self._flows = {flow.name: flow for flow in flows}
        self._beside = {
            table: asset for flow in flows_by_name.values() for asset, table in flow.tables_beside.items()
        }
        self._table_of_asset = {flow.asset: flow.table for flow in flows_by_name.values()}
        self._table_of_asset |= {asset: table for table, asset in self._beside.items()}
        self._makers: dict[str, list[TableMaker]] = {}
        for flow in flows_by_name.values():
            for table in (flow.table, *flow.tables_beside.values()):
                self._makers.setdefault(table, []).append(flow)
        self._read = {
            flow.name: {self._table(table) for table in flow.tables_read} for flow in flows_by_name.values()
        }
        self._tables = frozenset((*self._makers, *chain.from_iterable(self._read.values())))
        self._upstream = {
            flow.name: tuple(
                Upstream(table, maker.name)
                for table in flow.tables_read
                for maker in self.makers(self._table(table))
            )
            for flow in flows_by_name.values()
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the dataflows."""
        return tuple(self._upstream)

    @property
    def tables(self) -> frozenset[str]:
        """All tables that dataflows write or read."""
        return self._tables

    def makers(self, table: str) -> Sequence[TableMaker]:
        """Return the dataflows that write a table."""
        return self._makers.get(table, ())

    def table_of(self, asset: str) -> str:
        """Return the table of an asset; it differs from the asset's name only if a dataflow says so."""
        return self._table_of_asset.get(asset, asset)

    def upstream_assets(self, flow: TableMaker) -> tuple[str, ...]:
        """Return the assets of the tables that a dataflow reads, without duplicates.

        A table that no dataflow makes is its own asset, unless a dataflow's asset has that name for
        another table.
        """
        assets: dict[str, None] = {}
        for table_read in flow.tables_read:
            table = self._table(table_read)
            makers = self.makers(table)
            assets |= dict.fromkeys(self._beside.get(table, maker.asset) for maker in makers)
            if not makers and table not in self._table_of_asset:
                assets[table] = None
        return tuple(assets)

    def upstream_tables(self, flow: TableMaker) -> dict[str, tuple[str, ...]]:
        """Return the tables that a dataflow reads, each with its makers' names, if it has any."""
        tables = dict.fromkeys(self._table(table_read) for table_read in flow.tables_read)
        return {table: tuple(maker.name for maker in self.makers(table)) for table in tables}

    def readers_of(self, table: str) -> tuple[str, ...]:
        """Return the names of the dataflows that read a table, whether or not a dataflow makes it."""
        return tuple(reader.name for reader in self.readers(table))

    def readers(self, table: str) -> tuple[TableMaker, ...]:
        """Return the dataflows that read a table, whether or not a dataflow makes it."""
        return tuple(self._flows[name] for name, tables in self._read.items() if table in tables)

    def upstream_dataflows(self, name: str) -> tuple[str, ...]:
        """Return the dataflows whose tables a dataflow reads, without duplicates."""
        return tuple(dict.fromkeys(upstream.maker for upstream in self._upstream.get(name, ())))

    def all_upstream_dataflows(self, name: str) -> frozenset[str]:
        """Return all direct and indirect upstream dataflows."""
        return frozenset(self._reach(name) - {name})

    def in_order(self, names: Sequence[str]) -> list[str]:
        """Sort names so that each dataflow follows all its upstream ones; ties keep the order of ``names``.

        Raises:
            graphlib.CycleError: for a cycle; projects refuse them.
        """
        every = dict.fromkeys([*names, *self._upstream])
        ordered = TopologicalSorter({name: self.upstream_dataflows(name) for name in every}).static_order()
        return [name for name in ordered if name in set(names)]

    def circular(self, name: str) -> tuple[Upstream, ...]:
        """Return the inputs of a dataflow that lie on a cycle with it."""
        return tuple(upstream for upstream in self._upstream[name] if name in self._reach(upstream.maker))

    def _reach(self, name: str) -> set[str]:
        """Return a dataflow with all its direct and indirect upstream ones."""
        reached, waiting = {name}, [name]
        while waiting:
            new = set(self.upstream_dataflows(waiting.pop())) - reached
            reached |= new
            waiting += new
        return reached

    def _table(self, table_read: Input) -> str:
        return self.table_of(table_read.name) if table_read.is_asset else table_read.name
