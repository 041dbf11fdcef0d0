"""The errors of a project in all its environments, each once, with the environments that have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from platform_assets.installation import SETTINGS
from platform_assets.project.environments import environment_names
from platform_assets.project.errors import MissingText, ProjectError, sorted_errors
from platform_assets.project.load import load_project
from platform_assets.project.project import Project


@dataclass(frozen=True)
class EnvironmentErrors:
    """The errors of a project.

    Attributes:
        names: its environments, sorted; empty if it has none.
        errors: all errors, sorted by file and line.
        where: the environments that have an error; none if all have it, or there are none.
    """

    names: Sequence[str]
    errors: Sequence[ProjectError]
    where: Mapping[ProjectError, Sequence[str]]


def check_environments(project: Project, variables: Mapping[str, str] | None = None) -> EnvironmentErrors:
    """Return the errors of a project in each environment, and those of platform.yaml alone.

    A variable or a file may be missing here if another environment needs it. A dataflow may need settings that only the
    files of the environments have: of platform.yaml alone only the errors in that file count.

    Args:
        project: the project, loaded in one environment or in none.
        variables: those of the process; None: as they are.
    """
    names = environment_names(project.folder)
    by_environment: dict[str, list[ProjectError]] = {}
    for name in names:
        loaded = (
            project if name == project.env else load_project(project.folder, env=name, environment=variables)
        )
        by_environment[name] = _errors_elsewhere(loaded, project)
    alone = project if project.env is None else load_project(project.folder, env="", environment=variables)
    errors_alone = _errors_elsewhere(alone, project)
    if names:
        errors_alone = [error for error in errors_alone if error.file == SETTINGS]
    errors = sorted_errors([*errors_alone, *(error for own in by_environment.values() for error in own)])
    where = {error: [name for name in names if error in by_environment[name]] for error in errors}
    return EnvironmentErrors(
        names, errors, {error: [] if len(having) == len(names) else having for error, having in where.items()}
    )


def _errors_elsewhere(loaded: Project, chosen: Project) -> list[ProjectError]:
    """Return the errors of an environment, without texts that only that environment needs."""
    if loaded.env == chosen.env:
        return list(loaded.errors)
    return [error for error in loaded.errors if not isinstance(error, MissingText)]
