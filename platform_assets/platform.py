"""The resources of a project. Imports neither Dagster nor Spark, so that ``plan`` and ``list`` answer at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from platform_assets.project import Project
from resources.platform import Platform
from resources.spark import SparkEngine
from resources.watermarks.compaction import RetentionPolicy

CHECKOUT = Path(__file__).resolve().parent.parent
CACHE = CHECKOUT / ".strandline" / "cache"
"""Where the class-data archive and the list of jars lie: of this installation, not of a project."""


def build_engine(project: Project, told: Callable[[str], None] = lambda line: None) -> SparkEngine:
    """A project's Spark, which reaches no place yet; arguments as of :func:`build_platform`."""
    settings = project.spark_settings
    return SparkEngine(settings.master, settings.remote, settings.conf, cache=CACHE, told=told)


def build_platform(project: Project, told: Callable[[str], None] = lambda line: None) -> Platform:
    """Put a project's settings together; opens nothing.

    Args:
        project: loaded.
        told: hears, with a line for people, of what takes seconds.
    """
    spark = build_engine(project, told)
    kept = project.settings.history
    history = RetentionPolicy(kept.entries, kept.age)
    return Platform(
        project.state, project.lake, spark, project.source_place, history, project.folder, project.lineage
    )
