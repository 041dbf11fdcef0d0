"""Find the place of each type of source, and probe it.

Only this module distinguishes source types. Every command imports it, so slow imports stand where they are
used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar

from partitions.dataflow import Dataflow
from partitions.path.listing_positions import FromBeginning
from partitions.plan import pluralize
from partitions.sources import ApiSource, FilesSource, JdbcSource, PythonSource, TableSource
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.connections.source_connection import SourceConnection
from resources.listing import Budget, Listing, list_above
from resources.user_functions import FunctionConnection, UserCode, user_function

PROBE_BUDGET = Budget(pages=5, seconds=20.0)
"""How much a probe of files may list."""

ConnectionT = TypeVar("ConnectionT")
SourceT = TypeVar("SourceT", FilesSource, JdbcSource, ApiSource, PythonSource, TableSource)


class Connections(Protocol):
    """The parts of a project that say where a source is."""

    @property
    def folder(self) -> Path:
        """Return the project's folder, the base of relative paths."""
        ...

    @property
    def lake(self) -> Place:
        """Return the place of the tables."""
        ...

    def place(self, path: str, connection: str | None) -> Place:
        """Return a folder or a bucket."""
        ...

    def connection(self, name: str, connection_type: type[ConnectionT]) -> ConnectionT:
        """Return a connection of one type; raise ConfigurationError for another."""
        ...


class SourceProfile(ABC, Generic[SourceT]):
    """One type of source. Its definition (``partitions.sources``) says which connection it takes."""

    @abstractmethod
    def place(self, project: Connections, dataflow: Dataflow, source: SourceT) -> SourceConnection:
        """Return the place of the rows.

        Raises:
            ConfigurationError: if the connection cannot be used.
        """

    @abstractmethod
    def probe(self, project: Connections, dataflow: Dataflow, source: SourceT) -> str:
        """Return the source's answer to a short probe, as a line for people. Starts no Spark.

        Raises:
            StrandlineError: if it does not answer, or not as the definition expects.
        """


class _Files(SourceProfile[FilesSource]):
    """A folder or a bucket."""

    def place(self, project: Connections, dataflow: Dataflow, source: FilesSource) -> Place:
        """Return the root of the files."""
        return project.place(dataflow.root_of(source), source.connection)

    def probe(self, project: Connections, dataflow: Dataflow, source: FilesSource) -> str:
        """List files from the beginning, and return their number as a line."""
        root = self.place(project, dataflow, source)
        return (
            f"{root}: readable, "
            f"{file_count(list_above(root, FromBeginning(), source.endings, budget=PROBE_BUDGET))}"
        )


class _Jdbc(SourceProfile[JdbcSource]):
    """A database."""

    def place(self, project: Connections, _: Dataflow, source: JdbcSource) -> JdbcConnection:
        """Return the connection of the database."""
        return project.connection(source.connection, JdbcConnection)

    def probe(self, project: Connections, dataflow: Dataflow, source: JdbcSource) -> str:
        """Ask the database for the columns, and return them as a line."""
        from resources.sources.availability import look_at_database

        return look_at_database(self.place(project, dataflow, source), source)


class _Api(SourceProfile[ApiSource]):
    """An HTTP API."""

    def place(self, project: Connections, _: Dataflow, source: ApiSource) -> ApiConnection:
        """Return the connection of the API."""
        return project.connection(source.connection, ApiConnection)

    def probe(self, project: Connections, dataflow: Dataflow, source: ApiSource) -> str:
        """Ask for the first page, unless it needs a window or a unit; return its records as a line."""
        from resources.sources.availability import look_at_api

        return look_at_api(self.place(project, dataflow, source), source)


class _Python(SourceProfile[PythonSource]):
    """A function of the user."""

    def place(self, project: Connections, _: Dataflow, source: PythonSource) -> UserCode:
        """Return the project's folder, and the settings of the connection."""
        connection = (
            FunctionConnection()
            if source.connection is None
            else project.connection(source.connection, FunctionConnection)
        )
        return UserCode(project.folder, connection.settings)

    def probe(self, project: Connections, dataflow: Dataflow, source: PythonSource) -> str:
        """Import the functions without a call, which may cost anything; return a line that says so."""
        folder = self.place(project, dataflow, source).folder
        for key, name in (("function", source.function), ("highest", source.highest)):
            if name is not None:
                user_function(f"source.{key}", name, folder)
        return f"function {source.function}: imported"


class _Table(SourceProfile[TableSource]):
    """A table of the lake."""

    def place(self, project: Connections, _: Dataflow, source: TableSource) -> Place:
        """Return where the table lies."""
        return project.lake.child(source.table)

    def probe(self, project: Connections, dataflow: Dataflow, source: TableSource) -> str:
        """Read the columns of the table's newest version, and return them as a line."""
        from resources.sources.availability import look_at_table

        return look_at_table(self.place(project, dataflow, source), source)


PROFILES: Mapping[str, SourceProfile[Any]] = MappingProxyType(
    {"files": _Files(), "jdbc": _Jdbc(), "api": _Api(), "python": _Python(), "table": _Table()}
)
"""The profiles by ``source.type`` of a dataflow."""


def place_of(project: Connections, dataflow: Dataflow) -> SourceConnection:
    """Return the place of a dataflow's rows: a root of files, a table, a database, an API or user code."""
    return PROFILES[dataflow.source.type].place(project, dataflow, dataflow.source)


def probe_source(project: Connections, dataflow: Dataflow) -> str:
    """Return the answer of a dataflow's source to a short probe."""
    return PROFILES[dataflow.source.type].probe(project, dataflow, dataflow.source)


def file_count(listing: Listing) -> str:
    """Return the number of files in a listing, in words; with "or more" if it was cut short."""
    return f"{pluralize(len(listing.listed.files), 'file')}{'' if listing.complete else ' or more'}"
