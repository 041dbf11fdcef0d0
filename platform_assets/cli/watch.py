"""``strandline watch``: keeps running, and loads new data every few seconds in its own process."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.metrics_gathering import metrics_options, serve_metrics
from platform_assets.cli.running import instance, print_progress
from platform_assets.cli.signals import catch_end_signals
from platform_assets.cli.watching import Watch
from platform_assets.dagster_home import project_home, use_dagster_home
from resources.watch.file_events import FileEvents
from resources.watch.single_process import single_process
from resources.watch.wake_signal import wake_signal

_SETTLED = 0.1
"""Seconds to wait after a file's event for other files, which are then loaded with it."""


@click.command("watch")
@click.argument("names", nargs=-1)
@click.option(
    "--every",
    default=2.0,
    show_default=True,
    type=click.FloatRange(0.1),
    help="Seconds between two checks for new data.",
)
@click.option(
    "--runs",
    default=4,
    show_default=True,
    type=click.IntRange(1),
    help="The most dataflows that are loaded at once.",
)
@metrics_options
@shared_options
def command(
    context: Context,
    names: tuple[str, ...],
    every: float,
    runs: int,
    metrics_port: int | None,
    metrics_host: str,
) -> int:
    """Load new data seconds after it arrives. Ctrl-C stops it after the runs in progress."""
    if context.now is not None:
        raise click.UsageError("--now: expected no --now, since `watch` uses this machine's clock")
    context.dataflows(names)  # reports wrong names or settings before anything is opened
    folder, env = context.project.folder, context.project.env
    with ExitStack() as stack:
        wake_bell = stack.enter_context(wake_signal())
        ended = stack.enter_context(catch_end_signals(wake_bell.ring))
        lock = project_home(folder, env).parent / "watch.lock"
        stack.enter_context(single_process(lock, "`strandline watch` of this project"))
        home = stack.enter_context(use_dagster_home(folder, env))
        dagster = stack.enter_context(instance(context.project, captures=False))
        assert dagster is not None, "use_dagster_home has set DAGSTER_HOME"
        watch = Watch(context, names, dagster, runs, wake_bell.ring)
        stack.callback(watch.end)
        events = stack.enter_context(FileEvents.ringing(wake_bell.ring))
        stack.enter_context(serve_metrics(context.project, names, metrics_host, metrics_port, print_progress))
        with suppress(OSError):
            environment = f"; environment: {env}" if env else ""
            click.echo(
                f"watching {', '.join(watch.names)}, every {every:g} s{environment}; Dagster's runs: {home}"
            )
        while not ended.is_set():
            started = time.monotonic()
            watch.run_new_work(ended.is_set)
            events.follow(watch.folders)
            remaining = started + every - time.monotonic()
            if not ended.is_set() and wake_bell.wait(max(0.0, remaining)):
                time.sleep(_SETTLED)
    return 0
