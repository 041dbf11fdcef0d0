"""``strandline doctor``: checks every part that a run needs, and reports what fails and what to do."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from uuid import uuid4

import click

from partitions.dataflow import Dataflow
from partitions.errors import (
    ConfigurationError,
    CorruptWatermark,
    NeedsDecision,
    ProviderError,
    SourceMissing,
    StrandlineError,
)
from partitions.plan import pluralize
from partitions.readings import dataflows_by_source, dataflows_of_units
from platform_assets.cli.context import Context, shared_options
from platform_assets.installation import INSTALLED
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import ListsNewFiles
from platform_assets.platform import build_platform, engine_of_project
from platform_assets.project import Project
from platform_assets.project.references import Reference
from platform_assets.sources import PROBE_BUDGET, file_count, probe_source
from resources.connections.jdbc import JdbcConnection
from resources.loop.missing_source import explain_missing_source
from resources.spark.engine import SparkEngine
from resources.spark.loaded_packages import missing_packages
from resources.spark.log_store import FOR_ALL_SCHEMES, SETTING, log_store_problem
from resources.tables.contract.maintenance import TellsWrongStatistics, WrongStatistics
from resources.tables.registry import find_table, open_table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.blobs.protocol import Blobs

_CORRECT = "set the variable, or correct the key, that the message names"
_GET_JARS = (
    "the first session downloads Spark's jars: correct what the error names"
    if INSTALLED
    else "run `make setup`, which fetches the jars"
)


@dataclass(frozen=True)
class PartCheck:
    """The check of one part.

    Attributes:
        check: the part.
        result: the result, in words.
        todo: what to do; None if the part works.
    """

    check: str
    ok: bool
    result: str
    todo: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the check as the public JSON has it (docs/reference/cli.md)."""
        return {"check": self.check, "ok": self.ok, "found": self.result, "todo": self.todo}


_NO_POOLS = (
    "its pools have no limit, so two runs of one dataflow can start at once, and the log refuses the second: set"
    " `concurrency: {pools: {default_limit: 1, granularity: run}}` in its dagster.yaml"
)


@click.command("doctor")
@click.option("--no-spark", is_flag=True, help="Do not start Spark, which takes seconds.")
@shared_options
def command(context: Context, no_spark: bool) -> int:
    """Check Java, Spark, jars, state, lake, sources and Dagster."""
    findings = []
    for check in _checks(context, no_spark):
        finding = replace(check, result=context.hide(check.result))
        findings.append(finding)
        if not context.as_json:
            _print_check(context, finding)
    ok = all(finding.ok for finding in findings)
    context.emit({"ok": ok, "checks": [finding.as_json() for finding in findings]}, lambda: None)
    return 0 if ok else 1


def _checks(context: Context, no_spark: bool) -> Iterator[PartCheck]:
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
        f"{pluralize(len(project.dataflows), 'dataflow')}, {pluralize(len(project.errors), 'error')} in {project.folder}{f', environment {project.env}' if project.env else ''}",
        "strandline validate" if project.errors else None,
    )
    yield _run_check(
        "state",
        lambda: _check_state(project),
        f"check address, credentials and permissions of `state` in {project.file_of('state')}",
    )
    yield _run_check(
        "lake",
        lambda: _check_lake(project),
        f"check path, credentials and permissions of `lake` in {project.file_of('lake')}",
    )
    yield from _check_sources(project)
    yield from _check_unused_connections(project)
    for flow in project.dataflows.values():
        yield from _check_match(project, flow)
        yield from _check_statistics(project, flow)
    if project.valid_settings and project.settings.alerts is not None:
        for receiver, key in project.settings.alerts.receivers.items():
            yield _run_check(
                key.removesuffix(".webhook"),
                partial(_describe_receiver, project, receiver),
                f"set the variable that {key} names in {project.file_of(key)}; Dagster's daemon needs it, too",
            )
    if project.valid_settings and project.settings.lineage.openlineage is not None:
        yield _run_check(
            "lineage",
            lambda: _describe_catalog(project),
            "install strandline[lineage], and set the variables that lineage.openlineage names",
        )
    yield _run_check("dagster", lambda: _check_dagster(project), "check DAGSTER_HOME and its dagster.yaml")
    if not no_spark:
        yield from _check_spark_and_commits(project)


def _describe_catalog(project: Project) -> str:
    catalog = build_platform(project).catalog
    assert catalog is not None, "the settings name one"
    return f"events go to {catalog.destination}"


def _describe_receiver(project: Project, receiver: str | Reference) -> str:
    return f"go to {project.webhook(receiver).host}"


def _check_sources(project: Project) -> Iterator[PartCheck]:
    """Probe the sources of all dataflows and of their units."""
    for flow in project.dataflows.values():
        for reading in dataflows_by_source(flow):
            yield _run_check(
                f"source {flow.name}",
                partial(_probe, project, reading),
                "check `source` and its connection",
            )
        for reading in dataflows_of_units(flow):
            yield _run_check(
                f"units {flow.name}",
                partial(_probe, project, reading),
                "check `watermark.secondary_input` and its connection",
            )


def _check_unused_connections(project: Project) -> Iterator[PartCheck]:
    """Try the connections that no other check tries."""
    for name in project.unused_connections if project.valid_settings else ():
        key = f"connections.{name}"
        yield _run_check(
            f"connection {name}",
            partial(_try_connection, project, name),
            f"correct {key} in {project.file_of(key)}",
        )


def _try_connection(project: Project, name: str) -> str:
    """Return that a connection's secrets are set, and that a database lets it in."""
    connection = project.open_connection(name)
    if isinstance(connection, JdbcConnection):
        from resources.sources.availability import log_in

        return f"{log_in(connection)}; no dataflow uses it"
    return "its variables are set; no dataflow uses it, so nothing was requested"


def _check_spark_and_commits(project: Project) -> Iterator[PartCheck]:
    """Start Spark, and check commits to S3 if the lake is there."""
    spark = _run_check("spark", lambda: _check_spark(engine_of_project(project)), _GET_JARS)
    yield spark
    if spark.ok and project.spark_settings.remote:
        yield _run_check("jars", lambda: _check_jars(engine_of_project(project)), _GET_JARS)
    if spark.ok and _is_on_s3(project):
        yield _run_check(
            "commits to S3",
            lambda: _check_log_store(engine_of_project(project)),
            "start Spark with these settings, see docs/how-to/s3.md",
        )


def _probe(project: Project, dataflow: Dataflow) -> str:
    """Return a source's answer as a line: the files above the watermark, or what its type tells."""
    if note := _not_loaded_yet(project, dataflow):
        return note
    try:
        return _probe_above_watermark(project, dataflow) or probe_source(project, dataflow)
    except SourceMissing:
        with suppress(ProviderError, ConfigurationError):  # another check reports these
            log = build_platform(project).log
            with explain_missing_source(log, dataflow):
                raise
        raise


def _not_loaded_yet(project: Project, dataflow: Dataflow) -> str | None:
    """Return that the dataflows that write a table have loaded nothing yet; None for any other source."""
    table = dataflow.source.lake_table
    makers = project.lineage.makers(table) if table else ()
    if not table or not makers:
        return None
    with suppress(ProviderError, ConfigurationError):  # another check reports these
        log = build_platform(project).log
        if (
            not any(log.newest(maker.name) for maker in makers)
            and not find_table(project.lake.child(table)).exists()
        ):
            commands = " and ".join(f"`strandline run {maker.name}`" for maker in makers)
            return f"{table}: not loaded yet, which is no failure: {commands} loads it"
    return None


def _probe_above_watermark(project: Project, dataflow: Dataflow) -> str | None:
    profile = profile_of(dataflow)
    if not isinstance(profile, ListsNewFiles):
        return None
    with suppress(ProviderError, CorruptWatermark, ConfigurationError):  # another check reports these
        platform, now = build_platform(project), datetime.now(UTC)
        entry = platform.log.newest(dataflow.name)
        listing = profile.list_new_files(platform, dataflow, entry, now, PROBE_BUDGET)
        return f"{platform.root_of(dataflow)}: readable, {file_count(listing)} above the watermark"
    return None


def _run_check(check: str, act: Callable[[], str], todo: str) -> PartCheck:
    try:
        return PartCheck(check, True, act())
    except ConfigurationError as error:  # its message names the key or the variable
        return PartCheck(check, False, error.message, "; ".join(error.choices) or _CORRECT)
    except StrandlineError as error:
        choices = [choice for choice in error.choices if choice != "strandline doctor"]
        return PartCheck(check, False, error.message, "; ".join(choices) or todo)
    except Exception as error:  # noqa: BLE001 - whatever fails, the other parts must still be checked
        return PartCheck(check, False, f"{type(error).__name__}: {error}", todo)


def _check_match(project: Project, flow: Dataflow) -> Iterator[PartCheck]:
    """Yield a finding if the state of a dataflow and its table do not match, as a run would say it."""
    with suppress(StrandlineError):  # other checks report what cannot be read
        try:
            build_platform(project).checked_entry(flow)
        except NeedsDecision as error:
            yield PartCheck(f"table {flow.name}", False, error.message, "; ".join(error.choices))


def _check_statistics(project: Project, flow: Dataflow) -> Iterator[PartCheck]:
    """Yield a finding if readers that skip files by statistics miss rows of a dataflow's table.

    A run reports other problems of the table.
    """
    wrong_statistics = WrongStatistics((), can_be_written=True)
    with suppress(StrandlineError):
        maintenance = open_table(flow.target.format, project.lake.child(flow.table)).maintenance
        if isinstance(maintenance, TellsWrongStatistics):
            wrong_statistics = maintenance.wrong_statistics()
    if not wrong_statistics.files:
        return
    todo = f"strandline maintain {flow.name}"
    if not wrong_statistics.can_be_written:
        todo = (
            "let readers read all files (Spark: spark.databricks.delta.stats.skipping=false), or load the table "
            f"again: `strandline state reset {flow.name} --replace --reason TEXT`"
        )
    elif flow.maintenance is None:
        todo = f"add `maintenance: {{optimize: P1D}}` to the dataflow's file, and run `{todo}`"
    yield PartCheck(
        f"table {flow.name}",
        False,
        f"{flow.table}: the statistics of {pluralize(len(wrong_statistics.files), 'file')} exclude rows that "
        "the files hold: a writer stored bounds of decimals as doubles, or changed letters of texts. Readers "
        "that skip files by statistics miss these rows",
        todo,
    )


def _check_state(project: Project) -> str:
    """Return that the state's store accepts a key only once, as the log needs; raise otherwise."""
    return _check_conditional_puts(project.state, open_blobs(project.state))


def _check_lake(project: Project) -> str:
    """Return that the lake's store accepts a key only once, as commits need; raise otherwise."""
    return _check_conditional_puts(project.lake, open_blobs(project.lake, "lake"))


def _check_conditional_puts(place: object, blobs: Blobs) -> str:
    key = f".doctor/{uuid4().hex}"
    first = blobs.put_if_absent(key, b"1")  # if this fails, there is nothing to delete
    try:
        second = blobs.put_if_absent(key, b"2")
    finally:
        blobs.delete(key)
    if not first or second:
        raise StrandlineError(
            f"{place}: expected the store to refuse a second conditional put of one name, found that it accepted "
            "it. Use a store that supports If-None-Match"
        )
    return f"{place}: writable, and refuses to overwrite"


def _is_on_s3(project: Project) -> bool:
    with suppress(ConfigurationError):  # the check of the lake reports it
        return project.lake.url.startswith("s3://")
    return False


def _check_spark(engine: SparkEngine) -> str:
    """Start Spark, and return its version, where it runs and its packages in a line."""
    version, packages = engine.session().version, ", ".join(engine.packages)
    return f"Spark {version}, {engine.remote or f'{engine.master}, {packages}'}"


def _check_jars(engine: SparkEngine) -> str:
    """Return the packages that a Connect server has for the project; raise if it lacks one."""
    missing = missing_packages(engine.session(), engine.packages)
    if missing:
        raise ConfigurationError(
            f"Spark Connect server {engine.remote}: expected the jars of {', '.join(engine.packages)}, and it lacks "
            f"{', '.join(missing)}. Start it with the settings that `strandline packages` prints",
            choices=("strandline packages",),
        )
    return f"the server has {', '.join(engine.packages)}"


def _check_log_store(engine: SparkEngine) -> str:
    """Return that Spark commits to S3 by conditional puts; raise otherwise."""
    conf = engine.session().conf
    if problem := log_store_problem(conf.get(SETTING, None), conf.get(FOR_ALL_SCHEMES, None)):
        raise StrandlineError(problem)
    return "Spark commits by conditional puts: if two drivers commit at once, one wins"


def _check_dagster(project: Project) -> str:
    from platform_assets.build import build_definitions  # noqa: F401 - the import is the check
    from platform_assets.cli.running import instance

    with instance(project) as dagster:
        if dagster is None:
            return "no DAGSTER_HOME: runs of the command line are not recorded"
        home, pools = os.environ["DAGSTER_HOME"], dagster.get_concurrency_config().pool_config
        warning = "" if pools.default_pool_limit else f"; {_NO_POOLS}"
        return f"{home}, {dagster.get_runs_count()} runs{warning}"


def _print_check(context: Context, finding: PartCheck) -> None:
    click.secho(
        f"{'ok  ' if finding.ok else 'FAIL'} {finding.check}: {finding.result}",
        fg=None if finding.ok else "red",
    )
    if finding.todo and finding.todo.startswith("strandline "):
        context.offer(finding.todo.split("; "), 5)
    elif finding.todo:
        click.echo(f"     {finding.todo}")
