"""The resources of a project.

Imports neither Dagster nor Spark, so that ``plan`` and ``list`` are fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from platform_assets.installation import cache_folder, installed_version
from platform_assets.project import Project, load_project
from platform_assets.project.passed_connections import (
    PassedConnection,
    has_passed,
    with_connections,
    with_stand_ins,
)
from resources.open_lineage.sender import EventSender
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.spark.packages import session_settings
from resources.spark.passed_session import PassedSpark, SessionFactory
from resources.watermarks.compaction import RetentionPolicy


def build_engine(
    project: Project,
    notify: Callable[[str], None] = lambda line: None,
    spark: PassedSpark | None = None,
) -> SparkEngine:
    """Return a project's Spark engine, with no place attached yet; arguments as in :func:`build_platform`."""
    if spark is not None:
        return SparkEngine(notify=notify, passed=SessionFactory.of(spark, _settings_call(project)))
    settings, conf = project.spark_settings, {}
    if project.env:  # tables that a user's function saves by name alone
        conf["spark.sql.warehouse.dir"] = str(project.folder / ".strandline" / project.env / "warehouse")
    return SparkEngine(
        settings.master,
        settings.remote,
        conf | settings.conf,
        settings.secret_keys,
        cache=cache_folder(),
        notify=notify,
    )


def build_platform(
    project: Project,
    notify: Callable[[str], None] = lambda line: None,
    spark: PassedSpark | None = None,
) -> Platform:
    """Return the resources that a project's settings name; opens nothing.

    Args:
        project: a loaded project.
        notify: called with a line for people when a step takes seconds.
        spark: where sessions come from, instead of the project's settings of Spark.

    Raises:
        ConfigurationError: ``spark`` is of another type.
    """
    retention = project.settings.history
    history = RetentionPolicy(retention.entries, retention.age)
    return Platform(
        project.state,
        project.lake,
        build_engine(project, notify, spark),
        project.source_place,
        history,
        project.folder,
        project.lineage,
        sensor_interval=project.settings.sensors.interval,
        catalog=_catalog(project),
        env=project.env,
        table_format=project.settings.format,
    )


def engine_of_project(project: Project) -> SparkEngine:
    """Return an engine for the lake and the sources of all dataflows.

    Invalid places are left out, and so are the credentials of connections that only code passes.
    """
    return build_platform(with_stand_ins(project)).loading(project.dataflows.values()).engines.of_loads()


def packages(folder: str | Path) -> list[str]:
    """Return the Maven coordinates of the jars that Spark needs for all dataflows of a project.

    Args:
        folder: the project's folder.
    """
    return list(engine_of_project(load_project(Path(folder))).packages)


def spark_conf(
    folder: str | Path, connections: Mapping[str, PassedConnection] = MappingProxyType({})
) -> dict[str, str]:
    """Return the settings that a Spark of your own needs for all dataflows of a project.

    They name jars, extensions and the catalog. What differs between sessions, such as the zone and credentials of
    buckets, Strandline sets itself.

    Args:
        folder: the project's folder.
        connections: those that ``build_definitions`` gets; a database among them needs the jar of its driver.

    Raises:
        ConfigurationError: the folder holds no project, or a connection is of another type.
    """
    project = with_connections(load_project(Path(folder)), connections)
    return session_settings(engine_of_project(project))


def _settings_call(project: Project) -> str:
    connections = ", connections=..." if has_passed(project) else ""
    return f'strandline.spark_conf("{project.folder}"{connections})'


def _catalog(project: Project) -> EventSender | None:
    """Return the catalog that hears of runs; None if the settings name none."""
    settings = project.settings.lineage.openlineage
    if settings is None:
        return None
    return EventSender(
        settings.namespace or project.folder.name,
        installed_version(),
        project.catalog,
        settings.timeout.total_seconds(),
        project.hide,
    )
