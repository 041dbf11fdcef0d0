"""The project files: ``platform.yaml`` and ``dataflows/*.yaml`` (docs/reference/project-files.md).

Belongs here: reading them, their models, and reporting errors with file, line and key. It is the only
place that reads the environment. Does not belong here: opening what the files name (``strandline doctor``
does that), Dagster, Spark.
"""

from platform_assets.project.errors import InvalidProject, ProjectError
from platform_assets.project.load import load_project
from platform_assets.project.project import Project
from platform_assets.project.settings import Settings, SparkSettings

__all__ = ["InvalidProject", "Project", "ProjectError", "Settings", "SparkSettings", "load_project"]
