"""REST catalogs of Iceberg tables: address and credentials."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from partitions.errors import ConfigurationError
from resources.hiding import without_secrets

_ADDRESS = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~/-]*)?")


@dataclass(frozen=True)
class RestCatalogServer:
    """A catalog server and its credentials. No text of it shows a secret.

    Attributes:
        uri: address above ``/v1/config``.
        warehouse: one of the server's catalogs; None: it has only one.
        token: for ``Authorization: Bearer``.
        credential: ``id:secret``, for which the server, or ``oauth2_server_uri``, issues tokens.
        oauth2_server_uri: server that issues tokens; None: the catalog server.
        scope: scope of the tokens; None: ``catalog``.
    """

    uri: str
    warehouse: str | None = None
    token: str | None = field(default=None, repr=False)
    credential: str | None = field(default=None, repr=False)
    oauth2_server_uri: str | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        """Refuse an address that no request can reach.

        Raises:
            ConfigurationError: without the text, which may contain a password.
        """
        for key in ("uri", "oauth2_server_uri"):
            address = getattr(self, key)
            if address is not None and not _ADDRESS.fullmatch(address):
                raise ConfigurationError(
                    f"{key}: expected http://host:port/path or https://host:port/path, without user or query"
                )

    @property
    def options(self) -> dict[str, str]:
        """Settings of a client, including secrets, in the vocabulary of Iceberg's Java and Python libraries."""
        settings = {
            "uri": self.uri,
            "warehouse": self.warehouse,
            "token": self.token,
            "credential": self.credential,
            "oauth2-server-uri": self.oauth2_server_uri,
            "scope": self.scope,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def hide(self, text: str) -> str:
        """Return a text with the secrets replaced."""
        secrets = (self.token, self.credential, (self.credential or "").partition(":")[2])
        return without_secrets(text, filter(None, secrets), "***")

    def __str__(self) -> str:
        """Return the address for people."""
        return f"{self.uri}, warehouse {self.warehouse}" if self.warehouse else self.uri
