"""An address that takes messages, in place of Slack."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


class Receiver:
    """An address that takes JSON, and keeps it."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.status, self.asked = 200, 0
        self.holds_back = Event()
        self.holds_back.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.asked += 1
                receiver.holds_back.wait(60)
                if receiver.status == 200:
                    receiver.taken.append(json.loads(body))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/T00/secretpath"


@contextmanager
def webhook_receiver() -> Iterator[Receiver]:
    """A receiver that runs."""
    receiver = Receiver()
    yield receiver
    receiver.server.shutdown()
    receiver.server.server_close()
