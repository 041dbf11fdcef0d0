"""Why a request got no answer, in words for people."""

from __future__ import annotations

from typing import Any

_WORDS = {
    "ConnectTimeout": "no connection in time",
    "ReadTimeout": "nothing came in time",
    "ReadTimeoutError": "nothing came in time",
    "ProxyError": "the proxy does not answer",
    "IncompleteRead": "it was cut off",
    "ProtocolError": "it was cut off",
    "ChunkedEncodingError": "it was cut off",
    "DecodeError": "it could not be unpacked",
    "NameResolutionError": "the host has no address",
    "NewConnectionError": "the connection was refused",
    "RemoteDisconnected": "the connection was closed",
    "ConnectionResetError": "the connection was reset",
    "ConnectionRefusedError": "the connection was refused",
}
"""By the class of an error, of the HTTP library or of Python."""


def why_no_answer(error: Exception) -> str:
    """Return what went wrong with a connection in words for people: the texts of libraries quote addresses, and may quote headers."""
    seen: Any = error
    words = "the connection failed"
    for _ in range(6):
        of_system = seen.strerror if isinstance(seen, OSError) else None
        words = _WORDS.get(type(seen).__name__) or (of_system.lower() if of_system else words)
        inner = getattr(seen, "reason", None) or seen.__cause__ or seen.__context__
        inner = inner or next(
            (argument for argument in getattr(seen, "args", ()) if isinstance(argument, Exception)), None
        )
        if not isinstance(inner, Exception):
            break
        seen = inner
    return words
