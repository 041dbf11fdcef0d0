"""``strandline init``: creates a project folder, and dataflows for existing files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import click

from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context, shared_options
from platform_assets.installation import is_project
from platform_assets.project.checked_file import NAME
from platform_assets.scaffold.deployment import deployment_files
from platform_assets.scaffold.new_project import (
    TEMPLATES,
    DraftedDataflow,
    FirstKind,
    FirstSource,
    dataflow_name,
    number_duplicates,
    project_files,
    template,
    write_new,
)
from resources.connections.places import Place


@click.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--from", "files", metavar="FOLDER|URL", help="Write dataflows for existing files.")
@click.option(
    "--kind",
    "first",
    type=click.Choice(TEMPLATES),
    help=f"Kind of watermark of a first dataflow.  [default: {TEMPLATES[0]}]",
)
@click.option(
    "--source",
    "source",
    type=click.Choice(get_args(FirstSource)),
    help="Type of source of a first dataflow.  [default: jdbc for column and window, table for offset, else files]",
)
@click.option("--name", metavar="NAME", help="Name of the dataflow.")
@click.option("--deploy", is_flag=True, help="Write deploy/: settings for production, on PostgreSQL and S3.")
@shared_options
def command(
    context: Context,
    directory: Path,
    files: str | None,
    first: FirstKind | None,
    source: FirstSource | None,
    name: str | None,
    deploy: bool,
) -> int:
    """Create a project folder, or add dataflows to one. Existing files stay as they are."""
    if deploy and is_project(directory) and not (files or first or source or name):
        _emit(context, directory, [], deployment_files(directory), ["strandline doctor --no-spark"])
        return 0
    for option, is_set in (("--kind", first is not None), ("--source", source is not None)):
        if files is not None and is_set:
            raise click.UsageError(f"expected --from or {option}, found both")
    if name is not None and not NAME.fullmatch(name):
        raise ConfigurationError(
            f"--name: expected a small letter, then small letters, digits and _, found {name!r}"
        )
    flows = (
        _draft_dataflows(directory, files, name)
        if files is not None
        else {flow: template(flow, first, source) for flow in [name or "events"]}
    )
    existing = [flow for flow in flows if (directory / f"dataflows/{flow}.yaml").exists()]
    if existing:
        remedy = "--name gives another name"
        if len(flows) > 1:
            remedy = f"name the folder of the new dataset, such as --from {str(files).rstrip('/')}/FOLDER"
        raise ConfigurationError(
            f"{directory}: expected no dataflow named {existing[0]}, found dataflows/{existing[0]}.yaml; {remedy}"
        )
    texts = project_files(directory, flows) | (deployment_files(directory) if deploy else {})
    next_commands = [
        f"strandline plan {' '.join(flows)}",
        f"strandline run {' '.join(flows)}",
        "strandline dev",
    ]
    _emit(context, directory, list(flows), texts, next_commands)
    return 0


def _emit(
    context: Context, directory: Path, flows: list[str], texts: Mapping[str, str], next_commands: list[str]
) -> None:
    """Write the files that do not exist yet, and print which these are and what comes next."""
    written = write_new(directory, texts)
    context.folder = directory
    document = {
        "project": str(directory.resolve()),
        "files": written,
        "dataflows": flows,
        "next": next_commands,
    }
    context.emit(document, lambda: _print(context, directory, written, next_commands))


def _draft_dataflows(folder: Path, files: str, name: str | None) -> dict[str, DraftedDataflow]:
    """Return dataflows, by name, for the files at a folder or URL."""
    from platform_assets.scaffold.draft import draft_dataflow, survey_in_words, surveyed_columns
    from resources.sources.files.survey import survey

    scheme, is_url, _ = files.partition("://")
    if is_url and scheme not in ("s3", "gs", "az", "file"):
        raise ConfigurationError(
            f"--from: expected a folder or s3://bucket/prefix, found a URL with {scheme}://. For a database `strandline init"
            " DIR --kind column` (or window) writes a dataflow to fill in; for an API add --source api"
        )
    place = Place.parse(files, Path.cwd())
    survey_result, today = survey(place), datetime.now(UTC).date()
    datasets = survey_result.datasets
    if name is not None and len(datasets) > 1:
        folders = ", ".join(dataset.folder for dataset in datasets)
        raise ConfigurationError(
            f"--name: expected one dataset at {files}, found {len(datasets)}: {folders}. Run without --name"
        )
    fallback = dataflow_name(place.url.rstrip("/").rpartition("/")[2], "files")
    names = (
        [name]
        if name
        else number_duplicates(dataflow_name(dataset.folder or fallback, fallback) for dataset in datasets)
    )
    for flow, dataset in zip(names, datasets, strict=True):
        for line in (
            survey_in_words(dataset, flow),
            *(f"{flow}: not read: {line}" for line in dataset.unread),
        ):
            click.echo(line, err=True)
    for line in survey_result.skipped_names:
        click.echo(line, err=True)
    return {
        flow: DraftedDataflow(
            draft_dataflow(
                dataset, _path(place.child(dataset.folder) if dataset.folder else place, folder), today
            ),
            ", ".join(surveyed_columns(dataset)) or None,
        )
        for flow, dataset in zip(names, datasets, strict=True)
    }


def _path(place: Place, project: Path) -> str:
    """Return a place in the spelling for a dataflow of the project.

    It is relative if place and project lie in the same folder, so that both can be moved.
    """
    if place.local is None:
        return place.url
    root = project.resolve()
    if place.local.is_relative_to(root.parent) and root.parent != Path(root.anchor):
        relative = os.path.relpath(place.local, root)
        return relative if relative.startswith(".") else f"./{relative}"
    return str(place.local)


def _print(context: Context, folder: Path, written: list[str], next_commands: list[str]) -> None:
    if not written:
        click.echo(f"{folder}: all files exist already, and stay as they are")
    for name in written:
        click.echo(f"{folder / name}")
    click.echo("next:")
    context.offer(next_commands)
