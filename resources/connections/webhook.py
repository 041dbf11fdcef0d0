"""A webhook that takes JSON: Slack's, or any other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from partitions.errors import ConfigurationError, StrandlineError

_CONNECT, _ANSWER = 5.0, 10.0
"""Seconds until an address must have taken the connection, and have answered."""

_FAILURES = {
    "ConnectTimeout": f"it did not take the connection within {_CONNECT:.0f} s",
    "ReadTimeout": f"it took the message and did not answer within {_ANSWER:.0f} s",
    "NameResolutionError": "no host has this name",
    "NewConnectionError": "nothing takes connections there",
    "SSLError": "its certificate is not accepted",
}
"""By the name of the error, or of its cause: what it means."""


@dataclass(frozen=True)
class Webhook:
    """An address that messages are posted to.

    Attributes:
        url: a secret: whoever knows it can post.
    """

    url: str = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse another scheme.

        Raises:
            ConfigurationError: which does not repeat the text.
        """
        try:
            parts = urlsplit(self.url)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # of a port that is none
            fits = False
        if not fits:
            raise ConfigurationError("alerts.webhook: expected http://… or https://…, found another form")

    @property
    def host(self) -> str:
        """The part of the address that may be shown."""
        return urlsplit(self.url).hostname or ""

    def post(self, document: Any) -> None:
        """Post a document.

        Raises:
            StrandlineError: if the address does not answer, or refuses; the message does not hold the address.
        """
        import requests

        try:
            with requests.post(
                self.url,
                json=document,
                timeout=(_CONNECT, _ANSWER),
                allow_redirects=False,
                stream=True,  # what it says, however slowly, is not read
            ) as answer:
                status = answer.status_code
        except requests.RequestException as error:
            raise StrandlineError(
                f"alerts.webhook: {self.host} did not take the message: {_why(error)}", code="alerts"
            ) from None  # its text holds the address
        if not 200 <= status < 300:
            raise StrandlineError(
                f"alerts.webhook: {self.host} refused the message with status {status}",
                code="alerts",
            )


def _why(error: Exception) -> str:
    """What went wrong, in words that do not hold the address; of another failure, its kind."""
    cause: Any = getattr(error.args[0], "reason", None) if error.args else None
    for kind, words in _FAILURES.items():
        if kind in (type(error).__name__, type(cause).__name__):
            return words
    return type(error).__name__
