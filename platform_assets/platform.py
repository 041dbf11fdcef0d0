"""The resources of a project. Imports neither Dagster nor Spark, so that ``plan`` and ``list`` answer at once."""

from __future__ import annotations

from collections.abc import Callable

from platform_assets.installation import cache_folder
from platform_assets.project import Project
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.watermarks.compaction import RetentionPolicy


def build_engine(project: Project, notify: Callable[[str], None] = lambda line: None) -> SparkEngine:
    """Return a project's Spark, which reaches no place yet; arguments as of :func:`build_platform`."""
    settings = project.spark_settings
    return SparkEngine(settings.master, settings.remote, settings.conf, cache=cache_folder(), notify=notify)


def build_platform(project: Project, notify: Callable[[str], None] = lambda line: None) -> Platform:
    """Return the resources that a project's settings name; opens nothing.

    Args:
        project: loaded.
        notify: called with a line for people when a step takes seconds.
    """
    spark = build_engine(project, notify)
    kept = project.settings.history
    history = RetentionPolicy(kept.entries, kept.age)
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
