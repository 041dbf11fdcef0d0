"""The resources of a project. Imports neither Dagster nor Spark, so that ``plan`` and ``list`` answer at once."""

from __future__ import annotations

from pathlib import Path

from platform_assets.project import Project
from resources.platform import Platform
from resources.spark import SparkEngine

CHECKOUT = Path(__file__).resolve().parent.parent
CACHE = CHECKOUT / ".strandline" / "cache"
"""Where the class-data archive and the list of jars lie: of this installation, not of a project."""


def build_platform(project: Project) -> Platform:
    """Put a project's settings together; opens nothing."""
    settings = project.spark_settings
    spark = SparkEngine(settings.master, settings.remote, settings.conf, cache=CACHE)
    return Platform(project.state, project.lake, spark, project.source_place)
