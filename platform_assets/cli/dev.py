"""``strandline dev``: the Dagster UI with a warm Spark Connect server beside it; both end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from platform_assets.cli.context import Context, shared
from platform_assets.cli.run import dagster_dir
from platform_assets.platform import CHECKOUT, build_platform
from resources.connect_server import connect_server, stop
from resources.platform import Platform


@click.command("dev")
@click.option("--port", default=3000, show_default=True, type=click.IntRange(1, 65535), help="Of the UI.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The UI listens there; it has no login.")
@shared
def command(context: Context, port: int, host: str) -> int:
    """Open the Dagster UI on this machine, with a warm engine. Ctrl-C ends both."""
    project = context.project
    platform = build_platform(project)
    environment = _environment(project.folder)
    signal.signal(signal.SIGTERM, _interrupt)
    remote = project.spark_settings.remote
    if remote:
        click.echo(f"Spark Connect server {remote} is named by the settings; none is started")
        return _serve(environment, host, port)
    log = Path(environment["STRANDLINE_DAGSTER_DIR"]) / "connect-server.log"
    click.echo("starting a Spark Connect server (about 10 s) …")
    with connect_server(_engine(platform, context), log) as url:
        click.echo(f"Spark Connect server: {url} (log: {log})")
        return _serve(environment | {"STRANDLINE_SPARK_REMOTE": url}, host, port)


def _engine(platform: Platform, context: Context) -> Any:
    """One engine for all dataflows, so with the jars and credentials of every place of the project."""
    places = [platform.lake, *(platform.source_of(flow) for flow in context.project.dataflows.values())]
    return platform.spark.with_places(places)


def _environment(folder: Path) -> dict[str, str]:
    environment = dict(os.environ)
    environment.setdefault("DAGSTER_HOME", str(CHECKOUT))
    environment.setdefault("STRANDLINE_DAGSTER_DIR", dagster_dir())
    environment["STRANDLINE_PROJECT"] = str(folder.resolve())
    Path(environment["STRANDLINE_DAGSTER_DIR"]).mkdir(parents=True, exist_ok=True)
    return environment


def _serve(environment: dict[str, str], host: str, port: int) -> int:
    """Run the UI and its daemon until somebody ends them."""
    arguments = [
        sys.executable,
        "-m",
        "dagster",
        "dev",
        "-w",
        str(CHECKOUT / "workspace.yaml"),
        "-h",
        host,
        "-p",
        str(port),
    ]
    click.echo(f"Dagster UI: http://{host}:{port}")
    # A session of its own: Ctrl-C reaches this process alone, which then ends the server tree in order.
    server = subprocess.Popen(
        arguments,
        cwd=CHECKOUT,
        env=environment,
        start_new_session=True,
        preexec_fn=_default_signals,  # noqa: PLW1509 - there are no threads yet
    )
    try:
        return server.wait()
    except KeyboardInterrupt:
        click.echo("ending …", err=True)
        return 0
    finally:
        stop(server)


def _default_signals() -> None:
    """A shell that ignores INT or TERM hands that on, and a server that ignores them cannot be stopped politely."""
    for sent in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sent, signal.SIG_DFL)


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt
