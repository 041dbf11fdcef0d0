"""A TCP proxy before a PostgreSQL server that loses answers, or keeps them back."""

from __future__ import annotations

import socket
import socketserver
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread

_SYNC = b"S\x00\x00\x00\x04"
"""How a statement ends."""

_READY = b"Z\x00\x00\x00\x05I"
"""How the answer to a statement ends that was committed."""


@dataclass
class Faults:
    """The faults to inject, and counts.

    Attributes:
        marker: marks the affected statements: those with these bytes.
        lose: the number of them whose answer is lost after the server has done them.
        frozen: whether no answer to them arrives, while the connection stays open.
        connections: how many connections were opened.
        statements: how many statements were sent.
    """

    marker: bytes = b"INSERT"
    lose: int = 0
    frozen: bool = False
    connections: int = 0
    statements: int = 0


class Wire(socketserver.ThreadingTCPServer):
    """A proxy that passes bytes on, both ways."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.faults = Faults()

    @property
    def port(self) -> int:
        """Return its port."""
        return int(self.server_address[1])


class _Handler(socketserver.BaseRequestHandler):
    server: Wire

    def handle(self) -> None:
        """Pass on until either side ends."""
        self.server.faults.connections += 1
        self._hit = False
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.server.upstream)) as upstream:
            back = Thread(target=self._answers, args=(upstream,), daemon=True)
            back.start()
            with suppress(OSError):
                while data := self.request.recv(1 << 16):
                    self.server.faults.statements += data.count(_SYNC)
                    self._hit = self._hit or self.server.faults.marker in data
                    upstream.sendall(data)
            self._end(upstream)
            back.join()

    def _answers(self, upstream: socket.socket) -> None:
        faults = self.server.faults
        with suppress(OSError):
            while data := upstream.recv(1 << 16):
                if self._hit and faults.frozen:
                    continue
                if self._hit and faults.lose:
                    if data.endswith(_READY):
                        faults.lose -= 1
                        break
                    continue
                self._hit = False
                self.request.sendall(data)
        self._end(upstream)

    def _end(self, upstream: socket.socket) -> None:
        for side in (self.request, upstream):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
