"""``strandline delete``: deletes rows for good (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from partitions.errors import ConfigurationError
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import REASON, YES, apply_decision, confirm, print_effect, writing_platform
from platform_assets.cli.state import print_entries


@click.command("delete")
@click.argument("name")
@click.option(
    "--where",
    metavar="SQL",
    help="Condition in Spark's SQL over the table's columns, such as \"customer = 42\".",
)
@click.option(
    "--forget",
    "number",
    type=click.IntRange(1),
    metavar="ENTRY",
    help="End the delete of this entry instead.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@REASON
@YES
@shared_options
def command(
    context: Context, name: str, where: str | None, number: int | None, dry_run: bool, reason: str, yes: bool
) -> None:
    """Delete rows in one commit, and keep them away: no later load brings them back."""
    if (where is None) == (number is None):
        raise ConfigurationError(
            "expected either --where or --forget, found " + ("both" if where else "neither")
        )
    if number is not None:
        if dry_run:
            raise ConfigurationError(
                "expected --dry-run beside --where, found it beside --forget, whose prompt shows the effect. Leave it out"
            )
        _forget(context, name, number, reason, yes)
    elif where is not None:
        _delete(context, name, where, reason, yes, dry_run)


def _delete(context: Context, name: str, where: str, reason: str, yes: bool, dry_run: bool) -> None:
    from resources.decisions.delete import delete_rows, preview_delete

    (flow,) = context.dataflows([name])
    platform, now = writing_platform(context).loading([flow]), context.now or datetime.now(UTC)
    effect = preview_delete(platform, flow, where, now)
    print_effect(f"{name}: delete where {effect.predicate}", effect.lines)
    if dry_run:
        context.emit(
            {**effect.as_json(), "number": None, "entry": None},
            lambda: click.echo("nothing was deleted: --dry-run"),
        )
        return
    if not yes and not effect.does_nothing:
        confirm("Delete these rows?")
    entry = delete_rows(platform, flow, where, reason, now)
    context.emit(
        {**effect.as_json(), "number": entry.number, "entry": entry.as_json()},
        lambda: print_entries([entry]),
    )


def _forget(context: Context, name: str, number: int, reason: str, yes: bool) -> None:
    from resources.decisions.delete import forget_delete

    entry = apply_decision(context, name, forget_delete(reason, number), reason, yes)
    context.emit(
        {"dataflow": name, "number": entry.number, "entry": entry.as_json()}, lambda: print_entries([entry])
    )
