"""The ledger of files: the range that a path watermark covers, and what is missing below it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.dataflow import Dataflow
from partitions.plan import counted
from partitions.sentinels import deserialise, encode
from platform_assets.file_views import files_aside
from platform_assets.kinds.path.words import verified_in_words
from resources.loop.definition_guard import check_definition
from resources.platform import Platform
from resources.sweep import Sweep, unhandled

if TYPE_CHECKING:
    from platform_assets.cli.context import Context
    from platform_assets.kinds.path.profile import PathProfile


def file_ledger(platform: Platform, dataflow: Dataflow, now: datetime) -> dict[str, Any]:
    """Return what a path watermark covers, and what is missing below it. Starts no Spark, opens no source.

    Raises:
        NeedsDecision: as a run would.
    """
    log, name = platform.log, dataflow.name
    entry = log.newest(name)
    check_definition(dataflow, entry, log)
    sweep = Sweep.read(log, name, entry.era if entry else 0)
    return {
        "dataflow": name,
        "now": now.isoformat(),
        "complete_up_to": None,
        "units": None,
        "covered": {
            "after": encode(deserialise(entry.since)) if entry and entry.since else None,
            "up_to": encode(entry.state()) or None if entry else None,
            "files": entry.total_files if entry else 0,
            "rows": entry.total_rows if entry else 0,
        },
        **files_aside(log, entry, unhandled(log, dataflow, entry, now)),
        "verified_up_to": sweep.verified_path,
        "verified_at": sweep.verified_at,
    }


def print_file_ledger(
    context: Context, dataflow: Dataflow, document: Mapping[str, Any], profile: PathProfile
) -> None:
    """Print the ledger of files for people."""
    click.secho(f"{dataflow.name}: {_covered(document['covered'], profile)}", bold=True)
    if document["verified_at"]:
        click.echo(f"  {verified_in_words(document['verified_up_to'], document['verified_at'])}")
    elif why := profile.why_none_is_late(dataflow):
        click.echo(f"  {why}")
    else:
        click.echo("  not verified yet: no round of the sweep is over. It goes a step with")
        context.offer([f"strandline late {dataflow.name}"], 4)
    _print_aside(document["late"], document["quarantined"])


def _covered(covered: Mapping[str, Any], profile: PathProfile) -> str:
    start = profile.watermark_in_words(covered["after"]) if covered["after"] else "the beginning"
    span = (
        f"covered from {start} up to {profile.watermark_in_words(covered['up_to'])}"
        if covered["up_to"]
        else "nothing is covered"
    )
    return f"{span}: {counted(covered['files'], 'file')}, {counted(covered['rows'], 'row')}"


def _print_aside(late: Mapping[str, Any], quarantined: Mapping[str, Any]) -> None:
    for path in late["paths"]:
        click.echo(f"  late: {path}")
    _print_more(late["count"], len(late["paths"]), "late file")
    for file in quarantined["files"]:
        click.echo(f"  quarantined: {file['path']}: {file['reason']}")
    _print_more(quarantined["count"], len(quarantined["files"]), "quarantined file")


def _print_more(count: int, shown: int, what: str) -> None:
    if count > shown:
        click.echo(f"  … and {counted(count - shown, f'more {what}')}")
