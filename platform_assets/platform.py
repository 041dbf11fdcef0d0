"""The resources of a project.

Imports neither Dagster nor Spark, so that ``plan`` and ``list`` are fast.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from partitions.errors import ConfigurationError
from platform_assets.installation import cache_folder, installed_version
from platform_assets.project import Project, load_project
from resources.connections.source_connection import SourceConnection
from resources.open_lineage.sender import EventSender
from resources.platform.platform import Platform
from resources.sources.files.formats.registry import packages_of
from resources.spark.engine import SparkEngine
from resources.tables.registry import PACKAGES
from resources.watermarks.compaction import RetentionPolicy


def build_engine(project: Project, notify: Callable[[str], None] = lambda line: None) -> SparkEngine:
    """Return a project's Spark engine, with no place attached yet; arguments as in :func:`build_platform`."""
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


def build_platform(project: Project, notify: Callable[[str], None] = lambda line: None) -> Platform:
    """Return the resources that a project's settings name; opens nothing.

    Args:
        project: a loaded project.
        notify: called with a line for people when a step takes seconds.
    """
    spark = build_engine(project, notify)
    retention = project.settings.history
    history = RetentionPolicy(retention.entries, retention.age)
    return Platform(
        project.state,
        project.lake,
        spark,
        project.source_place,
        history,
        project.folder,
        project.lineage,
        sensor_interval=project.settings.sensors.interval,
        catalog=_catalog(project),
    )


def engine_of_project(project: Project) -> SparkEngine:
    """Return an engine for the lake and the sources of all dataflows; invalid places are left out."""
    places: list[SourceConnection] = []
    find_places: list[Callable[[], SourceConnection]] = [lambda: project.lake]
    find_places += [partial(project.source_place, flow) for flow in project.dataflows.values()]
    for find_place in find_places:
        with suppress(ConfigurationError):
            places.append(find_place())
    readers = [
        package
        for flow in project.dataflows.values()
        for package in (*packages_of(flow), *PACKAGES.get(flow.target.format, ()))
    ]
    return build_engine(project).with_places(places, readers)


def packages(folder: str | Path) -> list[str]:
    """Return the Maven coordinates of the jars that Spark needs for all dataflows of a project.

    Args:
        folder: the project's folder.
    """
    return list(engine_of_project(load_project(Path(folder))).packages)


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
