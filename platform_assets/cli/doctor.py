"""``strandline doctor``: tries every part that a run needs, and says of each what works, what doesn't, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import uuid4

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.sources import JdbcSource, TableSource
from platform_assets.cli.context import Context, shared
from platform_assets.platform import build_platform
from resources.jdbc import JdbcConnection
from resources.listing import Budget
from resources.places import Place
from resources.platform import Platform
from resources.readers.look import look_at_database, look_at_table
from resources.watermarks.blobs import open_blobs


@dataclass(frozen=True)
class Finding:
    """One part that was tried.

    Attributes:
        check: what was tried.
        found: what came of it.
        todo: what to do about it; None where it works.
    """

    check: str
    ok: bool
    found: str
    todo: str | None = None


@click.command("doctor")
@click.option("--no-spark", is_flag=True, help="Do not start Spark, which takes some seconds.")
@shared
def command(context: Context, no_spark: bool) -> int:
    """Check Java, Spark, jars, state, lake, sources and Dagster."""
    findings = []
    for tried in _findings(context, no_spark):
        finding = replace(tried, found=context.hide(tried.found))
        findings.append(finding)
        if not context.as_json:
            _people(finding)
    ok = all(finding.ok for finding in findings)
    context.emit({"ok": ok, "checks": [asdict(finding) for finding in findings]}, lambda: None)
    return 0 if ok else 1


def _findings(context: Context, no_spark: bool) -> Iterator[Finding]:
    from resources.spark_runtime import java_problem, java_version

    problem = java_problem()
    yield Finding(
        "java",
        problem is None,
        problem or (java_version() or "").partition("\n")[0],
        problem and "install Java 17 or 21",
    )
    project = context.project
    yield Finding(
        "project",
        not project.errors,
        f"{len(project.dataflows)} dataflows, {len(project.errors)} errors in {project.folder}",
        "strandline validate" if project.errors else None,
    )
    platform = build_platform(project)
    yield _tried(
        "state",
        lambda: _state(platform),
        "check address, credentials and permissions of `state` in platform.yaml",
    )
    yield _tried(
        "lake", lambda: _lake(platform), "check path, credentials and permissions of `lake` in platform.yaml"
    )
    for flow in project.dataflows.values():
        yield _tried(
            f"source {flow.name}", partial(_source, platform, flow), "check `source` and its connection"
        )
    yield _tried("dagster", lambda: _dagster(project.folder), "check DAGSTER_HOME and its dagster.yaml")
    if not no_spark:
        flows = list(project.dataflows.values())
        yield _tried("spark", lambda: _spark(platform, flows), "run `make setup`, which fetches the jars")


def _tried(check: str, act: Callable[[], str], todo: str) -> Finding:
    try:
        return Finding(check, True, act())
    except StrandlineError as error:
        return Finding(check, False, error.message, "; ".join(error.choices) or todo)
    except Exception as error:  # noqa: BLE001 - whatever fails, the other parts are still to be tried
        return Finding(check, False, f"{type(error).__name__}: {error}", todo)


def _state(platform: Platform) -> str:
    """Writing, and refusing to write twice: what the log stands on."""
    blobs, key = open_blobs(platform.state), f".doctor/{uuid4().hex}"
    first = blobs.put_if_absent(key, b"1")  # where this fails there is nothing to delete
    try:
        second = blobs.put_if_absent(key, b"2")
    finally:
        blobs.delete(key)
    if not first or second:
        raise StrandlineError(
            f"{platform.state}: expected the second conditional put of one name to be refused, found that it was taken; use a store that supports If-None-Match"
        )
    return f"{platform.state}: writes, and refuses to write twice"


def _lake(platform: Platform) -> str:
    blobs, key = open_blobs(platform.lake), f".doctor/{uuid4().hex}"
    blobs.put(key, b"1")
    blobs.delete(key)
    return f"{platform.lake}: writes"


def _spark(platform: Platform, flows: Sequence[Dataflow]) -> str:
    engine = platform.spark.with_places([platform.lake, *map(platform.source_of, flows)])
    return f"Spark {engine.session().version}, {engine.remote or engine.master}, {', '.join(engine.packages)}"


def _source(platform: Platform, flow: Dataflow) -> str:
    found = platform.source_of(flow)
    if isinstance(flow.source, JdbcSource) and isinstance(found, JdbcConnection):
        return look_at_database(found, flow.source)
    if isinstance(flow.source, TableSource) and isinstance(found, Place):
        return look_at_table(found, flow.source)
    entry = platform.log.newest(flow.name)
    look = platform.path_flow(flow).peek(entry, datetime.now(UTC), Budget(pages=5, seconds=20.0), None)
    more = "" if look.complete else " or more"
    return f"{platform.source_of(flow)}: reads, {len(look.found.files)}{more} files above the watermark"


def _dagster(project: Path) -> str:
    from platform_assets.build import build_definitions  # noqa: F401 - the import is the check
    from platform_assets.cli.run import instance

    with instance(project) as found:
        return f"{os.environ.get('DAGSTER_HOME', 'no DAGSTER_HOME: runs are not kept')}, {found.get_runs_count()} runs"


def _people(finding: Finding) -> None:
    click.secho(
        f"{'ok  ' if finding.ok else 'FAIL'} {finding.check}: {finding.found}",
        fg=None if finding.ok else "red",
    )
    if finding.todo:
        click.echo(f"     {finding.todo}")
