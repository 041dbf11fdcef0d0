"""The servers that a command has asked: one that did not answer is not asked again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partitions.errors import SourceUnreachable
from resources.connections.places import Place


class Servers:
    """The servers of sources. A server that did not answer is not asked again for the other dataflows that read from it."""

    def __init__(self) -> None:
        self._silent: dict[str, str] = {}

    @contextmanager
    def answering_for(self, place: Place) -> Iterator[None]:
        """Ask the server of a place, and remember if it does not answer.

        Raises:
            SourceUnreachable: if it did not answer now, or before.
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
