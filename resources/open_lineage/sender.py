"""Sends events in a thread of its own, so that a slow catalog delays no run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from queue import Full, Queue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from partitions.errors import ConfigurationError, shorten_to_line

if TYPE_CHECKING:
    from openlineage.client import OpenLineageClient

_MAX_WAITING = 100
"""The most events that wait for a catalog; more are dropped, so that a long outage takes no memory."""

MISSING = "the package openlineage-python is missing: pip install 'strandline[lineage]'"


class CatalogAddress(NamedTuple):
    """The address of a catalog, and the key that it asks for."""

    url: str
    api_key: str | None = None


@dataclass(eq=False)
class EventSender:
    """The catalog that gets the events of a project's runs.

    Attributes:
        namespace: the namespace of the jobs.
        version: the product's version.
        find: returns the catalog; None: openlineage-python's own variables and files say where it is.
        timeout: the longest that a run waits for its events, in seconds.
        hide: takes secrets out of texts.
    """

    namespace: str
    version: str
    find: Callable[[], CatalogAddress | None] = lambda: None
    timeout: float = 2.0
    hide: Callable[[str], str] = str
    _lock: Lock = field(default_factory=Lock, repr=False)
    _waiting: Queue[tuple[Callable[[], Any], Future[None]]] = field(
        default_factory=lambda: Queue(_MAX_WAITING), repr=False
    )
    _thread: Thread | None = field(default=None, repr=False)

    def send(self, make: Callable[[], Any]) -> Future[None]:
        """Send the event that a function makes, later and elsewhere; the future says how it went."""
        sent: Future[None] = Future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._work, name="strandline-lineage", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait((make, sent))
        except Full:
            sent.set_exception(ConfigurationError(f"{_MAX_WAITING} events wait for it already"))
        return sent

    def problem(self, sent: Future[None]) -> str | None:
        """Return why an event was not sent, after a short wait; None if it was."""
        try:
            sent.result(self.timeout)
        except TimeoutError:
            return f"no answer within {self.timeout:g} s"
        except Exception as error:  # noqa: BLE001 - whatever a catalog or its library does, the run is over
            return self.hide(shorten_to_line(f"{error}" or type(error).__name__, 300))
        return None

    @cached_property
    def client(self) -> OpenLineageClient:
        """The library's client.

        Raises:
            ConfigurationError: the library is missing, or nothing says where the catalog is, or a variable
                of the environment is not set.
        """
        try:
            from openlineage.client import OpenLineageClient
            from openlineage.client.transport.console import ConsoleTransport
            from openlineage.client.transport.http import HttpConfig, HttpTransport
        except ImportError as error:
            raise ConfigurationError(MISSING) from error
        catalog = self.find()
        if catalog is None:
            client = OpenLineageClient()
            if isinstance(client.transport, ConsoleTransport) and not client.config.transport:
                raise ConfigurationError(
                    "expected lineage.openlineage.url in platform.yaml, or the environment variable "
                    "OPENLINEAGE_URL or OPENLINEAGE_CONFIG, found none of them"
                )
            return client
        auth = {"auth": {"type": "api_key", "apiKey": catalog.api_key}} if catalog.api_key else {}
        # The run has no patience for the library's five attempts.
        config = {"url": catalog.url, "timeout": self.timeout, "retry": {"total": 0}, **auth}
        return OpenLineageClient(transport=HttpTransport(HttpConfig.from_dict(config)))

    @property
    def destination(self) -> str:
        """Where events go, for people.

        Raises:
            ConfigurationError: as for :attr:`client`.
        """
        transport = self.client.transport
        host = urlsplit(getattr(transport, "url", "") or "").netloc.rpartition("@")[2]
        return host or f"the transport {transport.kind} of openlineage-python"

    def _work(self) -> None:
        while True:
            make, sent = self._waiting.get()
            try:
                self.client.emit(make())
                sent.set_result(None)
            except Exception as error:  # noqa: BLE001 - the run's thread tells it
                sent.set_exception(error)
