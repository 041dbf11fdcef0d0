"""A memory of servers that did not answer, so that one command asks each of them once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partitions.errors import SourceUnreachable
from resources.connections.places import Place


class UnreachableServers:
    """The servers that did not answer this command. Other dataflows that read from them fail at once."""

    def __init__(self) -> None:
        self._silent: dict[str, str] = {}

    @contextmanager
    def fail_fast(self, place: Place) -> Iterator[None]:
        """Run the block, which asks a place's server; remember the server if it does not answer.

        Raises:
            SourceUnreachable: if it does not answer now, or did not before.
        """
        connection = place.connection
        server = (connection and connection.endpoint) or place.url.partition("://")[0]
        if server in self._silent:
            raise SourceUnreachable(self._silent[server])
        try:
            yield
        except SourceUnreachable as error:
            self._silent[server] = error.message
            raise
