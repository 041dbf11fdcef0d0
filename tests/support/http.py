"""Servers in a thread of the test process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from threading import Thread
from typing import TypeVar


class Server(ThreadingHTTPServer):
    """A server on a free port of the loopback interface."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        """Return its port."""
        return int(self.server_address[1])


ServerT = TypeVar("ServerT", bound=BaseServer)


@contextmanager
def serving(server: ServerT) -> Iterator[ServerT]:
    """Serve until the block ends."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that keeps connections and writes no log."""

    protocol_version = "HTTP/1.1"
    # One packet an answer: two small ones wait 40 ms for each other's acknowledgement.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the library's name
        """Log nothing."""

    def handle_expect_100(self) -> bool:
        """Let the body come at once: S3A waits 3 s for this line, which would stay in the buffer."""
        goes_on = super().handle_expect_100()
        self.wfile.flush()
        return goes_on

    def answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        """Send an answer; a HEAD keeps the length that its headers give."""
        self.send_response_only(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
