"""The environment for a process that must not inherit this one's projects and engines."""

from __future__ import annotations

import os

_LEFT_BEHIND = ("DAGSTER", "PYSPARK_", "SPARK_", "STRANDLINE_")
"""What names a project, a home or an engine. pyspark sets ``SPARK_CONNECT_MODE_ENABLED`` in a process that has had a remote
session; a child that inherits it cannot start Spark."""


def clean_environment() -> dict[str, str]:
    """Return this process's variables without those of projects, of Dagster and of Spark."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_BEHIND)}
