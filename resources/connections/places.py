"""Places: a local folder or a prefix of an object store, with the settings for each library.

State, lake and landing zones are passed on as a :class:`Place`. obstore, Spark, pyiceberg and deltalake
need the same address and credentials in different vocabularies; only this module knows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from partitions.errors import ConfigurationError, SourceError
from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_STORE = "_store"
_SCHEMES = ("s3", "gs", "az")
# What obstore cannot put into a request makes its Rust code panic, so it is refused here.
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENDPOINT = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~/-]*)?")

# obstore's defaults (10 tries in 180 s) outlast a sensor's tick, which has 60 s.
_RETRY: RetryConfig = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2},
}
# Whether requests are encrypted is what the endpoint's own scheme says, here or in AWS_ENDPOINT_URL.
_CLIENT: ClientConfig = {
    "connect_timeout": timedelta(seconds=5),
    "timeout": timedelta(seconds=20),
    "allow_http": True,
}


@dataclass(frozen=True)
class S3Connection:
    """The connection to an S3-compatible store; the standard AWS_* variables replace a None.

    Attributes:
        endpoint: such as ``http://127.0.0.1:8333``; None is AWS itself.
        look_up: returns the connection with its secrets as they are now; None: they never change.
    """

    endpoint: str | None = None
    region: str | None = None
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    look_up: Callable[[], S3Connection] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse an endpoint that no request can reach.

        Raises:
            ConfigurationError: without the text, which may contain a password.
        """
        if self.endpoint is not None and not _ENDPOINT.fullmatch(self.endpoint):
            raise ConfigurationError(
                "endpoint: expected http://host:port or https://host:port, without user or query"
            )


@dataclass(frozen=True)
class Place:
    """A local folder (absolute path) or ``scheme://bucket/prefix``.

    Attributes:
        url: without a trailing slash.
        connection: its connection; None for local folders, or to use the environment.
        catalog: the database or server that lists the Iceberg tables below it; None: the folders
        themselves do.
    """

    url: str
    connection: S3Connection | None = None
    catalog: JdbcConnection | RestCatalogServer | None = None

    @classmethod
    def parse(cls, text: str, base: Path, connection: S3Connection | None = None) -> Place:
        """Parse a user's text; a relative folder is relative to ``base``.

        The prefix stays as written: ``?``, ``#`` and ``%`` are characters of keys, not parts of a URL.

        Raises:
            ConfigurationError: an unknown scheme, a URL without a bucket, or a prefix that no key can
            have.
        """
        scheme, separator, rest = text.partition("://")
        if not separator:
            return cls(os.path.abspath(base / Path(text).expanduser()))  # noqa: PTH100 - Path keeps the ".."
        if scheme == "file":
            return cls(str(Path(unquote(urlsplit(text).path)).absolute()))
        bucket, _, prefix = rest.partition("/")
        if scheme not in _SCHEMES or not _BUCKET.fullmatch(bucket):
            expected = ", ".join(
                f"{scheme_name}://bucket/prefix" for scheme_name in _SCHEMES
            )  # the text itself may hold a password
            raise ConfigurationError(
                f"expected a folder or {expected}; found the scheme {scheme!r}, or an invalid bucket name"
            )
        prefix = prefix.strip("/")
        if any(part in ("", ".", "..") for part in prefix.split("/")) and prefix:
            raise ConfigurationError(
                f"expected {scheme}://bucket/prefix without empty, . or .. components, found prefix {prefix!r}"
            )
        return cls(f"{scheme}://{bucket}/{prefix}".rstrip("/"), connection)

    @property
    def local(self) -> Path | None:
        """The folder, if it is one."""
        return None if "://" in self.url else Path(self.url)

    def child(self, relative: str) -> Place:
        """Return a place below it."""
        return replace(self, url=f"{self.url.rstrip('/')}/{relative}")

    @property
    def spark_url(self) -> str:
        """The address for Spark, which reads S3 through S3A."""
        return f"s3a{self.url[2:]}" if self.url.startswith("s3://") else self.url

    @property
    def ordered(self) -> bool:
        """Whether listings are ordered; S3's directory buckets are not."""
        return not _bucket(self.url)[1].endswith("--x-s3")

    @property
    def _credentials(self) -> S3Connection | None:
        """Its connection, with secrets as they are now: a process may live longer than they do."""
        connection = self.connection
        return connection if connection is None or connection.look_up is None else connection.look_up()

    @property
    def store(self) -> ObjectStore:
        """An obstore store with paths relative to this place; it does not create a missing local folder.

        Raises:
            SourceError: a local folder does not exist.
        """
        credentials = self._credentials
        opened_with, store = vars(self).get(_STORE, (None, None))
        if store is None or opened_with != credentials:
            store = self._open_store()
            vars(self)[_STORE] = (credentials, store)
        return cast("ObjectStore", store)

    def _open_store(self) -> ObjectStore:
        if self.local is not None:
            from obstore.store import LocalStore

            if not self.local.is_dir():
                raise SourceError(f"{self}: expected a folder, found none", code="source_missing")
            return LocalStore(self.local)
        from resources.connections.confirmed_stores import (
            ConfirmedAzureStore,
            ConfirmedGCSStore,
            ConfirmedS3Store,
        )

        # Not from_url: it decodes percent signs of the prefix.
        scheme, bucket, prefix = _bucket(self.url)
        if scheme == "gs":
            return ConfirmedGCSStore(
                bucket, prefix=prefix or None, client_options=_CLIENT, retry_config=_RETRY
            )
        if scheme == "az":
            return ConfirmedAzureStore(
                bucket, prefix=prefix or None, client_options=_CLIENT, retry_config=_RETRY
            )
        config: Any = self._s3_config  # obstore's type has literal keys, which a filtered dict does not keep
        within = prefix or None
        return ConfirmedS3Store(
            bucket, prefix=within, config=config, client_options=_CLIENT, retry_config=_RETRY
        )

    @property
    def storage_options(self) -> dict[str, str]:
        """The credentials for deltalake."""
        more = {"aws_allow_http": "true", "conditional_put": "etag"} if self.url.startswith("s3://") else {}
        return self._s3_config | more

    @property
    def pyiceberg_options(self) -> dict[str, str]:
        """The credentials for pyiceberg."""
        connection = self._credentials or S3Connection()
        options = {
            "s3.endpoint": connection.endpoint,
            "s3.region": connection.region,
            "s3.access-key-id": connection.access_key_id,
            "s3.secret-access-key": connection.secret_access_key,
            "s3.session-token": connection.session_token,
        }
        return {key: value for key, value in options.items() if value is not None}

    @property
    def _s3_config(self) -> dict[str, str]:
        """The credentials that obstore and deltalake share."""
        express = {} if self.ordered else {"aws_s3_express": "true"}
        connection = self._credentials
        if connection is None:
            return express
        options = express | {
            "aws_endpoint": connection.endpoint,
            "aws_region": connection.region,
            "aws_access_key_id": connection.access_key_id,
            "aws_secret_access_key": connection.secret_access_key,
            "aws_session_token": connection.session_token,
        }
        return {key: value for key, value in options.items() if value is not None}

    @property
    def bucket(self) -> str | None:
        """The name of its bucket; None for a folder."""
        return _bucket(self.url)[1] if self.url.startswith("s3://") else None

    @property
    def spark_conf(self) -> Mapping[str, str]:
        """S3A's settings for this bucket alone, including credentials, without the prefix ``spark.hadoop.``."""
        if self.bucket is None:
            return {}
        connection, bucket = self._credentials or S3Connection(), f"fs.s3a.bucket.{self.bucket}."
        options = {
            # Its buffer on disk wants the checksumming local file system, which cannot have names with a colon.
            "fast.upload.buffer": "bytebuffer",
            "endpoint": connection.endpoint,
            "endpoint.region": connection.region,
            "access.key": connection.access_key_id,
            "secret.key": connection.secret_access_key,
            "session.token": connection.session_token,
            "path.style.access": "true" if connection.endpoint else None,
        }
        return {bucket + key: value for key, value in options.items() if value is not None}

    def __str__(self) -> str:
        """Return the address, which contains no secret."""
        return self.url


def _bucket(url: str) -> tuple[str, str, str]:
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    return scheme, bucket, prefix
