"""The models of ``connections`` in ``platform.yaml`` (docs/reference/project-files.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from partitions.column.lookback import LookBack, nest_look_back
from partitions.errors import ConfigurationError
from partitions.model import Duration, Model
from platform_assets.project.document import Key
from platform_assets.project.references import Reference, Secrets, Text
from platform_assets.project.secret_keys import is_secret
from resources.connections.api import ApiConnection, ClientAuth
from resources.connections.aws_profile import profile_credentials, secrets_of_profiles
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import S3Connection
from resources.hiding import without_secrets
from resources.user_functions import FunctionConnection


class ConnectionModel(Model):
    """The base of all connections: some of their keys hold secrets."""

    _not_address_keys: ClassVar[frozenset[str]] = frozenset({"type"})

    def address(self) -> dict[str, Any]:
        """Return the keys that give address and credentials, with their values as written."""
        return {key: value for key, value in self if key not in self._not_address_keys}

    def hide(self, text: str, secrets: Secrets) -> str:
        """Return a text with the values of the connection's secrets replaced.

        Values of fewer than four letters stay: they may be parts of any word.
        """
        for key, reference in self._leaves():
            if is_secret(("connections", "", *key)):
                text = _without_values(text, reference, secrets)
        return text

    def _leaves(self) -> Iterator[tuple[Key, Any]]:
        for key, value in self:
            if isinstance(value, Mapping):
                yield from (((key, name), inner) for name, inner in value.items())
            else:
                yield (key,), value


def _without_values(text: str, reference: str | Reference, secrets: Secrets) -> str:
    """Return a text with the values of a reference replaced by the reference, unless they are too short."""
    return without_secrets(text, secrets.values(reference), repr(reference))


class S3Settings(ConnectionModel):
    """An S3-compatible store; missing keys come from the standard AWS_* variables.

    Attributes:
        profile: a profile of the AWS configuration, instead of the keys; its region counts if ``region`` is missing.
    """

    type: Literal["s3"]
    endpoint: Text | None = None
    region: Text | None = None
    profile: Text | None = None
    access_key_id: Text | None = None
    secret_access_key: Text | None = None
    session_token: Text | None = None

    @model_validator(mode="after")
    def _refuse_profile_with_keys(self) -> S3Settings:
        if self.profile is not None and (self.access_key_id or self.secret_access_key or self.session_token):
            raise ValueError("expected a profile, or access_key_id and secret_access_key, found both")
        return self

    def open(self, key: str, fields: Mapping[str, Any]) -> S3Connection:
        """Return the connection with these values, which are all looked up.

        Raises:
            ConfigurationError: if the profile has no credentials, or the endpoint another form; ``key`` is
                the connection's.
        """
        values = dict(fields)
        profile = values.pop("profile", None)
        if profile is None:
            return S3Connection(**values)
        try:
            credentials = profile_credentials(profile)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.profile: {error.message}") from error
        return S3Connection(
            values["endpoint"],
            values["region"] or credentials.region,
            credentials.access_key_id,
            credentials.secret_access_key,
            credentials.session_token,
        )

    def hide(self, text: str, secrets: Secrets) -> str:
        """Return a text with the values of the connection's secrets replaced, also those of a profile."""
        text = super().hide(text, secrets)
        return without_secrets(text, secrets_of_profiles(), "{profile}") if self.profile else text


class LookBackConnection(ConnectionModel):
    """A connection with a look-back for its dataflows with a column watermark.

    Attributes:
        backward: the look-back of each such dataflow without one of its own.
    """

    _not_address_keys: ClassVar[frozenset[str]] = frozenset({"type", "backward"})

    backward: LookBack | None = None

    @model_validator(mode="before")
    @classmethod
    def _flat_look_back(cls, values: Any) -> Any:
        return nest_look_back(values)


def _jdbc_url(text: str | Reference) -> str | Reference:
    if isinstance(text, str):
        JdbcConnection.parse(text)
    return text


class JdbcSettings(LookBackConnection):
    """A database; Strandline brings the driver.

    Attributes:
        url: ``jdbc:postgresql://host:port/database``, or MariaDB's or MySQL's; the driver's parameters may
        follow.
    """

    type: Literal["jdbc"]
    url: Annotated[Text, AfterValidator(_jdbc_url)]
    user: Text | None = None
    password: Text | None = None

    def open(self, key: str, fields: Mapping[str, Any]) -> JdbcConnection:
        """Return the connection with these values, which are all looked up.

        Raises:
            ConfigurationError: if the URL has another form; ``key`` is the connection's.
        """
        try:
            return JdbcConnection.parse(**fields)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.url: {error.message}") from error

    def hide(self, text: str, secrets: Secrets) -> str:
        """Return a text with the values of the connection's secrets replaced, also those in its URL."""
        for url in secrets.values(self.url):
            with suppress(ConfigurationError):  # the error is reported when the URL is used
                text = JdbcConnection.parse(url).hide(text)
        return super().hide(text, secrets)


def _base_url(text: str | Reference) -> str | Reference:
    if isinstance(text, str):
        ApiConnection(text)
    return text


class ApiSettings(ConnectionModel):
    """An HTTP API.

    Attributes:
        base_url: the base of the sources' paths.
        headers: sent with each request.
        params: sent in the query of each request, such as an API key.
        user: for basic authentication.
        password: for basic authentication.
        token: for ``Authorization: Bearer``.
        token_url: the URL that issues such tokens for ``client_id`` and ``client_secret`` (OAuth 2.0, client credentials).
        client_id: the client's id.
        client_secret: the client's secret.
        client_auth: where the client sends its credentials: in basic authentication, or in the body.
        scope: the scope of requested tokens.
        token_params: further parameters of a token request, such as ``audience``.
        hosts: other hosts that next links and redirects may lead to, with the same credentials.
        timeout: the longest wait for one page.
        retry_for: how long to retry a page that fails temporarily.
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
        """Return the connection with these values, which are all looked up.

        Raises:
            ConfigurationError: if one of them has another form; ``key`` is the connection's.
        """
        named_texts = {**self.headers, **self.params, **self.token_params}
        hidden = frozenset(name for name, value in named_texts.items() if isinstance(value, Reference))
        try:
            return ApiConnection(**fields, hidden=hidden)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.{error.message}") from error


class PythonSettings(ConnectionModel):
    """The settings of a user's function: any texts, by name."""

    type: Literal["python"]
    settings: dict[Annotated[str, Field(min_length=1)], Text] = Field(default_factory=dict)

    def open(self, _: str, fields: Mapping[str, Any]) -> FunctionConnection:
        """Return the connection with these values, which are all looked up."""
        return FunctionConnection(**fields)

    def hide(self, text: str, secrets: Secrets) -> str:
        """Return a text without the values of references that have four letters or more.

        Any of them may be secret: only the function knows which.
        """
        for reference in self.settings.values():
            text = _without_values(text, reference, secrets)
        return text


class IcebergRestSettings(ConnectionModel):
    """A catalog server that speaks Iceberg's REST protocol.

    Attributes:
        uri: the base of ``/v1/config``.
        warehouse: the name of the server's catalog.
        token: for ``Authorization: Bearer``.
        credential: ``id:secret``, exchanged for tokens.
        oauth2_server_uri: the server that issues tokens, if it is another one.
        scope: the scope of the tokens.
    """

    type: Literal["iceberg_rest"]
    uri: Text
    warehouse: Text | None = None
    token: Text | None = None
    credential: Text | None = None
    oauth2_server_uri: Text | None = None
    scope: Text | None = None

    def open(self, key: str, fields: Mapping[str, Any]) -> RestCatalogServer:
        """Return the connection with these values, which are all looked up.

        Raises:
            ConfigurationError: if one of them has another form; ``key`` is the connection's.
        """
        try:
            return RestCatalogServer(**fields)
        except ConfigurationError as error:
            raise ConfigurationError(f"{key}.{error.message}") from error


class DagsterSettings(ConnectionModel):
    """A connection whose settings are passed to ``build_definitions``: the file only names it."""

    type: Literal["dagster"]

    def open(self, key: str, _: Mapping[str, Any]) -> Any:
        """Raise: what is passed replaces this connection, so none was passed here.

        Raises:
            ConfigurationError: in each case.
        """
        name = key.removeprefix("connections.")
        raise ConfigurationError(
            f"{key}: expected its settings, found type: dagster, which leaves them to your Dagster definitions. Pass them"
            f" there: `build_definitions(..., connections={{{name!r}: ...}})`. Commands do not see what is passed: run the"
            " dataflow in Dagster, or write the settings in platform.yaml or in an environment's file"
        )


ConnectionSettings = Annotated[
    S3Settings | JdbcSettings | ApiSettings | PythonSettings | IcebergRestSettings | DagsterSettings,
    Field(discriminator="type"),
]
