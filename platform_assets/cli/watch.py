"""``strandline watch``: one process that stays, looks for new work every few seconds, and runs it in itself."""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress

import click

from platform_assets.cli.context import Context, shared
from platform_assets.cli.running import instance
from platform_assets.cli.signals import signalled
from platform_assets.cli.watching import Watch
from platform_assets.dagster_home import at_home, project_home
from resources.watch.bell import bell
from resources.watch.file_events import FileEvents
from resources.watch.only_one import only_one

_SETTLED = 0.1
"""Seconds after a file's event in which others may come that are loaded with it."""


@click.command("watch")
@click.argument("names", nargs=-1)
@click.option(
    "--every", default=2.0, show_default=True, type=click.FloatRange(0.1), help="Seconds between two looks."
)
@click.option(
    "--runs",
    default=4,
    show_default=True,
    type=click.IntRange(1),
    help="Dataflows that are loaded beside each other, at most.",
)
@shared
def command(context: Context, names: tuple[str, ...], every: float, runs: int) -> int:
    """Load what arrives, seconds after it came. Ctrl-C ends it, after the runs that are under way."""
    if context.now is not None:
        raise click.UsageError("--now: a process that stays goes by this machine's clock")
    context.dataflows(names)  # what is wrong with the names or the settings is told before anything is opened
    folder = context.project.folder
    with ExitStack() as stack:
        rung = stack.enter_context(bell())
        ended = stack.enter_context(signalled(rung.ring))
        lock = project_home(folder).parent / "watch.lock"
        stack.enter_context(only_one(lock, "`strandline watch` of this project"))
        home = stack.enter_context(at_home(folder))
        dagster = stack.enter_context(instance(folder, captures=False))
        assert dagster is not None, "at_home has set DAGSTER_HOME"
        watch = Watch(context, names, dagster, runs, rung.ring)
        stack.callback(watch.end)
        events = stack.enter_context(FileEvents.ringing(rung.ring))
        with suppress(OSError):
            click.echo(f"watching {', '.join(watch.names)}, every {every:g} s; Dagster's runs: {home}")
        while not ended.is_set():
            looked = time.monotonic()
            watch.look(ended.is_set)
            events.follow(watch.folders)
            remaining = looked + every - time.monotonic()
            if not ended.is_set() and rung.wait(max(0.0, remaining)):
                time.sleep(_SETTLED)
    return 0
