"""``strandline doctor``: tries every part that a run needs, and reports what works, what does not, and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import uuid4

import click

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, ProviderError, StrandlineError
from partitions.plan import counted
from partitions.readings import source_readings, unit_readings
from platform_assets.cli.context import Context, shared
from platform_assets.installation import INSTALLED
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import ListsNewFiles
from platform_assets.platform import build_engine, build_platform
from platform_assets.project import Project
from platform_assets.sources import OF_A_LOOK, file_count, look_at_source
from resources.connections.api import ApiConnection
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.sources.files.formats.registry import packages_of
from resources.spark.engine import SparkEngine
from resources.spark.log_store import FOR_ALL_SCHEMES, SETTING, log_store_problem
from resources.tables.contract.maintenance import TellsWrongStatistics, WrongStatistics
from resources.tables.registry import PACKAGES, open_table
from resources.user_functions import UserCode
from resources.watermarks.blobs import open_blobs
from resources.watermarks.blobs.protocol import Blobs

_CORRECT = "set the variable, or correct the key, that this names"
_GET_JARS = (
    "the first session fetches Spark's jars: see what the error names"
    if INSTALLED
    else "run `make setup`, which fetches the jars"
)


@dataclass(frozen=True)
class PartCheck:
    """One part that was tried.

    Attributes:
        check: what was tried.
        found: the result.
        todo: what to do about it; None if it works.
    """

    check: str
    ok: bool
    found: str
    todo: str | None = None


_NO_POOLS = (
    "its pools have no limit, so two runs of a dataflow start beside each other, and the log refuses the second: set"
    " `concurrency: {pools: {default_limit: 1, granularity: run}}` in its dagster.yaml"
)


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
            _print(context, finding)
    ok = all(finding.ok for finding in findings)
    context.emit({"ok": ok, "checks": [asdict(finding) for finding in findings]}, lambda: None)
    return 0 if ok else 1


def _findings(context: Context, no_spark: bool) -> Iterator[PartCheck]:
    from resources.spark_runtime import java_problem, java_version

    problem = java_problem()
    yield PartCheck(
        "java",
        problem is None,
        problem or (java_version() or "").partition("\n")[0],
        problem and "install Java 17 or 21",
    )
    project = context.project
    yield PartCheck(
        "project",
        not project.errors,
        f"{counted(len(project.dataflows), 'dataflow')}, {counted(len(project.errors), 'error')} in {project.folder}",
        "strandline validate" if project.errors else None,
    )
    yield _tried(
        "state",
        lambda: _state(project),
        "check address, credentials and permissions of `state` in platform.yaml",
    )
    yield _tried(
        "lake", lambda: _lake(project), "check path, credentials and permissions of `lake` in platform.yaml"
    )
    yield from _sources(project)
    for flow in project.dataflows.values():
        yield from _statistics(project, flow)
    if project.settings.alerts is not None and project.valid_settings:
        yield _tried(
            "alerts",
            lambda: f"go to {project.webhook().host}",
            "set the variable that alerts.webhook names in platform.yaml; Dagster's daemon needs it, too",
        )
    yield _tried("dagster", lambda: _dagster(project.folder), "check DAGSTER_HOME and its dagster.yaml")
    if not no_spark:
        yield from _spark_and_commits(project)


def _sources(project: Project) -> Iterator[PartCheck]:
    """Look at the sources of all dataflows, and at those of their units."""
    for flow in project.dataflows.values():
        for reading in source_readings(flow):
            yield _tried(
                f"source {flow.name}",
                partial(_look_at_source, project, reading),
                "check `source` and its connection",
            )
        for reading in unit_readings(flow):
            yield _tried(
                f"units {flow.name}",
                partial(_look_at_source, project, reading),
                "check `watermark.secondary_input` and its connection",
            )


def _spark_and_commits(project: Project) -> Iterator[PartCheck]:
    """Start Spark, and try a commit to S3 if the lake is there."""
    spark = _tried("spark", lambda: _spark(_engine(project)), _GET_JARS)
    yield spark
    if spark.ok and _is_on_s3(project):
        yield _tried(
            "commits to S3",
            lambda: _log_store(_engine(project)),
            "start Spark with these settings, see docs/how-to/s3.md",
        )


def _look_at_source(project: Project, dataflow: Dataflow) -> str:
    """Return what a source answers, in a line: files above the watermark if there is one and it can be read, else what its type tells."""
    return _look_above_watermark(project, dataflow) or look_at_source(project, dataflow)


def _look_above_watermark(project: Project, dataflow: Dataflow) -> str | None:
    profile = profile_of(dataflow)
    if not isinstance(profile, ListsNewFiles):
        return None
    with suppress(ProviderError, CorruptWatermark, ConfigurationError):  # another check reports these
        platform, now = build_platform(project), datetime.now(UTC)
        entry = platform.log.newest(dataflow.name)
        listing = profile.list_new_files(platform, dataflow, entry, now, OF_A_LOOK)
        return f"{platform.root_of(dataflow)}: reads, {file_count(listing)} above the watermark"
    return None


def _tried(check: str, act: Callable[[], str], todo: str) -> PartCheck:
    try:
        return PartCheck(check, True, act())
    except ConfigurationError as error:  # says what is wrong with which key, or which variable is not set
        return PartCheck(check, False, error.message, "; ".join(error.choices) or _CORRECT)
    except StrandlineError as error:
        choices = [choice for choice in error.choices if choice != "strandline doctor"]
        return PartCheck(check, False, error.message, "; ".join(choices) or todo)
    except Exception as error:  # noqa: BLE001 - whatever fails, the other parts must still be tried
        return PartCheck(check, False, f"{type(error).__name__}: {error}", todo)


def _statistics(project: Project, flow: Dataflow) -> Iterator[PartCheck]:
    """Yield a finding if readers skip rows of a dataflow's table; what else is wrong with the table, a run tells."""
    wrong = WrongStatistics((), can_be_written=True)
    with suppress(StrandlineError):
        maintenance = open_table(flow.target.format, project.lake.child(flow.table)).maintenance
        if isinstance(maintenance, TellsWrongStatistics):
            wrong = maintenance.wrong_statistics()
    if not wrong.files:
        return
    todo = f"strandline maintain {flow.name}"
    if not wrong.can_be_written:
        todo = (
            "let readers skip no files (Spark: spark.databricks.delta.stats.skipping=false), or load the table again:"
            f" `strandline state reset {flow.name} --replace --reason TEXT`"
        )
    elif flow.maintenance is None:
        todo = f"add `maintenance: {{optimize: P1D}}` to the dataflow's file, and run `{todo}`"
    yield PartCheck(
        f"table {flow.name}",
        False,
        f"{flow.table}: the statistics of {counted(len(wrong.files), 'file')} leave rows out: a writer has kept bounds of decimals as doubles, or of texts as other letters."
        " Readers that skip files by them do not see these rows",
        todo,
    )


def _state(project: Project) -> str:
    """Return that the store writes, and refuses to write twice, which the log depends on; raise if it does not."""
    return _refuses_twice(project.state, open_blobs(project.state))


def _lake(project: Project) -> str:
    """Return that the lake writes, and refuses to write twice, as commits need it; raise if it does not."""
    return _refuses_twice(project.lake, open_blobs(project.lake, "lake"))


def _refuses_twice(place: object, blobs: Blobs) -> str:
    key = f".doctor/{uuid4().hex}"
    first = blobs.put_if_absent(key, b"1")  # if this fails there is nothing to delete
    try:
        second = blobs.put_if_absent(key, b"2")
    finally:
        blobs.delete(key)
    if not first or second:
        raise StrandlineError(
            f"{place}: expected the second conditional put of one name to be refused, found that it was taken; use a store that supports If-None-Match"
        )
    return f"{place}: writes, and refuses to write twice"


def _is_on_s3(project: Project) -> bool:
    with suppress(ConfigurationError):  # which the check of the lake reports
        return project.lake.url.startswith("s3://")
    return False


def _engine(project: Project) -> SparkEngine:
    """Return the engine as runs start it, for all valid places; the check of each place reports an invalid one."""
    places: list[Place | JdbcConnection | ApiConnection | UserCode] = []
    finds: list[Callable[[], Place | JdbcConnection | ApiConnection | UserCode]] = [lambda: project.lake]
    finds += [partial(project.source_place, flow) for flow in project.dataflows.values()]
    for find in finds:
        with suppress(ConfigurationError):
            places.append(find())
    readers = [
        package
        for flow in project.dataflows.values()
        for package in (*packages_of(flow), *PACKAGES.get(flow.target.format, ()))
    ]
    return build_engine(project).with_places(places, readers)


def _spark(engine: SparkEngine) -> str:
    """Return Spark's version."""
    return f"Spark {engine.session().version}, {engine.remote or engine.master}, {', '.join(engine.packages)}"


def _log_store(engine: SparkEngine) -> str:
    """Return that Spark commits to S3 by conditional puts; raise if it does not."""
    conf = engine.session().conf
    if problem := log_store_problem(conf.get(SETTING, None), conf.get(FOR_ALL_SCHEMES, None)):
        raise StrandlineError(problem)
    return "Spark commits by conditional puts: of two drivers that commit at the same moment one wins"


def _dagster(project: Path) -> str:
    from platform_assets.build import build_definitions  # noqa: F401 - the import is the check
    from platform_assets.cli.running import instance

    with instance(project) as dagster:
        if dagster is None:
            return "no DAGSTER_HOME: runs of the command line are not kept"
        home, pools = os.environ["DAGSTER_HOME"], dagster.get_concurrency_config().pool_config
        waits = "" if pools.default_pool_limit else f"; {_NO_POOLS}"
        return f"{home}, {dagster.get_runs_count()} runs{waits}"


def _print(context: Context, finding: PartCheck) -> None:
    click.secho(
        f"{'ok  ' if finding.ok else 'FAIL'} {finding.check}: {finding.found}",
        fg=None if finding.ok else "red",
    )
    if finding.todo and finding.todo.startswith("strandline "):
        context.offer(finding.todo.split("; "), 5)
    elif finding.todo:
        click.echo(f"     {finding.todo}")
