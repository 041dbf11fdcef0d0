"""``strandline metrics``: Prometheus' text about every dataflow, of what ``strandline list`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.metrics_gathering import MetricsGathering

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


@click.command("metrics")
@click.argument("names", nargs=-1)
@shared_options
def command(context: Context, names: tuple[str, ...]) -> int:
    """Print the metrics of all dataflows for Prometheus. Starts no Spark."""
    from prometheus_client import generate_latest

    metrics = MetricsGathering().gather(context.project, names, context.now)
    text = generate_latest(_Gathered(metrics)).decode()
    context.emit({"metrics": text}, lambda: context.write(text))
    return 0


@dataclass(frozen=True)
class _Gathered:
    """Metrics that are gathered, as a collector."""

    metrics: Sequence[Metric]

    def collect(self) -> Sequence[Metric]:
        """Return the metrics."""
        return self.metrics
