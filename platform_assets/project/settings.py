"""The models of ``platform.yaml`` (docs/reference/project-files.md). Every key has a default; an absent file means all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from partitions.alerts.alert import CONDITIONS, Condition
from partitions.column.lookback import LookBack, as_nested
from partitions.errors import ConfigurationError
from partitions.model import Duration, Model
from platform_assets.project.document import Key
from platform_assets.project.env_reference import EnvRef, Text
from platform_assets.project.secret_keys import is_secret
from resources.connections.api import ApiConnection, ClientAuth
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import S3Connection
from resources.spark.settings import ANSI, TIME_ZONE
from resources.user_functions import FunctionConnection

_SHORTEST_HIDDEN = 4


def _remote(text: str) -> str:
    if not text.startswith("sc://") or text == "sc://":
        raise ValueError("expected sc://host:port")
    return text


def _conf_text(value: object) -> object:
    """Return numbers and true/false as Spark writes them."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_KEPT_SETTINGS = {
    TIME_ZONE: ("UTC", "times are read, written and compared in UTC (in sql: from_utc_timestamp)"),
    ANSI: (
        "true",
        "without it a value that does not fit its type becomes another one, or NULL, in silence (in sql: try_cast of the values that may be NULL)",
    ),
}
"""Settings that sessions always have: the value, and why."""


def _without_kept_settings(conf: dict[str, str]) -> dict[str, str]:
    """Raise if sessions are to have another value of a setting that all of them have."""
    for key, (expected, why) in _KEPT_SETTINGS.items():
        value = conf.get(key, expected)
        if value.strip().casefold() != expected.casefold():
            raise ValueError(f"expected {key}: {expected}, or none, since {why}, found {value}")
    return conf


class SparkSettings(Model):
    """Spark inside the process (or on a cluster) by ``master``, or a Connect server by ``remote``.

    Attributes:
        master: used if ``remote`` is None.
        conf: Spark's own settings, for a session that is started here.
    """

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    conf: Annotated[
        dict[str, Annotated[str, BeforeValidator(_conf_text)]], AfterValidator(_without_kept_settings)
    ] = Field(default_factory=dict)
    remote: Annotated[str, AfterValidator(_remote)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> SparkSettings:
        given = self.model_fields_set
        if "remote" in given and given & {"master", "conf"}:
            raise ValueError("expected master and conf, or remote alone, found both")
        return self


class PlaceSettings(Model):
    """A folder, or a prefix of an object store with the connection that reaches it."""

    path: Annotated[str, Field(min_length=1)]
    connection: str | None = None


class ConnectionModel(Model):
    """What all connections have in common: some of their keys hold secrets."""

    _opens_nothing: ClassVar[frozenset[str]] = frozenset({"type"})

    def address(self) -> dict[str, Any]:
        """Return the keys that say where something is and who asks, with their values as written."""
        return {key: value for key, value in self if key not in self._opens_nothing}

    def hide(self, text: str, environment: Mapping[str, str]) -> str:
        """Return a text with the values of the connection's secrets replaced."""
        for key, reference in self._texts():
            value = reference.look_up(environment) if isinstance(reference, EnvRef) else None
            if value and len(value) >= _SHORTEST_HIDDEN and is_secret(("connections", "", *key)):
                text = text.replace(value, repr(reference))
        return text

    def _texts(self) -> Iterator[tuple[Key, Any]]:
        for key, value in self:
            if isinstance(value, Mapping):
                yield from (((key, name), inner) for name, inner in value.items())
            else:
                yield (key,), value


class S3Settings(ConnectionModel):
    """An S3-compatible store; missing keys come from the standard AWS_* variables."""

    type: Literal["s3"]
    endpoint: Text | None = None
    region: Text | None = None
    access_key_id: Text | None = None
    secret_access_key: Text | None = None
    session_token: Text | None = None

    def open(self, _: str, fields: Mapping[str, Any]) -> S3Connection:
        """Return the connection with these values, all of them looked up."""
        return S3Connection(**fields)


class LooksBack(ConnectionModel):
    """A connection whose dataflows above a column watermark may read rows again.

    Attributes:
        backward: the look-back of each such dataflow that has none of its own.
    """

    _opens_nothing: ClassVar[frozenset[str]] = frozenset({"type", "backward"})

    backward: LookBack | None = None

    @model_validator(mode="before")
    @classmethod
    def _flat_look_back(cls, given: Any) -> Any:
        return as_nested(given)


def _jdbc_url(text: str | EnvRef) -> str | EnvRef:
    if isinstance(text, str):
        JdbcConnection.parse(text)
    return text


class JdbcSettings(LooksBack):
    """A database; Strandline brings the driver.

    Attributes:
        url: ``jdbc:postgresql://host:port/database``, or MariaDB's or MySQL's; the driver's parameters may follow.
    """

    type: Literal["jdbc"]
    url: Annotated[Text, AfterValidator(_jdbc_url)]
    user: Text | None = None
    password: Text | None = None

    def open(self, key: str, fields: Mapping[str, Any]) -> JdbcConnection:
        """Return the connection with these values, all of them looked up.

        Raises:
            ConfigurationError: if the URL has another form; ``key`` is the connection's.
        """
        try:
            return JdbcConnection.parse(**fields)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.url: {error.message}") from error

    def hide(self, text: str, environment: Mapping[str, str]) -> str:
        """Return a text with the values of the connection's secrets replaced, those in its URL, too."""
        url = self.url.look_up(environment) if isinstance(self.url, EnvRef) else None
        if url:
            with suppress(ConfigurationError):  # the error is reported when the URL is used
                text = JdbcConnection.parse(url).hide(text)
        return super().hide(text, environment)


def _base_url(text: str | EnvRef) -> str | EnvRef:
    if isinstance(text, str):
        ApiConnection(text)
    return text


class ApiSettings(ConnectionModel):
    """An HTTP API.

    Attributes:
        base_url: that the paths of sources are below.
        headers: of each request.
        params: of the query of each request, such as an API key.
        user: for basic authentication.
        password: for basic authentication.
        token: for ``Authorization: Bearer``.
        token_url: who gives such tokens for ``client_id`` and ``client_secret`` (OAuth 2.0, client credentials).
        client_id: of the client.
        client_secret: of the client.
        client_auth: how the client says who it is: by basic authentication, or in the body.
        scope: that tokens are asked for with.
        token_params: more that tokens are asked for with, such as ``audience``.
        hosts: others that next links and redirects may lead to, with the same credentials.
        timeout: for one page.
        retry_for: how long a page that fails in passing is asked for again.
    """

    type: Literal["api"]
    base_url: Annotated[Text, AfterValidator(_base_url)]
    headers: dict[str, Text] = Field(default_factory=dict)
    params: dict[str, Text] = Field(default_factory=dict)
    user: Text | None = None
    password: Text | None = None
    token: Text | None = None
    token_url: Text | None = None
    client_id: Text | None = None
    client_secret: Text | None = None
    client_auth: ClientAuth = "basic"
    scope: Text | None = None
    token_params: dict[str, Text] = Field(default_factory=dict)
    hosts: tuple[str, ...] = ()
    timeout: Duration = timedelta(seconds=60)
    retry_for: Duration = timedelta(minutes=5)

    def open(self, key: str, fields: Mapping[str, Any]) -> ApiConnection:
        """Return the connection with these values, all of them looked up.

        Raises:
            ConfigurationError: if one of them has another form; ``key`` is the connection's.
        """
        named = {**self.headers, **self.params, **self.token_params}
        hidden = frozenset(name for name, value in named.items() if isinstance(value, EnvRef))
        try:
            return ApiConnection(**fields, hidden=hidden)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.{error.message}") from error


class PythonSettings(ConnectionModel):
    """What a function of the user is given: any settings, by name."""

    type: Literal["python"]
    settings: dict[Annotated[str, Field(min_length=1)], Text] = Field(default_factory=dict)

    def open(self, _: str, fields: Mapping[str, Any]) -> FunctionConnection:
        """Return the connection with these values, all of them looked up."""
        return FunctionConnection(**fields)

    def hide(self, text: str, environment: Mapping[str, str]) -> str:
        """Return a text without what the environment gives: which of it is secret is the function's to know."""
        for reference in self.settings.values():
            value = reference.look_up(environment) if isinstance(reference, EnvRef) else None
            if value and len(value) >= _SHORTEST_HIDDEN:
                text = text.replace(value, repr(reference))
        return text


class IcebergRestSettings(ConnectionModel):
    """A server that knows Iceberg tables, and speaks Iceberg's REST protocol.

    Attributes:
        uri: that ``/v1/config`` is below.
        warehouse: which of the server's catalogs is meant.
        token: for ``Authorization: Bearer``.
        credential: ``id:secret``, for which tokens are given.
        oauth2_server_uri: who gives them, if it is not the server.
        scope: of the tokens.
    """

    type: Literal["iceberg_rest"]
    uri: Text
    warehouse: Text | None = None
    token: Text | None = None
    credential: Text | None = None
    oauth2_server_uri: Text | None = None
    scope: Text | None = None

    def open(self, key: str, fields: Mapping[str, Any]) -> RestCatalogServer:
        """Return the connection with these values, all of them looked up.

        Raises:
            ConfigurationError: if one of them has another form; ``key`` is the connection's.
        """
        try:
            return RestCatalogServer(**fields)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.{error.message}") from error


ConnectionSettings = Annotated[
    S3Settings | JdbcSettings | ApiSettings | PythonSettings | IcebergRestSettings,
    Field(discriminator="type"),
]


class HistorySettings(Model):
    """Retention of a watermark log: an entry beyond both limits is deleted. The newest is always kept.

    Attributes:
        entries: the number of newest entries to keep.
        age: entries younger than this are kept, too.
    """

    entries: Annotated[int, Field(ge=1, strict=True)] = 1000
    age: Duration = timedelta(days=90)


class IcebergSettings(Model):
    """Where Iceberg tables are known.

    Attributes:
        catalog: ``hadoop``: the folders of the lake; ``jdbc``: a PostgreSQL database; ``rest``: a server.
        connection: of the database or the server.
    """

    catalog: Literal["hadoop", "jdbc", "rest"] = "hadoop"
    connection: Annotated[str, Field(min_length=1)] | None = None


class AlertSettings(Model):
    """Who is told of dataflows that need somebody.

    Attributes:
        webhook: the address, a secret; Slack's gets Slack's form, any other plain JSON.
        on: what is told.
    """

    webhook: Text
    on: Annotated[tuple[Condition, ...], Field(min_length=1)] = CONDITIONS


def _something(given: Any) -> Any:
    if given is None:
        raise ConfigurationError("expected webhook and maybe on, or no alerts at all, found nothing")
    return given


class SensorSettings(Model):
    """How often sensors look.

    Attributes:
        interval: between two looks, at least; None: 30 s, a minute for rows above a column. The sweep for late files has its own.
    """

    interval: Annotated[Duration, Field(ge=timedelta(seconds=1))] | None = None


class Settings(Model):
    """The whole file.

    Attributes:
        state: where the watermark log is.
        lake: tables lie at ``<lake>/<layer>/<name>``.
        format: the default of all targets.
        iceberg: the catalog of Iceberg tables.
        history: the retention of each watermark log.
        sensors: of Dagster.
        alerts: None: people are told nothing.
        connections: by name, for sources, state and lake.
    """

    state: Annotated[str, Field(min_length=1)] | PlaceSettings = "./.strandline/state"
    lake: Annotated[str, Field(min_length=1)] | PlaceSettings = "./.strandline/lake"
    format: Literal["delta", "iceberg", "parquet"] = "delta"
    iceberg: IcebergSettings = IcebergSettings()
    spark: SparkSettings = SparkSettings()
    history: HistorySettings = HistorySettings()
    sensors: SensorSettings = SensorSettings()
    alerts: Annotated[AlertSettings | None, BeforeValidator(_something)] = None
    connections: dict[str, ConnectionSettings] = Field(default_factory=dict)

    def place(self, which: Literal["state", "lake"]) -> PlaceSettings:
        """Return state or lake, however it was written."""
        place: str | PlaceSettings = getattr(self, which)
        return place if isinstance(place, PlaceSettings) else PlaceSettings(path=place)
