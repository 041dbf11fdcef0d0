"""Which dataflow reads the table of which: what runs before what, and cycles, in which nothing could.

A table may have several makers: the dataflows that share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import TopologicalSorter
from typing import NamedTuple, Protocol

from partitions.inputs import Input


class Maker(Protocol):
    """What makes a table: a dataflow, or one whose file has errors, of which only the names are known."""

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
        """By asset: the tables that it makes beside its own."""

    @property
    def tables_read(self) -> Sequence[Input]:
        """The tables of the lake that it reads."""


class Upstream(NamedTuple):
    """A table of the lake that a dataflow reads, and the name of the dataflow that makes it."""

    input: Input
    maker: str


class Lineage:
    """Of the dataflows of a project."""

    def __init__(self, flows: Iterable[Maker] = ()) -> None:
        """Look at what they read and write."""
        known = {flow.name: flow for flow in flows}
        self._beside = {
            table: asset for flow in known.values() for asset, table in flow.tables_beside.items()
        }
        self._table_of_asset = {flow.asset: flow.table for flow in known.values()}
        self._table_of_asset |= {asset: table for table, asset in self._beside.items()}
        self._makers: dict[str, list[Maker]] = {}
        for flow in known.values():
            for table in (flow.table, *flow.tables_beside.values()):
                self._makers.setdefault(table, []).append(flow)
        read = (self._table(given) for flow in known.values() for given in flow.tables_read)
        self._tables = frozenset((*self._makers, *read))
        self._upstream = {
            flow.name: tuple(
                Upstream(given, maker.name)
                for given in flow.tables_read
                for maker in self.makers(self._table(given))
            )
            for flow in known.values()
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The dataflows."""
        return tuple(self._upstream)

    @property
    def tables(self) -> frozenset[str]:
        """The tables that dataflows write or read, made by dataflows or not."""
        return self._tables

    def makers(self, table: str) -> Sequence[Maker]:
        """The dataflows that write a table."""
        return self._makers.get(table, ())

    def table_of(self, asset: str) -> str:
        """The table of an asset: a dataflow's may have another name, all others are named alike."""
        return self._table_of_asset.get(asset, asset)

    def upstream_assets(self, flow: Maker) -> tuple[str, ...]:
        """The assets of the tables that a dataflow reads, each once, made by dataflows or not.

        A table that is only named like the asset of a dataflow with another table has none.
        """
        assets: dict[str, None] = {}
        for given in flow.tables_read:
            table = self._table(given)
            makers = self.makers(table)
            assets |= dict.fromkeys(self._beside.get(table, maker.asset) for maker in makers)
            if not makers and table not in self._table_of_asset:
                assets[table] = None
        return tuple(assets)

    def upstream_tables(self, flow: Maker) -> dict[str, tuple[str, ...]]:
        """The tables that a dataflow reads, each with the names of the dataflows that make it; none: no dataflow does."""
        tables = dict.fromkeys(self._table(given) for given in flow.tables_read)
        return {table: tuple(maker.name for maker in self.makers(table)) for table in tables}

    def readers_of(self, table: str) -> tuple[str, ...]:
        """The dataflows that read a table, each once."""
        return tuple(
            name
            for name, upstream in self._upstream.items()
            if any(self._table(each.input) == table for each in upstream)
        )

    def upstream_dataflows(self, name: str) -> tuple[str, ...]:
        """The dataflows whose tables a dataflow reads, each once."""
        return tuple(dict.fromkeys(each.maker for each in self._upstream.get(name, ())))

    def all_upstream_dataflows(self, name: str) -> frozenset[str]:
        """The dataflows whose rows can come into a dataflow, through others, too."""
        return frozenset(self._reach(name) - {name})

    def in_order(self, names: Sequence[str]) -> list[str]:
        """The same names: a dataflow after all whose rows can come into it, and as given if that leaves a choice.

        Raises:
            graphlib.CycleError: for a cycle; projects refuse them.
        """
        every = dict.fromkeys([*names, *self._upstream])
        ordered = TopologicalSorter({name: self.upstream_dataflows(name) for name in every}).static_order()
        return [name for name in ordered if name in set(names)]

    def circular(self, name: str) -> tuple[Upstream, ...]:
        """What a dataflow reads although its own rows can come into it."""
        return tuple(each for each in self._upstream[name] if name in self._reach(each.maker))

    def _reach(self, name: str) -> set[str]:
        """A dataflow with all whose rows can come into it."""
        reached, waiting = {name}, [name]
        while waiting:
            new = set(self.upstream_dataflows(waiting.pop())) - reached
            reached |= new
            waiting += new
        return reached

    def _table(self, given: Input) -> str:
        return self.table_of(given.name) if given.is_asset else given.name
