"""``strandline prepare``: fetches the project's jars, and lets Spark start faster on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from platform_assets.cli.context import Context, shared_options
from platform_assets.installation import cache_folder
from platform_assets.platform import engine_of_project
from resources.spark.class_archive import is_prepared, prepare_spark
from resources.spark.errors import SparkUnavailable
from resources.spark_runtime import DELTA_PACKAGE, archive_path, jar_settings, remember_jars


@click.command("prepare")
@shared_options
def command(context: Context) -> None:
    """Fetch the jars that the project's dataflows need, and let Spark start faster on this machine.

    For a new machine or an image: a first run then fetches nothing. It takes about a minute.
    """
    cache, packages = cache_folder(), engine_of_project(context.project).packages
    archive = archive_path(cache, (DELTA_PACKAGE,))
    if is_prepared(cache, packages, archive):
        context.emit(_document(cache, packages, None), lambda: click.echo("ready: nothing to do"))
        return
    began, log = time.monotonic(), cache / "prepare.log"
    _notify(f"starting Spark with {', '.join(packages)} …")
    prepared = prepare_spark(cache, packages, archive, log, _notify)
    if prepared.jars is None:
        raise SparkUnavailable(
            f"expected Spark to start with {', '.join(packages)}, found: {prepared.problem}. The whole output is {log}",
            choices=("strandline doctor",),
        )
    remember_jars(cache, packages, prepared.jars)
    document = _document(cache, packages, prepared.problem)
    context.emit(document, lambda: click.echo(_text(prepared.problem, time.monotonic() - began)))


def _document(cache: Path, packages: Sequence[str], problem: str | None) -> dict[str, object]:
    jars = jar_settings(cache, packages).get("spark.jars", "").split(",")
    return {"packages": list(packages), "jars": jars, "problem": problem}


def _notify(line: str) -> None:
    click.echo(f"  {line}", err=True)


def _text(problem: str | None, seconds: float) -> str:
    if problem is None:
        return f"ready after {seconds:.0f} s: runs fetch no jar, and Spark starts some seconds faster"
    return f"ready after {seconds:.0f} s: runs fetch no jar. Spark starts as before, since there is no class-data archive: {problem}"
