"""The resources of a project.

Imports neither Dagster nor Spark, so that ``plan`` and ``list`` are fast.
"""

from __future__ import annotations

from collections.abc import Callable

from platform_assets.installation import cache_folder
from platform_assets.project import Project
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.watermarks.compaction import RetentionPolicy


def build_engine(project: Project, notify: Callable[[str], None] = lambda line: None) -> SparkEngine:
    """Return a project's Spark engine, with no place attached yet; arguments as in :func:`build_platform`."""
    settings = project.spark_settings
    return SparkEngine(settings.master, settings.remote, settings.conf, cache=cache_folder(), notify=notify)


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
    )
