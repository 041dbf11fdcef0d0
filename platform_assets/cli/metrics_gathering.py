"""Gathers the metrics of a project, and serves them to Prometheus.

What is read is what ``strandline list`` shows. Starts no Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import click

from partitions.errors import StrandlineError, shorten_to_line
from platform_assets.cli.gathering import StatusGathering, dagster_runs, unknown_status
from platform_assets.cli.metrics_text import families
from platform_assets.cli.several import collect_results
from platform_assets.platform import build_platform
from platform_assets.project import InvalidProject, Project, load_project

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Command = TypeVar("Command", bound=Callable[..., Any])

_FRESH_SECONDS = 15.0
"""A scrape gathers again after this time: two scrapers, or one every second, cost the sources no more."""

_WAIT_SECONDS = 5.0
"""The longest wait of a scrape for a gathering; Prometheus gives up after 10. It gets the last one then."""


@dataclass
class MetricsGathering:
    """Gathers the metrics of a project's dataflows; remembers when each source last answered."""

    _last_looks: dict[str, float] = field(default_factory=dict)

    def gather(
        self, project: Project, names: Sequence[str] = (), now: datetime | None = None
    ) -> list[Metric]:
        """Return the metrics of these dataflows as they are now; of all without names.

        Args:
            project: the loaded project.
            names: the dataflows.
            now: the clock; None: the real one.

        Raises:
            StrandlineError: the project's settings have errors, or a name is unknown.
        """
        started, now = time.monotonic(), now or datetime.now(UTC)
        valid = [name for name in names if name not in project.broken]
        flows = project.named(valid) if valid or not names else []
        broken = {
            name: InvalidProject(errors)
            for name, errors in project.broken.items()
            if not names or name in names
        }
        with dagster_runs(project) as dagster:
            gathering = StatusGathering(build_platform(project), now, dagster)
            documents, _ = collect_results(
                flows, gathering.status, unknown_status, broken, raises_alone=False
            )
        for document in documents:
            waiting = document.get("waiting")
            if waiting is not None and waiting["why"] is None and "error" not in document:
                self._last_looks[document["dataflow"]] = now.timestamp()
            document["last_look"] = self._last_looks.get(document["dataflow"])
        return list(families(documents, now.timestamp(), time.monotonic() - started))


@dataclass(eq=False)
class MetricsEndpoint:
    """Serves metrics, gathered in the background when a scrape finds them old.

    Attributes:
        project: the project, whose files may change.
        gathering: gathers the metrics.
        names: the dataflows; empty for all.
        report: called with each new reason why metrics cannot be gathered.
    """

    project: Project
    gathering: MetricsGathering
    names: Sequence[str]
    report: Callable[[str], None]
    _metrics: list[Metric] = field(default_factory=list)
    _gathered: float = float("-inf")
    _thread: Thread | None = None
    _lock: Lock = field(default_factory=Lock)
    _last_problem: str = ""

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, at most some seconds old unless a source keeps the gathering waiting."""
        with self._lock:
            is_idle = self._thread is None or not self._thread.is_alive()
            if is_idle and time.monotonic() - self._gathered >= _FRESH_SECONDS:
                self._thread = Thread(target=self._gather, name="strandline-metrics", daemon=True)
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(_WAIT_SECONDS)
        yield from self._metrics

    def describe(self) -> list[Metric]:
        """Return nothing: the registry need not gather to learn the names."""
        return []

    def _gather(self) -> None:
        try:
            project = load_project(self.project.folder, env=self.project.env or "")
            self._metrics = self.gathering.gather(project, self.names)
            self._last_problem = ""
        except StrandlineError as error:
            self._report(error.message)
        except Exception as error:  # noqa: BLE001 - whatever is wrong, the loads go on
            self._report(f"{type(error).__name__}: {error}")
        self._gathered = time.monotonic()

    def _report(self, problem: str) -> None:
        line = f"metrics cannot be gathered: {shorten_to_line(problem)}"
        if line != self._last_problem:
            self._last_problem = line
            self.report(line)


def metrics_options(command: Command) -> Command:
    """Give a command the options of the endpoint, as its arguments ``metrics_port`` and ``metrics_host``."""
    port = click.option(
        "--metrics-port",
        type=click.IntRange(0, 65535),
        help="Port of Prometheus' metrics, such as 9464; 0 is a free one. Without it there are none.",
    )
    host = click.option(
        "--metrics-host",
        default="127.0.0.1",
        show_default=True,
        help="Address that the metrics are served at; they have no login.",
    )
    return host(port(command))


@contextmanager
def serve_metrics(
    project: Project, names: Sequence[str], host: str, port: int | None, say: Callable[[str], None]
) -> Iterator[None]:
    """Serve the metrics of a project inside the block, and say where; do nothing without a port.

    Raises:
        StrandlineError: the port is taken, or the host is none of this machine's.
    """
    if port is None:
        yield
        return
    from prometheus_client import CollectorRegistry, start_http_server

    endpoint = MetricsEndpoint(project, MetricsGathering(), names, say)
    registry: Any = CollectorRegistry(support_collectors_without_names=True)
    registry.register(endpoint)
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise StrandlineError(
            f"expected {host}:{port} to be free for metrics, found: {error.strerror or error}. Choose another "
            "port or address with --metrics-port and --metrics-host",
            code="metrics",
        ) from error
    shown_host = f"[{host}]" if ":" in host else host
    say(f"metrics: http://{shown_host}:{server.server_port}/metrics")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
