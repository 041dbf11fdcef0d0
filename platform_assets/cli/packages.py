"""``strandline packages``: prints the settings of a Spark Connect server for a project."""

from __future__ import annotations

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.platform import engine_of_project
from resources.spark.packages import as_properties, server_settings


@click.command("packages")
@shared_options
def command(context: Context) -> None:
    """Print the jars and settings that a Spark Connect server for the project needs.

    The output is a file for spark-submit --properties-file.
    """
    engine = engine_of_project(context.project)
    settings = server_settings(engine)
    document = {"packages": list(engine.packages), "settings": settings}
    context.emit(document, lambda: click.echo(as_properties(settings), nl=False))
