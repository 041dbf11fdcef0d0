"""Access tokens from an authorization server: OAuth 2.0 client credentials (RFC 6749, 4.4)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, shorten_to_line
from resources.connections.api import ApiConnection
from resources.sources.api.no_answer import describe_connection_failure, untrusted_server_error

if TYPE_CHECKING:
    import requests

_SECONDS = 30.0
"""The timeout of an answer, and the longest margin before a token's expiry, in seconds."""
_DEFAULT_LIFETIME = 300.0
"""The lifetime of a token without ``expires_in``, in seconds."""
_MAX_BYTES = 1 << 20
_MAX_QUOTED_LETTERS = 300


class TransientRefusal(Exception):
    """A token request that a retry may cure; its text contains no secret."""


def bearer_token(connection: ApiConnection, session: requests.Session) -> str:
    """Return a token for an API: the current one, or a new one shortly before that expires.

    Args:
        connection: has a ``token_url``.
        session: sends the request.

    Raises:
        TransientRefusal: the server does not answer, or has a problem.
        SourceError: code ``source_denied``: it returns no token.
    """
    state = connection.access_token
    if state.text is None or time.monotonic() >= state.ends:
        text, seconds = _request_token(connection, session)
        state.replace(text, time.monotonic() + seconds - min(_SECONDS, seconds / 2))
        return text
    return state.text


def forget_token(connection: ApiConnection) -> bool:
    """Discard a token that the API refused; return whether it worked before, so that a new one may.

    The text is kept, so that errors still mask it.
    """
    state = connection.access_token
    was_accepted = state.is_accepted
    state.ends, state.is_accepted = 0.0, False
    return was_accepted


def _request_token(connection: ApiConnection, session: requests.Session) -> tuple[str, float]:
    """Return a new token, and its lifetime in seconds."""
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
            body = response.raw.read(_MAX_BYTES, decode_content=True)
    except requests.exceptions.SSLError:
        raise untrusted_server_error(where, "token_url") from None
    except (requests.RequestException, HTTPError, OSError) as error:
        raise TransientRefusal(
            f"{where}: expected an answer, found none ({describe_connection_failure(error)})"
        ) from None
    if response.status_code == 429 or response.status_code >= 500:
        raise TransientRefusal(f"{where}: expected a token, found HTTP {response.status_code}")
    answer = _parse_object(body)
    token = answer.get("access_token")
    if response.status_code != 200 or not isinstance(token, str) or not token:
        reason = answer.get("error") or (
            "an answer without access_token" if response.status_code == 200 else ""
        )
        answer_text = f"HTTP {response.status_code} {connection.hide(shorten_to_line(str(reason), _MAX_QUOTED_LETTERS))}".rstrip()
        raise SourceError(
            f"{where}: expected a token, found {answer_text}. Correct client_id, client_secret, scope or "
            "token_params of the connection in platform.yaml. If the server wants the client's secret in the "
            "form, set client_auth: body",
            code="source_denied",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SourceError(
            f"{where}: expected a token of printable ASCII, found other characters. Correct token_url of the "
            "connection in platform.yaml",
            code="source_denied",
        )
    return token, _seconds(answer.get("expires_in"))


def _parse_object(body: bytes) -> dict[str, Any]:
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
        return _DEFAULT_LIFETIME
