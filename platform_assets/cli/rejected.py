"""``strandline rejected``: the rows that failed a rule, and their release.

See docs/how-to/rules-for-rows.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.rules.definition import COLUMNS, NUMBER, RULES
from partitions.target import RUN_COLUMNS
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import YES, confirm, print_effect, writing_platform
from platform_assets.cli.entry_lines import print_entries
from platform_assets.platform import build_platform

if TYPE_CHECKING:
    from resources.decisions.rejected import RejectedRows, ReleasePreview
    from resources.watermarks.entry import Entry


_NOT_SHOWN = (*COLUMNS, *RUN_COLUMNS)
"""Columns of a rejected row that people see in other words, or in the JSON alone."""


@click.command("rejected")
@click.argument("name")
@click.option(
    "--limit", default=5, show_default=True, type=click.IntRange(0, 10_000), help="The most rows to show."
)
@click.option(
    "--release", "rule", metavar="RULE", help="Load the rows that this rule rejected and that pass now."
)
@click.option("--reason", help="Reason for the release; stored in the log.")
@YES
@shared_options
def command(context: Context, name: str, limit: int, rule: str | None, reason: str | None, yes: bool) -> None:
    """Show the rows that failed a rule, by rule; or load those that pass it now."""
    if rule is None:
        if reason is not None or yes:
            raise ConfigurationError("expected --reason and --yes beside --release, found no --release")
        _show(context, name, limit)
        return
    if reason is None:
        raise ConfigurationError("expected --reason beside --release, found none: the log stores it")
    _release(context, name, rule, reason, yes)


def _show(context: Context, name: str, limit: int) -> None:
    from resources.decisions.rejected import rejected_rows
    from resources.tables.first_rows import read_first_rows

    (flow,) = context.dataflows([name])
    platform = build_platform(context.project, lambda line: click.echo(f"  {line}", err=True))
    rejected = rejected_rows(platform, flow)
    rows: Sequence[Mapping[str, Any]] = ()
    if rejected.rows and limit:
        place = platform.lake.child(rejected.table)
        table = platform.side_tables(flow)["rejected"]
        rows = read_first_rows(
            table, lambda: platform.engines.reading(place).session(), limit, rejected.table
        ).rows
    context.emit({**rejected.as_json(), "examples": list(rows)}, lambda: _print(rejected, rows))


def _print(rejected: RejectedRows, rows: Sequence[Mapping[str, Any]]) -> None:
    click.echo(f"{rejected.dataflow}: {pluralize(rejected.rows, 'rejected row')} in {rejected.table}")
    for name, count in rejected.by_rule.items():
        rule = rejected.rules.get(name)
        demand = f"expected {rule.demand}" if rule else "no rule of the dataflow any more"
        click.echo(f"  {name}: {pluralize(count, 'row')}; {demand}")
    for row in rows:
        values = ", ".join(
            f"{column}={_text_of(value)}" for column, value in row.items() if column not in _NOT_SHOWN
        )
        click.echo(f"    {row[RULES]} (entry {row[NUMBER]}): {values}")
    if rejected.rows:
        click.echo(
            f"  to load those that pass once more: strandline rejected {rejected.dataflow} --release RULE --reason TEXT"
        )


def _text_of(value: Any) -> str:
    return "NULL" if value is None else value if isinstance(value, str) else json.dumps(value)


def _release(context: Context, name: str, rule: str, reason: str, yes: bool) -> None:
    from resources.decisions.rejected import preview_release, release_rejected

    (flow,) = context.dataflows([name])
    platform, now = writing_platform(context).loading([flow]), context.now or datetime.now(UTC)
    preview = preview_release(platform, flow, rule, now)
    print_effect(f"{name}: release the rows that {rule} rejected", preview.lines)
    entry: Entry | None = None
    if preview.passing:
        if not yes:
            confirm("Load these rows?")
        entry = release_rejected(platform, flow, rule, reason, now)
    document = {
        "dataflow": name,
        "rule": rule,
        "released": preview.passing if entry else 0,
        "remaining": preview.failing,
        "failed_rules": dict(preview.failed),
        "number": entry and entry.number,
        "entry": entry and entry.as_json(),
    }
    context.emit(document, lambda: _print_release(entry, preview, rule))


def _print_release(entry: Entry | None, preview: ReleasePreview, rule: str) -> None:
    if entry is None:
        click.echo(f"no row that {rule} rejected passes the rules now: nothing was changed")
        return
    print_entries([entry])
    if preview.failing:
        click.echo(f"{pluralize(preview.failing, 'row')} still rejected")
