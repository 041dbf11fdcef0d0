"""The Spark engines of a project: which places their sessions reach, and which jars they start with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, SourceError
from partitions.readings import dataflows_by_source
from partitions.rules.definition import referenced_tables
from resources.connections.places import Place
from resources.connections.source_connection import SourceConnection
from resources.sources.files.formats.registry import packages_of
from resources.spark.engine import SparkEngine
from resources.tables.registry import PACKAGES, find_format


@dataclass(frozen=True)
class Engines:
    """Makes the engines of a process.

    Attributes:
        spark: makes sessions.
        lake: where tables lie.
        source_of: returns where a dataflow's source is.
        loads: all dataflows that this process loads; Spark is started with the jars of all of them.
        table_format: the format of new tables whose maker names none.
    """

    spark: SparkEngine
    lake: Place
    source_of: Callable[[Dataflow], SourceConnection]
    loads: tuple[Dataflow, ...]
    table_format: str

    def of(self, dataflows: Iterable[Dataflow]) -> SparkEngine:
        """Return an engine whose sessions reach the lake and the sources of these dataflows.

        Its Spark has the jars of all dataflows that this process loads.
        """
        read_or_loaded = list(dataflows)
        readers = chain.from_iterable(map(self._packages_of, read_or_loaded))
        read = chain.from_iterable(map(self.read_by, read_or_loaded))
        engine = self.spark.with_places((self.lake, *read), readers).sharing(self._jars)
        return engine.isolated() if any(map(_runs_functions, read_or_loaded)) else engine

    def read_by(self, dataflow: Dataflow) -> list[SourceConnection]:
        """Return the places of a dataflow's sources, in their order."""
        return [self.source_of(reading) for reading in dataflows_by_source(dataflow)]

    def reading(self, place: Place) -> SparkEngine:
        """Return an engine whose sessions read a table of the lake."""
        return self.spark.with_places([self.lake], _packages_at(place)).sharing(self._jars)

    def of_format(self, table_format: str) -> SparkEngine:
        """Return an engine whose sessions write tables of a format into the lake."""
        return self.spark.with_places([self.lake], PACKAGES.get(table_format, ())).sharing(self._jars)

    def _packages_of(self, dataflow: Dataflow) -> tuple[str, ...]:
        """Return the packages that Spark needs for the dataflow's files, its table, and its input tables."""
        read = [
            self.lake.child(table)
            for table in (*dataflow.inputs.values(), *referenced_tables(dataflow.rules))
        ]
        for reading in dataflows_by_source(dataflow):
            if reading.source.lake_table is not None:
                place = self.source_of(reading)
                read += [place] if isinstance(place, Place) else []
        return (*_packages_by_definition(dataflow), *chain.from_iterable(map(_packages_at, read)))

    def of_loads(self) -> SparkEngine:
        """Return an engine whose sessions reach the lake and the sources of what this process loads.

        An unknown source, for example because of an unset variable, is left out.
        """
        places: list[SourceConnection] = []
        for dataflow in self.loads:
            with suppress(ConfigurationError):
                places += self.read_by(dataflow)
        return self.spark.with_places((self.lake, *places)).sharing(self._jars)

    @cached_property
    def _jars(self) -> tuple[str, ...]:
        """Return the jars of the dataflows that this process loads.

        An unknown source, for example because of an unset variable, needs none: its run fails.
        """
        # Assets of the user's own are stored in the default format.
        jars: dict[str, None] = dict.fromkeys(PACKAGES.get(self.table_format, ()))
        for dataflow in self.loads:
            jars |= dict.fromkeys(_packages_by_definition(dataflow))
            with suppress(ConfigurationError):
                engine = self.spark.with_places(self.read_by(dataflow), self._packages_of(dataflow))
                jars |= dict.fromkeys(engine.packages)
        return tuple(jars)


def _runs_functions(dataflow: Dataflow) -> bool:
    """Return whether a user's functions run in Spark, or may."""
    return dataflow.transform is not None or dataflow.streams_with_spark


def _packages_by_definition(dataflow: Dataflow) -> tuple[str, ...]:
    """Return the packages that Spark needs for the dataflow's files and for its table."""
    readers = chain.from_iterable(map(packages_of, dataflows_by_source(dataflow)))
    return (*readers, *PACKAGES.get(dataflow.target.format, ()))


def _packages_at(place: Place) -> tuple[str, ...]:
    """Return the packages that Spark needs to read the table at a place; none if the store fails.

    Reading the table later raises the error.
    """
    with suppress(SourceError):
        return PACKAGES.get(find_format(place) or "", ())
    return ()
