"""A real HTTP API in a thread of the test process: pages of rows, a log, and scripted faults.

Belongs here: the server, and dataflows that read it. It pages in every way at once: a request chooses by
its parameters.
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from resources.connections.api import ApiConnection
from resources.spark.engine import SparkEngine
from tests.support.columns import Columns
from tests.support.feed import Feed
from tests.support.http import QuietHandler, Server, serving

TOKEN = "s3cr3t-t0ken-0123456789"
SIZE = 3
ITEMS = "data.items"
BY_TIME = {"watermark_param_mapping": {"at": "since"}, "watermark_to_param": "until"}
SCHEMA = "id long, at timestamp, value long"

Row = dict[str, Any]


class ApiRequest(NamedTuple):
    """A request as it arrived.

    Attributes:
        params: the parameters of its query.
        body: its body as JSON, with all digits; None without one.
    """

    method: str
    path: str
    params: dict[str, str]
    body: Any
    headers: Mapping[str, str]


class TokenRequest(NamedTuple):
    """A request for a token.

    Attributes:
        authorization: its header.
    """

    form: dict[str, str]
    authorization: str


class Api(Server):
    """Answers with rows whose time ``at`` is in [``since``, ``until``) and whose id is above ``since_id``.

    Attributes:
        rows: the rows in the order of the answers.
        log: all requests.
        faults: what happens to the next requests instead, one each; None: nothing.
        tokens: the answers to requests for tokens, at ``/token``, one each.
        forms: the requests for tokens.
        ignored: parameters that it ignores.
        size: rows of a page, unless ``size`` or ``limit`` says otherwise.
        packed: whether answers are compressed with gzip.
        time: the field of a record's time.
        most: the most rows of one query; None: no limit.
        total: the number of records that answers announce; None: the true one.
        reads: parses the text of a bound.
        most_at_once: the most requests in progress at once.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.rows: list[Row] = []
        self.log: list[ApiRequest] = []
        self.faults: deque[Callable[[_Handler], None] | None] = deque()
        self.tokens: deque[Callable[[_Handler], None]] = deque()
        self.forms: list[TokenRequest] = []
        self.ignored: set[str] = set()
        self.size = SIZE
        self.packed = False
        self.time = "at"
        self.total: int | None = None
        self.most: int | None = None
        self.reads: Callable[[str], datetime] = datetime.fromisoformat
        self.most_at_once = self._at_once = 0
        self._counting = Lock()

    @property
    def url(self) -> str:
        """Return its address."""
        return f"http://127.0.0.1:{self.port}/v1"

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request while it is in progress."""
        with self._counting:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            yield
        finally:
            with self._counting:
                self._at_once -= 1

    def connection(self, **more: Any) -> ApiConnection:
        """Return a connection to it."""
        return ApiConnection(self.url, token=TOKEN, **more)

    def requested(self, *names: str) -> list[tuple[str | None, ...]]:
        """Return these parameters of all requests."""
        return [tuple(request.params.get(name) for name in names) for request in self.log]

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that have gone."""

    def answer_to(self, request: ApiRequest) -> dict[str, Any]:
        """Return a page."""
        parameters = {**request.params, **(request.body or {})}
        parameters = {name: value for name, value in parameters.items() if name not in self.ignored}
        rows = [row for row in self.rows if _is_wanted(row, row.get(self.time), parameters, self.reads)][
            : self.most
        ]
        size = int(parameters.get("size") or parameters.get("limit") or self.size)
        start = int(parameters.get("cursor") or parameters.get("offset") or 0)
        if "page" in parameters:
            start = (int(parameters["page"]) - 1) * size
        if (
            not {"page", "offset", "limit", "size", "paged"} & parameters.keys()
            and "cursor" not in parameters
        ):
            return {"data": {"items": rows}, "meta": {"total": self._announced(rows)}}
        following = start + size if start + size < len(rows) else None
        link = None
        if following is not None:
            query = urlencode({**parameters, "offset": following})
            link = f"{self.url}{request.path.removeprefix('/v1')}?{query}"
        return {
            "data": {"items": rows[start : start + size]},
            "next": following,
            "link": link,
            "more": following is not None,
            "last": following is None,
            "meta": {"total": self._announced(rows)},
        }

    def _announced(self, rows: list[Row]) -> int:
        return len(rows) if self.total is None else self.total


def _is_wanted(row: Row, at: Any, parameters: Mapping[str, Any], reads: Callable[[str], datetime]) -> bool:
    when = datetime.fromisoformat(at) if isinstance(at, str) else None
    if when is not None:
        if "since" in parameters and when < reads(parameters["since"]):
            return False
        if "until" in parameters and when >= reads(parameters["until"]):
            return False
    if "since_id" in parameters and row["id"] <= int(parameters["since_id"]):
        return False
    if "until_id" in parameters and row["id"] > int(parameters["until_id"]):
        return False
    return "unit" not in parameters or row.get("unit") == parameters["unit"]


class _Handler(QuietHandler):
    server: Api

    def do_GET(self) -> None:  # noqa: N802 - the library's name
        """Send a page, or a fault."""
        length = int(self.headers.get("Content-Length") or 0)
        if self.path == "/v1/token":
            form = dict(parse_qsl(self.rfile.read(length).decode()))
            self.server.forms.append(TokenRequest(form, self.headers.get("Authorization") or ""))
            self.server.tokens.popleft()(self)
            return
        body = json.loads(self.rfile.read(length), parse_float=Decimal) if length else None
        parts = urlsplit(self.path)
        request = ApiRequest(self.command, parts.path, dict(parse_qsl(parts.query)), body, dict(self.headers))
        self.server.log.append(request)
        fault = self.server.faults.popleft() if self.server.faults else None
        with self.server.counted():
            if fault is not None:
                fault(self)
                return
            document = self.server.answer_to(request)
            link = {"Link": f'<{document["link"]}>; rel="next"'} if document.get("link") else {}
            following = document.get("next")
            total = {"X-Total": str(document["meta"]["total"])}
            self.json(document, link | total | ({} if following is None else {"X-Next": str(following)}))

    do_POST = do_GET  # noqa: N815 - the library's name

    def json(self, document: Any, headers: Mapping[str, str] | None = None, status: int = 200) -> None:
        """Answer with a document."""
        content = json.dumps(document).encode()
        more = {"Content-Type": "application/json; charset=utf-8", **(headers or {})}
        if self.server.packed:
            content, more = gzip.compress(content), {**more, "Content-Encoding": "gzip"}
        self.answer(status, more, content)


Fault = Callable[[_Handler], None]


def status(code: int, text: str = "", **headers: str) -> Fault:
    """Answer with a status; ``Retry_After`` is the header ``Retry-After``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.answer(code, named, text.encode())


def content(text: str, kind: str = "application/json") -> Fault:
    """Answer with a text of a type."""
    return lambda handler: handler.answer(200, {"Content-Type": kind}, text.encode())


def given_token(text: str, **more: Any) -> Fault:
    """Answer a request for a token."""
    return lambda handler: handler.json({"access_token": text, "token_type": "Bearer", **more})


def page(*rows: Row, **rest: Any) -> Fault:
    """Answer with these rows, whatever the request."""
    return lambda handler: handler.json({"data": {"items": list(rows)}, **rest})


def cut_off(handler: _Handler) -> None:
    """Announce more bytes than come, and close the connection."""
    handler.answer(
        200, {"Content-Type": "application/json", "Content-Length": "1000"}, b'{"data": {"items": ['
    )
    handler.close_connection = True


def reset(handler: _Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def endless(handler: _Handler) -> None:
    """Send a page that does not end, until the client has enough."""
    handler.send_response_only(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.close_connection = True
    with suppress(OSError):
        piece = b'{"data": {"items": ['
        while True:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            piece = b'{"id": 1},' * 1000


def redirect(target: str, code: int = 302) -> Fault:
    """Redirect to another address."""
    return lambda handler: handler.answer(code, {"Location": target})


@contextmanager
def api() -> Iterator[Api]:
    """Run a server."""
    with serving(Api()) as server:
        yield server


@dataclass
class ApiFeed:
    """A dataflow with a column watermark over an API, with a project of its own.

    Attributes:
        server: its source.
        source: keys of the source beside connection and path.
        definition: other keys of the dataflow.
    """

    folder: Path
    engine: SparkEngine
    server: Api
    source: Mapping[str, Any] = field(default_factory=dict)
    definition: Mapping[str, Any] = field(default_factory=dict)

    def flow(self) -> Columns:
        """Return the dataflow."""
        return Columns(self.feed())

    def feed(self) -> Feed:
        """Return the dataflow, of any kind."""
        source = {"type": "api", "connection": "shop", "path": "/rows", "records": ITEMS, **self.source}
        connection = {"type": "api", "base_url": self.server.url, "token": {"env": "SHOP_TOKEN"}}
        return Feed(
            self.folder,
            self.engine,
            {"watermark": {"type": "column", "columns": ["at"]}, **self.definition, "source": source},
            {"connections": {"shop": connection}},
            {"SHOP_TOKEN": TOKEN},
        )
