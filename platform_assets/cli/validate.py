"""``strandline validate``: checks all project files, and opens nothing that they name."""

from __future__ import annotations

import click

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.project import Project


@click.command("validate")
@shared_options
def command(context: Context) -> int:
    """Check all project files and show everything that is wrong with them."""
    project = context.project
    context.emit({"errors": [error.as_json() for error in project.errors]}, lambda: _print(project))
    return ConfigurationError.exit_code if project.errors else 0


def _print(project: Project) -> None:
    for error in project.errors:
        click.echo(error.message)
    click.echo(_summary(project))


def _summary(project: Project) -> str:
    valid = pluralize(len(project.dataflows), "dataflow")
    if not project.errors:
        return f"{project.folder}: {valid}, no errors"
    files = pluralize(len({error.file for error in project.errors}), "file")
    return f"{project.folder}: {pluralize(len(project.errors), 'error')} in {files}; {valid} without errors"
