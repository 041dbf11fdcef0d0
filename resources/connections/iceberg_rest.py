"""REST catalogs of Iceberg tables: where a server is, and who asks it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from partitions.errors import ConfigurationError

_ADDRESS = re.compile(r"https?://[A-Za-z0-9._:\[\]-]+(/[A-Za-z0-9._~/-]*)?")


@dataclass(frozen=True)
class RestCatalogServer:
    """A server and who asks it. No text of it shows a secret.

    Attributes:
        uri: that ``/v1/config`` is below.
        warehouse: which of the server's catalogs is meant; None: it has one.
        token: for ``Authorization: Bearer``.
        credential: ``id:secret``, for which the server, or ``oauth2_server_uri``, gives tokens.
        oauth2_server_uri: who gives tokens; None: the server.
        scope: of the tokens; None: ``catalog``.
    """

    uri: str
    warehouse: str | None = None
    token: str | None = field(default=None, repr=False)
    credential: str | None = field(default=None, repr=False)
    oauth2_server_uri: str | None = None
    scope: str | None = None

    def __post_init__(self) -> None:
        """Refuse an address that no request can go to.

        Raises:
            ConfigurationError: which does not repeat the text: it may hold a password.
        """
        for key in ("uri", "oauth2_server_uri"):
            address = getattr(self, key)
            if address is not None and not _ADDRESS.fullmatch(address):
                raise ConfigurationError(
                    f"{key}: expected http://host:port/path or https://host:port/path, without user or query"
                )

    @property
    def options(self) -> dict[str, str]:
        """Settings of a client, secrets among them: Iceberg's libraries in Java and Python have the same words."""
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
        """Return a text without the secrets."""
        for secret in (self.token, self.credential, (self.credential or "").partition(":")[2]):
            text = text.replace(secret, "***") if secret else text
        return text

    def __str__(self) -> str:
        """The address, for people."""
        return f"{self.uri}, warehouse {self.warehouse}" if self.warehouse else self.uri
