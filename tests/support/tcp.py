"""A TCP proxy before a database that acts in the middle of an answer, and may cut the connection."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Condition, Thread
from typing import Any

from tests.support.http import serving

_RESET = struct.pack("ii", 1, 0)
"""Of SO_LINGER: closing sends RST instead of what is left."""


_PATIENCE = 20


@dataclass
class Breakage:
    """An event in the middle of an answer.

    Attributes:
        after: the bytes of answers on one connection.
        happens: called once, by the first connection that gets so far.
        cuts: whether the connection is then reset.
        happened: whether it has happened.
        connections: how many connections were opened in all.
        open: how many are open.
    """

    after: int = 0
    happens: Callable[[], Any] | None = None
    cuts: bool = False
    happened: bool = False
    connections: int = 0
    open: int = 0
    lock: Condition = field(default_factory=Condition)

    def passes(self, amount: int) -> bool:
        """Return whether a connection with so many bytes stays open."""
        with self.lock:
            if (self.happens is None and not self.cuts) or self.happened or amount < self.after:
                return True
            self.happened = True
        if self.happens is not None:
            self.happens()
        return not self.cuts


class TcpProxy(ThreadingTCPServer):
    """Passes bytes on to a port of the loopback interface."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.breakage = Breakage()
        self.away = False

    @property
    def port(self) -> int:
        """Return its port."""
        return int(self.server_address[1])

    @property
    def left_open(self) -> int:
        """Return how many connections stay open, after a while in which others may end."""
        with self.breakage.lock:
            self.breakage.lock.wait_for(lambda: not self.breakage.open, _PATIENCE)
            return self.breakage.open

    def stop_listening(self) -> None:
        """Cut off all new connections."""
        self.away = True

    def listen_again(self) -> None:
        """Accept connections again."""
        self.away = False

    def break_off(self, after: int, happens: Callable[[], Any] | None = None, *, cuts: bool = False) -> None:
        """Let something happen once, in the middle of an answer of so many bytes."""
        self.breakage.after, self.breakage.happens, self.breakage.cuts = after, happens, cuts
        self.breakage.happened = False


class _Handler(BaseRequestHandler):
    server: TcpProxy

    def handle(self) -> None:
        breakage = self.server.breakage
        if self.server.away:
            self._reset()
            return
        with breakage.lock:
            breakage.connections += 1
            breakage.open += 1
        try:
            with suppress(OSError), closing(self._upstream()) as upstream:
                Thread(target=_pass, args=(self.request, upstream), daemon=True).start()
                self._answers(upstream)
        finally:
            with breakage.lock:
                breakage.open -= 1
                breakage.lock.notify_all()

    def _reset(self) -> None:
        """Make the connection end with a reset."""
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

    def _upstream(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.upstream), timeout=60)

    def _answers(self, upstream: socket.socket) -> None:
        amount = 0
        while data := upstream.recv(1 << 14):
            amount += len(data)
            if not self.server.breakage.passes(amount):
                self._reset()
                return
            self.request.sendall(data)


def _pass(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 14):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def proxied(upstream: int) -> Iterator[TcpProxy]:
    """Run a proxy."""
    with serving(TcpProxy(upstream)) as server:
        yield server
