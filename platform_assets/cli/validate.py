"""``strandline validate``: checks all project files, and opens nothing that they name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import click

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.fixtures.test_files import find_tests
from platform_assets.project import InvalidProject, Project
from platform_assets.project.all_environments import EnvironmentErrors, check_environments
from platform_assets.project.errors import ProjectError, sorted_errors


@click.command("validate")
@shared_options
def command(context: Context) -> int:
    """Check all project files, in every environment, and show everything that is wrong with them."""
    project = context.project
    checked = _with_tests(project, check_environments(project))
    document = {
        "errors": [_as_json(error, checked) for error in checked.errors],
        "warnings": [{"dataflow": name, "message": text} for name, text in _cautions(project)],
    }
    context.emit(document, lambda: _print(project, checked))
    return ConfigurationError.exit_code if checked.errors else 0


def _with_tests(project: Project, checked: EnvironmentErrors) -> EnvironmentErrors:
    """Add the errors of the tests of dataflows, which all environments share."""
    try:
        find_tests(project, ())
    except InvalidProject as invalid:
        new_errors = [error for error in invalid.errors if error not in checked.where]
        where = {**checked.where, **dict.fromkeys(new_errors, ())}
        return replace(checked, errors=sorted_errors([*checked.errors, *new_errors]), where=where)
    return checked


def _as_json(error: ProjectError, checked: EnvironmentErrors) -> dict[str, object]:
    return error.as_json() | ({"environments": list(checked.where[error])} if checked.names else {})


def _cautions(project: Project) -> Iterator[tuple[str, str]]:
    """Yield what valid dataflows may miss, by their names."""
    for name, dataflow in project.dataflows.items():
        for text in dataflow.watermark.cautions(dataflow.source):
            yield name, text


def _print(project: Project, checked: EnvironmentErrors) -> None:
    for error in checked.errors:
        where = checked.where[error]
        click.echo(f"{error.message} (environment {', '.join(where)})" if where else error.message)
    for name, text in _cautions(project):
        click.echo(f"warning: dataflow {name}: {text}")
    click.echo(_summary(project, checked))


def _summary(project: Project, checked: EnvironmentErrors) -> str:
    valid = pluralize(len(project.dataflows), "dataflow")
    environments = f"; environments: {', '.join(checked.names)}" if checked.names else ""
    if not checked.errors:
        return f"{project.folder}: {valid}, no errors{environments}"
    files = pluralize(len({error.file for error in checked.errors}), "file")
    errors = pluralize(len(checked.errors), "error")
    return f"{project.folder}: {errors} in {files}; {valid} without errors{environments}"
