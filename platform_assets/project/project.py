"""A loaded project: its settings, its dataflows, and the errors in either."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.inputs import Input
from partitions.lineage import Lineage
from partitions.readings import dataflows_by_source, dataflows_of_units
from partitions.spelling import nearest_name
from platform_assets.installation import SETTINGS
from platform_assets.project.environments import settings_file
from platform_assets.project.errors import InvalidProject, ProjectError
from platform_assets.project.references import Reference, ReferencedText, Secrets
from platform_assets.project.secret_keys import is_secret
from platform_assets.project.settings import PlaceSettings, Settings, SparkSettings
from platform_assets.sources import place_of
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place, S3Connection
from resources.connections.postgres import Database, is_database
from resources.connections.source_connection import SourceConnection
from resources.connections.webhook import Webhook
from resources.hiding import without_secrets
from resources.open_lineage.sender import CatalogAddress

SPARK_REMOTE = "STRANDLINE_SPARK_REMOTE"
"""The environment variable with a Connect server's address; it wins over ``spark`` in the settings."""

ConnectionT = TypeVar("ConnectionT")


class DataflowNames(NamedTuple):
    """The names that a file, even with errors, stands for: a dataflow, its asset and its table."""

    name: str
    asset: str
    table: str
    tables_read: Sequence[Input] = ()
    tables_beside: Mapping[str, str] = {}


@dataclass(frozen=True)
class Project:
    """The contents of a project folder. Connections keep references to secrets, not the secrets.

    Attributes:
        folder: absolute; the base of relative paths in its files.
        dataflows: the valid dataflows, sorted by name.
        broken: the errors of each dataflow file with errors, by a name that Dagster accepts: the file's stem,
            or a form of it. Never a name of ``dataflows``.
        errors: all errors, sorted by file and line.
        env: the name of its environment; None: platform.yaml alone.
    """

    folder: Path
    dataflows: Mapping[str, Dataflow]
    broken: Mapping[str, Sequence[ProjectError]]
    errors: Sequence[ProjectError]
    env: str | None = None
    _settings: Settings | None = None
    _names_by_dataflow: Mapping[str, DataflowNames] = field(default_factory=dict)
    _setting_files: Mapping[str, str] = field(default_factory=dict)
    _secrets: Secrets = field(default_factory=lambda: Secrets(os.environ, Path()), repr=False)

    @property
    def settings(self) -> Settings:
        """Return the settings.

        Raises:
            InvalidProject: if platform.yaml has errors. With defaults instead, a run would load everything
                into another lake.
        """
        if self._settings is None:
            raise InvalidProject([error for error in self.errors if error.file.startswith("platform.")])
        return self._settings

    @property
    def valid_settings(self) -> bool:
        """Return whether platform.yaml has no errors."""
        return self._settings is not None

    def webhook(self, address: str | Reference) -> Webhook:
        """Return the webhook of a receiver of alerts, with its address looked up.

        Raises:
            ConfigurationError: its variable is not set, or the address has another form.
        """
        alerts = self.settings.alerts
        key = alerts.receivers[address] if alerts is not None else "alerts"
        return Webhook(str(self._resolve_setting(address, key)), key)

    def catalog(self) -> CatalogAddress | None:
        """Return the catalog of OpenLineage's events; None if its own variables say where it is.

        Raises:
            ConfigurationError: a variable of the environment is not set.
        """
        settings = self.settings.lineage.openlineage
        if settings is None or settings.url is None:
            return None
        key = "lineage.openlineage"
        api_key = self._resolve_setting(settings.api_key, f"{key}.api_key")
        return CatalogAddress(self._resolve_setting(settings.url, f"{key}.url"), api_key)

    @property
    def lineage(self) -> Lineage:
        """Return which dataflow reads which table; inputs of a broken dataflow are unknown."""
        broken = [self._names_by_dataflow[name] for name in self.broken if name in self._names_by_dataflow]
        return Lineage([*broken, *self.dataflows.values()])

    @property
    def state(self) -> Place | Database:
        """Return the place of the watermark log."""
        place = self.settings.place("state")
        return self.store(place.path, place.connection)

    def store(self, address: str, connection: str | None = None) -> Place | Database:
        """Return the place of a watermark log, by its address and its connection's name.

        It is a folder, a bucket or a database.

        Raises:
            ConfigurationError: if the address has another form, or the connection is not an object
            store's.
        """
        return Database.parse(address) if is_database(address) else self.place(address, connection)

    @property
    def lake(self) -> Place:
        """Return the place of the tables."""
        return replace(self._at(self.settings.place("lake")), catalog=self._catalog)

    @property
    def _catalog(self) -> JdbcConnection | RestCatalogServer | None:
        """Return the catalog of Iceberg tables; None if their folders are the catalog."""
        settings = self.settings.iceberg
        if settings.connection is None:
            return None
        if settings.catalog == "rest":
            return self.connection(settings.connection, RestCatalogServer)
        database = self.connection(settings.connection, JdbcConnection)
        if database.system != "postgresql":
            raise ConfigurationError(f"iceberg.connection: expected a PostgreSQL database, found {database}")
        return database

    def source_place(self, dataflow: Dataflow) -> SourceConnection:
        """Return the place of a dataflow's rows: a root of files, a table, a database, an API or user code."""
        return place_of(self, dataflow)

    @property
    def spark_settings(self) -> SparkSettings:
        """Return the address of Spark; ``STRANDLINE_SPARK_REMOTE`` wins over the settings.

        Raises:
            ConfigurationError: if that variable holds no ``sc://`` address.
        """
        settings, remote = self.settings.spark, self._secrets.variables.get(SPARK_REMOTE)
        if not remote:
            return settings
        if not remote.startswith("sc://"):
            raise ConfigurationError(f"{SPARK_REMOTE}: expected sc://host:port, found another form")
        return SparkSettings(remote=remote)

    def connection(self, name: str, connection_type: type[ConnectionT]) -> ConnectionT:
        """Return a connection with its secrets looked up.

        Raises:
            ConfigurationError: if the name is unknown, the connection is of another type, a variable is
                not set, or the URL has another form.
        """
        connection = self.open_connection(name)
        if not isinstance(connection, connection_type):
            raise ConfigurationError(
                f"connections.{name}: expected a connection of another type, found {self.settings.connections[name].type}"
            )
        if isinstance(connection, S3Connection):  # of the lake, as long as the process lives
            return replace(connection, look_up=partial(self.open_connection, name))  # type: ignore[return-value]  # it is of that type
        return connection

    def open_connection(self, name: str) -> Any:
        """Return a connection of any type, with its secrets as they are now.

        Raises:
            ConfigurationError: as :meth:`connection`.
        """
        settings = self.settings.connections.get(name)
        if settings is None:
            raise ConfigurationError(
                f"expected a connection of {SETTINGS}{f' or {settings_file(self.env)}' if self.env else ''}, found {name!r}"
            )
        fields = {
            key: self._resolve_setting(value, f"connections.{name}.{key}")
            for key, value in settings.address().items()
        }
        return settings.open(f"connections.{name}", fields)

    def _resolve_setting(self, value: Any, key: str) -> Any:
        """Return a setting with its references looked up, also inside mappings."""
        if isinstance(value, Mapping):
            return {name: self._resolve_setting(inner, f"{key}.{name}") for name, inner in value.items()}
        return (
            self._secrets.resolve(value, key, self.file_of(key))
            if isinstance(value, str | Reference)
            else value
        )

    def file_of(self, setting: str) -> str:
        """Return the file that a setting stands in, by its dotted key; platform.yaml if none has it."""
        while setting and setting not in self._setting_files:
            setting = setting.rpartition(".")[0]
        return self._setting_files.get(setting, SETTINGS)

    @property
    def unused_connections(self) -> list[str]:
        """The names of connections that neither state, lake and catalog nor a valid dataflow uses, sorted."""
        settings = self.settings
        used = {settings.place("state").connection, settings.place("lake").connection}
        used.add(settings.iceberg.connection)
        for dataflow in self.dataflows.values():
            for reading in (dataflow, *dataflows_by_source(dataflow), *dataflows_of_units(dataflow)):
                used.add(getattr(reading.source, "connection", None))
        return sorted(settings.connections.keys() - used)

    def named(self, names: Sequence[str]) -> list[Dataflow]:
        """Return the dataflows with these names, in this order; without names all valid dataflows.

        Raises:
            InvalidProject: if platform.yaml or a named file has errors.
            ConfigurationError: if a name is unknown.
        """
        _ = self.settings
        known_names = [*self.dataflows, *self.broken]
        for name in names:
            if name not in known_names:
                close = nearest_name(name, known_names)
                hint = (
                    f"did you mean {close}?"
                    if close
                    else f"project {self.folder} has {', '.join(known_names) or 'none'}"
                )
                raise ConfigurationError(
                    f"expected the name of a dataflow, found {name!r}: {hint}",
                    code="unknown_dataflow",
                    choices=["strandline list"],
                )
        errors = [error for name in dict.fromkeys(names) for error in self.broken.get(name, ())]
        if errors:
            raise InvalidProject(errors)
        return [self.dataflows[name] for name in dict.fromkeys(names or self.dataflows)]

    def layer(self, name: str) -> str:
        """Return the first part of a dataflow's asset key, even if the dataflow is broken."""
        flow = self.dataflows.get(name) or self._names_by_dataflow.get(name)
        return flow.asset.partition("/")[0] if flow else "bronze"

    def hide(self, text: str) -> str:
        """Return a text for people with the values of secrets replaced, whatever library put them there."""
        alerts = (self._settings or Settings()).alerts
        for receiver in alerts.receivers if alerts is not None else ():
            text = without_secrets(text, self._secrets.values(receiver), repr(receiver))
        catalog = (self._settings or Settings()).lineage.openlineage
        if catalog is not None:
            text = without_secrets(text, self._secrets.values(catalog.api_key), repr(catalog.api_key))
        for connection in (self._settings or Settings()).connections.values():
            text = connection.hide(text, self._secrets)
        for key, value in (self._settings or Settings()).spark.conf.items():
            if isinstance(value, ReferencedText) and is_secret(("spark", "conf", key)):
                text = without_secrets(text, [value], repr(value))
        state = (self._settings or Settings()).place("state").path
        return Database.parse(state).hide(text) if is_database(state) else text

    def place(self, path: str, connection: str | None) -> Place:
        """Return the place at a path, relative to the project's folder, with a connection by name."""
        return self._at(PlaceSettings(path=path, connection=connection))

    def _at(self, place: PlaceSettings) -> Place:
        connection = self.connection(place.connection, S3Connection) if place.connection else None
        return Place.parse(place.path, self.folder, connection)
