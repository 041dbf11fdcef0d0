"""A webhook that accepts JSON: Slack's, or any other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from partitions.errors import ConfigurationError, StrandlineError

_CONNECT, _ANSWER = 5.0, 10.0
"""Seconds to connect, and to answer."""

_FAILURES = {
    "ConnectTimeout": f"it did not accept the connection within {_CONNECT:.0f} s",
    "ReadTimeout": f"it accepted the message and did not answer within {_ANSWER:.0f} s",
    "NameResolutionError": "no host has this name",
    "NewConnectionError": "nothing listens there",
    "SSLError": "its certificate is not accepted",
}
"""By the class of the error, or of its cause: its meaning."""


@dataclass(frozen=True)
class Webhook:
    """An address that messages are posted to.

    Attributes:
        url: a secret: anyone who has it can post.
        key: its key in the settings, for errors.
    """

    url: str = field(repr=False)
    key: str = "alerts.webhook"

    def __post_init__(self) -> None:
        """Refuse any scheme other than http and https.

        Raises:
            ConfigurationError: without the text of the address.
        """
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # of a port that is none
            fits = False
        if not fits:
            raise ConfigurationError(f"{self.key}: expected http://… or https://…, found something else")

    @property
    def host(self) -> str:
        """The part of the address that may be shown."""
        return urlsplit(self.url).hostname or ""

    def post(self, document: Any) -> None:
        """Post a document.

        Raises:
            StrandlineError: the address does not answer, or refuses; the message does not contain the
            address.
        """
        import requests

        try:
            with requests.post(
                self.url,
                json=document,
                timeout=(_CONNECT, _ANSWER),
                allow_redirects=False,
                stream=True,  # the body is never read
            ) as answer:
                status = answer.status_code
        except requests.RequestException as error:
            raise StrandlineError(
                f"{self.key}: {self.host} did not accept the message: {_why(error)}", code="alerts"
            ) from None  # its text holds the address
        if not 200 <= status < 300:
            raise StrandlineError(
                f"{self.key}: {self.host} refused the message with status {status}",
                code="alerts",
            )


def _why(error: Exception) -> str:
    """Return the cause in words that do not contain the address; for an unknown failure, its class."""
    cause: Any = getattr(error.args[0], "reason", None) if error.args else None
    for kind, words in _FAILURES.items():
        if kind in (type(error).__name__, type(cause).__name__):
            return words
    return type(error).__name__
