"""HTTP APIs: their addresses and credentials.

Belongs here: addresses, credentials, and which parts of them a text may show. Does not belong here:
requests (``resources.sources.api``).
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

from partitions.errors import ConfigurationError
from resources.hiding import without_secrets

EXPECTED_ADDRESS = "https://host/path or http://host:port/path, without user, query or fragment"

_BASE = re.compile(r"https?://[A-Za-z0-9._\[\]:-]+(/[^\s?#@]*)?")
_HOST = re.compile(r"[A-Za-z0-9._-]+(:\d+)?|\[[0-9A-Fa-f:]+\](:\d+)?")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SECRET = re.compile(
    r"(?i)(^|[._-])(auth\w*|cookie|jwt|pwd|sig|signature)$|key$|token|secret|passw|credential"
)
_PORTS = {"http": 80, "https": 443}
_HIDDEN = "***"
_EARLIER_TOKENS = 3
"""The number of earlier tokens that are hidden, too."""

Origin = tuple[str, str, int]
ClientAuth = Literal["basic", "body"]


@dataclass
class AccessToken:
    """The latest token of an API's authorization server, shared by all requests to the API.

    Attributes:
        text: None: there is none.
        ends: when to ask for another one, by ``time.monotonic``.
        is_accepted: whether the API has accepted it.
        earlier: previous tokens, which answers may still quote, and errors must not show.
    """

    text: str | None = None
    ends: float = 0.0
    is_accepted: bool = False
    earlier: deque[str] = field(default_factory=lambda: deque(maxlen=_EARLIER_TOKENS))

    def replace(self, text: str, ends: float) -> None:
        """Replace the token with a new one."""
        if self.text is not None:
            self.earlier.append(self.text)
        self.text, self.ends, self.is_accepted = text, ends, False


def is_secret_parameter(name: str) -> bool:
    """Return whether the name of a parameter or header suggests a secret."""
    return _SECRET.search(name) is not None


@dataclass(frozen=True)
class ApiConnection:
    """An API and its credentials. No text of it shows a secret.

    Attributes:
        base_url: paths are relative to it.
        headers: headers of each request.
        params: query parameters of each request, such as an API key.
        user: for basic authentication.
        password: for basic authentication.
        token: for ``Authorization: Bearer``.
        token_url: authorization server that issues such tokens for ``client_id`` and ``client_secret``
        (OAuth 2.0, client credentials, RFC 6749 section 4.4).
        client_id: name of the client.
        client_secret: secret of the client.
        client_auth: how the client authenticates: by basic authentication, or in the body.
        scope: scope of the tokens; None: none is requested.
        token_params: more form fields of the token request, such as ``audience``.
        hosts: more hosts that next links and redirects may lead to, with the same credentials: ``host`` or
        ``host:port``.
        timeout: for one page, from its request to its last byte.
        retry_for: how long a page with a transient failure is retried.
        hidden: names of headers and params whose values no text shows, beside those whose names suggest a
        secret.
    """

    base_url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    token_url: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    client_auth: ClientAuth = "basic"
    scope: str | None = None
    token_params: Mapping[str, str] = field(default_factory=dict, repr=False)
    hosts: tuple[str, ...] = ()
    timeout: timedelta = timedelta(seconds=60)
    retry_for: timedelta = timedelta(minutes=5)
    hidden: frozenset[str] = frozenset()
    access_token: AccessToken = field(default_factory=AccessToken, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse settings that no request can use.

        Raises:
            ConfigurationError: without any value, which may be a secret.
        """
        if not _BASE.fullmatch(self.base_url):
            raise ConfigurationError(f"base_url: expected {EXPECTED_ADDRESS}, found something else")
        for host in self.hosts:
            if not _HOST.fullmatch(host):
                raise ConfigurationError("hosts: expected names such as files.shop.example or host:8080")
        if self.token is not None and (self.user is not None or self.password is not None):
            raise ConfigurationError("token: expected a token, or user and password, found both")
        if self.password is not None and self.user is None:
            raise ConfigurationError("password: expected user with it")
        if "authorization" in {name.lower() for name in self.headers} and (self.token or self.user):
            raise ConfigurationError(
                "headers.Authorization: expected it, or token, or user and password, found two of them"
            )
        self._check_client()
        for name, value in self.headers.items():
            if not _NAME.fullmatch(name):
                raise ConfigurationError(f"headers: expected the name of a header, found {name!r}")
            _check_header(f"headers.{name}", value)
        _check_header("token", self.token or "")

    def _check_client(self) -> None:
        needed = {
            "token_url": self.token_url,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
        }
        missing = [name for name, value in needed.items() if not value]
        if len(missing) == len(needed):
            if self.scope is not None or self.token_params:
                raise ConfigurationError("token_url: expected it with scope and token_params")
            return
        if missing:
            raise ConfigurationError(
                f"{missing[0]}: expected token_url, client_id and client_secret together, found no {missing[0]}"
            )
        if not _BASE.fullmatch(self.token_url or ""):
            raise ConfigurationError(f"token_url: expected {EXPECTED_ADDRESS}, found something else")
        named = {name.lower() for name in self.headers}
        if self.token or self.user is not None or "authorization" in named:
            raise ConfigurationError(
                "token_url: expected it, or token, or user and password, or headers.Authorization, found two of them"
            )

    @property
    def sent_headers(self) -> dict[str, str]:
        """The headers of each request, including credentials."""
        if self.token is not None:
            return {**self.headers, "Authorization": f"Bearer {self.token}"}
        return (
            {**self.headers, "Authorization": f"Basic {self._basic}"}
            if self.user is not None
            else {**self.headers}
        )

    @property
    def _basic(self) -> str:
        return b64encode(f"{self.user}:{self.password or ''}".encode()).decode()

    @property
    def basic_client(self) -> str:
        """The client's escaped name and secret for basic authentication (RFC 6749, section 2.3.1)."""
        named = (quote_plus(self.client_id or ""), quote_plus(self.client_secret or ""))
        return b64encode(":".join(named).encode()).decode()

    def url(self, path: str) -> str:
        """Return the address of a path."""
        return f"{self.base_url.rstrip('/')}/{path.lstrip('/')}"

    def trusts(self, url: str) -> bool:
        """Return whether credentials may go to an address.

        They may go to the host of ``base_url``, and to ``hosts`` with the same scheme.
        """
        own, target = _origin(self.base_url), _origin(url)
        if own is None or target is None:
            return False
        return target == own or target in {_origin(f"{own[0]}://{host}") for host in self.hosts}

    def redact_url(self, url: str) -> str:
        """Return an address for people, without user, fragment and secret values."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        pairs = [
            (name, _HIDDEN if self._hides(name) else value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        query = f"?{urlencode(pairs, safe='*:,/')}" if pairs else ""
        return self.hide(f"{parts.scheme}://{host}{parts.path}{query}")

    def hide(self, text: str) -> str:
        """Return a text with the secrets of at least 4 letters replaced, in plain or escaped form."""
        return without_secrets(text, self._secrets, _HIDDEN)

    @property
    def _secrets(self) -> list[str]:
        named = [*self.headers.items(), *self.params.items()]
        values = [value for name, value in named if self._hides(name)]
        # Of "Bearer x" the word tells nothing, and an answer may quote x alone.
        values += [part for value in values for part in value.split()]
        values += [value for name, value in self.token_params.items() if self._hides(name)]
        secrets = (
            self.password,
            self.token,
            self.client_secret,
            self.access_token.text,
            *self.access_token.earlier,
        )
        values += [value for value in secrets if value is not None]
        if self.user is not None:
            values.append(self._basic)
        if self.client_secret is not None:
            values.append(self.basic_client)
        return values

    def _hides(self, name: str) -> bool:
        return name in self.hidden or is_secret_parameter(name)

    def __str__(self) -> str:
        """Return the address, which contains no secret."""
        return self.base_url


def _origin(url: str) -> Origin | None:
    """Return scheme, host and port; None if it is no HTTP address."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            return None
        return parts.scheme, parts.hostname.lower(), parts.port or _PORTS[parts.scheme]
    except ValueError:
        return None


def _check_header(key: str, value: str) -> None:
    """Refuse a value that would end a header: the client's own error would quote it."""
    if value != value.strip() or not value.isprintable() or not value.isascii():
        raise ConfigurationError(
            f"{key}: expected printable ASCII without line ends, and without blanks at either end"
        )
