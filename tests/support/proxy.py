"""A reverse proxy before an S3 server that counts requests and injects faults."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from threading import Event

from tests.support.http import QuietHandler, Server

_PATIENCE = 120
_SLOW_DOWN = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass
class Record:
    """The requests that went through, and the faults to inject.

    Attributes:
        lists: the LIST calls, each as its path and query.
        heads: the number of HEAD requests.
        puts: the PUT requests, each as its path and whether it was conditional (``If-None-Match``).
        requests: all requests, each as its method and path.
        break_at: from this LIST call on (1 is the first) connections are dropped without an answer.
        lose: the number of PUT requests whose answer is lost after the store has done them.
        lose_at: only those with this in their path.
        busy: the number of requests that are answered with 503 and not passed on.
        hold: the number of PUT requests whose answer is kept back after the store has done them, until
        ``released`` is set.
        delay: the number of PUT requests that reach the store only when ``released`` is set; ``delayed``
        is set when one waits.
        delay_at: only those with this in their path.
        repeat: the number of PUT requests that reach the store twice; the second answer is returned.
        repeat_at: only those with this in their path.
    """

    lists: list[str] = field(default_factory=list)
    heads: int = 0
    puts: list[tuple[str, bool]] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    break_at: int | None = None
    lose: int = 0
    lose_at: str = ""
    busy: int = 0
    hold: int = 0
    delay: int = 0
    delay_at: str = ""
    delayed: Event = field(default_factory=Event)
    repeat: int = 0
    repeat_at: str = ""
    released: Event = field(default_factory=Event)


class CountingProxy(Server):
    """Passes requests on unchanged, Host and signature included."""

    def __init__(self, upstream: int) -> None:
        super().__init__(_Handler)
        self.upstream = upstream
        self.record = Record()


class _Handler(QuietHandler):
    server: CountingProxy

    def _pass(self) -> None:
        if self._breaks():
            self._hang_up()
            return
        if self.server.record.busy:
            self.server.record.busy -= 1
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.answer(503, {"Content-Type": "application/xml"}, _SLOW_DOWN)
            return
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else None
        self._delay()
        if self._repeats():
            self._ask(body)
        response, data = self._ask(body)
        if self._loses() or self._holds():
            self._hang_up()
            return
        headers = {name: value for name, value in response.getheaders() if name.lower() not in _HOP}
        if self.command == "HEAD" and (size := response.getheader("Content-Length")):
            headers["Content-Length"] = size
        self.answer(response.status, headers, data)

    def _ask(self, body: bytes | None) -> tuple[http.client.HTTPResponse, bytes]:
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=20)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(body)
            response = upstream.getresponse()
            return response, response.read()
        finally:
            upstream.close()

    def _delay(self) -> None:
        record = self.server.record
        if self.command == "PUT" and record.delay and record.delay_at in self.path:
            record.delay -= 1
            record.delayed.set()
            record.released.wait(_PATIENCE)

    def _repeats(self) -> bool:
        record = self.server.record
        if self.command != "PUT" or not record.repeat or record.repeat_at not in self.path:
            return False
        record.repeat -= 1
        return True

    def _loses(self) -> bool:
        record = self.server.record
        if self.command != "PUT" or record.lose_at not in self.path or not record.lose:
            return False
        record.lose -= 1
        return True

    def _holds(self) -> bool:
        record = self.server.record
        if self.command != "PUT" or not record.hold:
            return False
        record.hold -= 1
        record.released.wait(_PATIENCE)
        return True

    def _hang_up(self) -> None:
        self.close_connection = True
        self.connection.close()

    def _breaks(self) -> bool:
        record = self.server.record
        record.requests.append((self.command, self.path))
        record.heads += self.command == "HEAD"
        if self.command == "PUT":
            record.puts.append((self.path, self.headers.get("If-None-Match") == "*"))
        if "list-type=2" not in self.path:
            return False
        record.lists.append(self.path)
        return record.break_at is not None and len(record.lists) >= record.break_at

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass  # noqa: N815  http.server's names
