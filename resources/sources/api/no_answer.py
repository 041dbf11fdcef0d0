"""Describe why a request got no answer."""

from __future__ import annotations

from typing import Any

from partitions.errors import SourceError

_WORDS = {
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "no data in time",
    "ReadTimeoutError": "no data in time",
    "ProxyError": "the proxy does not answer",
    "IncompleteRead": "the connection broke off",
    "ProtocolError": "the connection broke off",
    "ChunkedEncodingError": "the connection broke off",
    "DecodeError": "its body could not be decompressed",
    "NameResolutionError": "the host has no address",
    "NewConnectionError": "the connection was refused",
    "RemoteDisconnected": "the connection was closed",
    "ConnectionResetError": "the connection was reset",
    "ConnectionRefusedError": "the connection was refused",
}
"""By the name of an error class, of the HTTP library or of Python."""


def describe_connection_failure(error: Exception) -> str:
    """Return why a connection failed, in words.

    The messages of libraries are not used: they quote addresses, and may quote headers.
    """
    current: Any = error
    words = "the connection failed"
    for _ in range(6):
        system_message = current.strerror if isinstance(current, OSError) else None
        words = _WORDS.get(type(current).__name__) or (system_message.lower() if system_message else words)
        inner = getattr(current, "reason", None) or current.__cause__ or current.__context__
        inner = inner or next(
            (argument for argument in getattr(current, "args", ()) if isinstance(argument, Exception)), None
        )
        if not isinstance(inner, Exception):
            break
        current = inner
    return words


def untrusted_server_error(where: str, key: str) -> SourceError:
    """Return the error for a refused certificate or TLS version; ``key`` holds the server's address."""
    return SourceError(
        f"{where}: expected a trusted certificate and a supported TLS version, found neither or one of them "
        f"only. Correct {key}, or name the authority's file in the variable REQUESTS_CA_BUNDLE",
        code="source_tls",
    )
