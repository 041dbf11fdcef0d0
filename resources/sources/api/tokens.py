"""Tokens that an authorization server gives to a client: OAuth 2.0, client credentials (RFC 6749, section 4.4)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, shorten_to_line
from resources.connections.api import ApiConnection
from resources.sources.api.no_answer import why_no_answer

if TYPE_CHECKING:
    import requests

_SECONDS = 30.0
"""For an answer, and how long before its end a token is not used any more, at most."""
_USUAL_SECONDS = 300.0
"""How long a token is used whose end the server does not tell."""
_MOST_BYTES = 1 << 20
_QUOTED = 300


class PassingRefusal(Exception):
    """No token now; there may be one the next time. Its text shows no secret."""


def bearer_token(connection: ApiConnection, session: requests.Session) -> str:
    """Return a token for an API: the one that was given last, or a new one.

    Args:
        connection: with a ``token_url``.
        session: that asks for it.

    Raises:
        PassingRefusal: the server does not answer, or is in trouble.
        SourceError: code ``source_denied``: it gives none.
    """
    given = connection.access_token
    if given.text is None or time.monotonic() >= given.ends:
        text, seconds = _asked_for(connection, session)
        given.replace(text, time.monotonic() + seconds - min(_SECONDS, seconds / 2))
        return text
    return given.text


def forget_token(connection: ApiConnection) -> bool:
    """Use the token no more, since the API does not let it in; return whether it did before, so that a new one may help.

    Its text is kept, so that no error shows it.
    """
    given = connection.access_token
    was_accepted = given.is_accepted
    given.ends, given.is_accepted = 0.0, False
    return was_accepted


def _asked_for(connection: ApiConnection, session: requests.Session) -> tuple[str, float]:
    """A new token, and for how many seconds it serves."""
    import requests
    from urllib3.exceptions import HTTPError

    url = connection.token_url or ""
    where = f"API {connection}, a token of {url}"
    form = {"grant_type": "client_credentials", **connection.token_params}
    if connection.scope is not None:
        form["scope"] = connection.scope
    headers = {"Accept": "application/json", "User-Agent": "strandline"}
    if connection.client_auth == "basic":
        headers["Authorization"] = f"Basic {connection.basic_client}"
    else:
        form |= {"client_id": connection.client_id or "", "client_secret": connection.client_secret or ""}
    request = requests.Request("POST", url, data=form, headers=headers).prepare()
    settings = session.merge_environment_settings(url, {}, True, None, None)
    try:
        with session.send(request, timeout=_SECONDS, allow_redirects=False, **settings) as response:
            body = response.raw.read(_MOST_BYTES, decode_content=True)
    except requests.exceptions.SSLError:
        raise SourceError(
            f"{where}: expected a certificate that can be trusted, found another, or TLS that does not fit. Correct token_url, or name the"
            " authority's file in the variable REQUESTS_CA_BUNDLE",
            code="source_tls",
        ) from None
    except (requests.RequestException, HTTPError, OSError) as error:
        raise PassingRefusal(f"{where}: expected an answer, found none ({why_no_answer(error)})") from None
    if response.status_code == 429 or response.status_code >= 500:
        raise PassingRefusal(f"{where}: expected a token, found HTTP {response.status_code}")
    answer = _parsed(body)
    token = answer.get("access_token")
    if response.status_code != 200 or not isinstance(token, str) or not token:
        said = answer.get("error") or (
            "an answer without access_token" if response.status_code == 200 else ""
        )
        found = f"HTTP {response.status_code} {connection.hide(shorten_to_line(str(said), _QUOTED))}".rstrip()
        raise SourceError(
            f"{where}: expected a token, found {found}. Correct client_id, client_secret, scope or token_params of the connection in platform.yaml;"
            " client_auth: body sends the client's secret in the form",
            code="source_denied",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(
            f"{where}: expected a token of printable ASCII, found another. Correct token_url of the connection in platform.yaml",
            code="source_denied",
        )
    return token, _seconds(answer.get("expires_in"))


def _parsed(body: bytes) -> dict[str, Any]:
    import json

    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _seconds(value: Any) -> float:
    try:
        return max(1.0, float(value))
    except (TypeError, ValueError):
        return _USUAL_SECONDS
