"""``strandline init``: a project folder of one's own, and a dataflow for files that are there."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import click

from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context, shared
from platform_assets.project.checked_file import NAME
from platform_assets.scaffold.new_project import (
    TEMPLATES,
    dataflow_name,
    distinct,
    project_files,
    template,
    write_new,
)
from resources.connections.places import Place


@click.command("init")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--from", "files", metavar="FOLDER|URL", help="Write dataflows for the files that are there.")
@click.option(
    "--kind",
    "first",
    type=click.Choice(TEMPLATES),
    help=f"Of a first dataflow with comments.  [default: {TEMPLATES[0]}]",
)
@click.option("--name", metavar="NAME", help="Of the dataflow.")
@shared
def command(context: Context, directory: Path, files: str | None, first: str | None, name: str | None) -> int:
    """Make a project folder, or add dataflows to one. A file that is there stays as it is."""
    if files is not None and first is not None:
        raise click.UsageError("expected --from or --kind, found both")
    if name is not None and not NAME.fullmatch(name):
        raise ConfigurationError(
            f"--name: expected a small letter, then small letters, digits and _, found {name!r}"
        )
    flows = (
        _drafts(directory, files, name)
        if files is not None
        else {name or "events": template(first or TEMPLATES[0])}
    )
    taken = [flow for flow in flows if (directory / f"dataflows/{flow}.yaml").exists()]
    if taken:
        remedy = "--name gives another name"
        if len(flows) > 1:
            remedy = (
                f"for one that is new name its own folder, such as --from {str(files).rstrip('/')}/FOLDER"
            )
        raise ConfigurationError(
            f"{directory}: expected no dataflow named {taken[0]}, found dataflows/{taken[0]}.yaml; {remedy}"
        )
    written = write_new(directory, project_files(directory, flows))
    context.folder = directory
    following = [f"strandline plan {' '.join(flows)}", f"strandline run {' '.join(flows)}", "strandline dev"]
    document = {
        "project": str(directory.resolve()),
        "files": written,
        "dataflows": list(flows),
        "next": following,
    }
    context.emit(document, lambda: _print(context, directory, written, following))
    return 0


def _drafts(folder: Path, files: str, name: str | None) -> dict[str, str]:
    """Return the texts of dataflows for what lies at a folder or URL, by name."""
    from platform_assets.scaffold.draft import draft, found_in_words
    from resources.sources.files.survey import survey

    scheme, is_url, _ = files.partition("://")
    if is_url and scheme not in ("s3", "gs", "az", "file"):
        raise ConfigurationError(
            f"--from: expected a folder or s3://bucket/prefix, found a URL with {scheme}://. For a database `strandline init"
            " DIR --kind column` (or window) writes a dataflow to fill in; for an API see docs/reference/apis.md"
        )
    place = Place.parse(files, Path.cwd())
    look, today = survey(place), datetime.now(UTC).date()
    seen = look.datasets
    if name is not None and len(seen) > 1:
        below = ", ".join(each.folder for each in seen)
        raise ConfigurationError(
            f"--name: expected one dataset at {files}, found {len(seen)}: {below}; leave --name out"
        )
    fallback = dataflow_name(place.url.rstrip("/").rpartition("/")[2], "files")
    names = [name] if name else distinct(dataflow_name(each.folder or fallback, fallback) for each in seen)
    for flow, each in zip(names, seen, strict=True):
        for line in (found_in_words(each, flow), *(f"{flow}: not read: {line}" for line in each.unread)):
            click.echo(line, err=True)
    for line in look.passed_over:
        click.echo(line, err=True)
    return {
        flow: draft(each, _path(place.child(each.folder) if each.folder else place, folder), today)
        for flow, each in zip(names, seen, strict=True)
    }


def _path(place: Place, project: Path) -> str:
    """Return a place as a dataflow of the project names it: relative to a project that is in the same folder, so that both can be moved."""
    if place.local is None:
        return place.url
    root = project.resolve()
    if place.local.is_relative_to(root.parent) and root.parent != Path(root.anchor):
        relative = os.path.relpath(place.local, root)
        return relative if relative.startswith(".") else f"./{relative}"
    return str(place.local)


def _print(context: Context, folder: Path, written: list[str], following: list[str]) -> None:
    for name in written:
        click.echo(f"{folder / name}")
    click.echo("next:")
    context.offer(following)
