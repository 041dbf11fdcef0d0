"""``strandline delete``: deletes rows for good (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import REASON, YES, apply_decision, confirm, print_effect, writing_platform
from platform_assets.cli.entry_lines import print_entries

if TYPE_CHECKING:
    from resources.decisions.delete_downstream import Deleted, DeleteOptions, DeletePlan


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
@click.option("--downstream", is_flag=True, help="Delete such rows of tables that are made of this one, too.")
@click.option("--purge", is_flag=True, help="Also delete old versions and files that hold the rows.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@REASON
@YES
@shared_options
def command(
    context: Context,
    name: str,
    where: str | None,
    number: int | None,
    downstream: bool,
    purge: bool,
    dry_run: bool,
    reason: str,
    yes: bool,
) -> None:
    """Delete rows in one commit, and keep them away: no later load brings them back."""
    from resources.decisions.delete_downstream import DeleteOptions

    if (where is None) == (number is None):
        raise ConfigurationError(
            "expected either --where or --forget, found " + ("neither" if where is None else "both")
        )
    if where is not None:
        _delete(context, name, DeleteOptions(where, downstream, purge), reason, yes, dry_run)
        return
    beside = [
        flag
        for flag, is_set in (("--downstream", downstream), ("--purge", purge), ("--dry-run", dry_run))
        if is_set
    ]
    if beside:
        raise ConfigurationError(f"expected {beside[0]} with --where, found it with --forget. Leave it out")
    assert number is not None
    _forget(context, name, number, reason, yes)


def _delete(
    context: Context, name: str, options: DeleteOptions, reason: str, yes: bool, dry_run: bool
) -> None:
    from resources.decisions.delete_downstream import delete_planned, plan_delete, purge_lines

    (flow,) = context.dataflows([name])
    flows = context.project.dataflows
    # Spark starts once, with the jars of the tables downstream, too.
    loaded = flows.values() if options.downstream else [flow]
    platform, now = writing_platform(context).loading(loaded), context.now or datetime.now(UTC)
    plan = plan_delete(platform, flow, flows, options, now)
    for effect in plan.previews:
        print_effect(f"{effect.dataflow}: delete where {effect.predicate}", effect.lines)
    more = [*plan.lines, *(purge_lines(plan, flows) if options.purge else ())]
    if more:
        print_effect("also:", more)
    if dry_run:
        context.emit(_document(plan, None), lambda: click.echo("nothing was deleted: --dry-run"))
        return
    does_nothing = all(effect.does_nothing for effect in plan.previews) and not options.purge
    if not yes and not does_nothing:
        confirm("Delete these rows?")
    deleted = delete_planned(platform, flows, plan, options, reason, now)
    context.emit(_document(plan, deleted), lambda: _print(deleted))


def _document(plan: DeletePlan, deleted: Deleted | None) -> dict[str, Any]:
    first, *others = [_of_dataflow(effect.as_json(), deleted) for effect in plan.previews]
    purged = {purge.dataflow: purge.as_json() for purge in deleted.purged} if deleted else {}
    return {
        **first,
        "downstream": others,
        "untouched": list(plan.untouched),
        "purged": [purged[name] for name in purged],
    }


def _of_dataflow(effect: Mapping[str, Any], deleted: Deleted | None) -> dict[str, Any]:
    entry = deleted.entries[effect["dataflow"]] if deleted else None
    return {**effect, "number": entry and entry.number, "entry": entry and entry.as_json()}


def _print(deleted: Deleted) -> None:
    for name, entry in deleted.entries.items():
        if len(deleted.entries) > 1:
            click.echo(f"{name}:")
        print_entries([entry])
    for purge in deleted.purged:
        side_rows = f", {pluralize(purge.side_rows, 'row')} of side tables" if purge.side_rows else ""
        click.echo(f"{purge.dataflow}: purged {pluralize(purge.deleted, 'file')}{side_rows}")
        for line in purge.remains:
            click.echo(f"  stays: {line}")


def _forget(context: Context, name: str, number: int, reason: str, yes: bool) -> None:
    from resources.decisions.delete import forget_delete

    entry = apply_decision(context, name, forget_delete(reason, number), reason, yes)
    context.emit(
        {"dataflow": name, "number": entry.number, "entry": entry.as_json()}, lambda: print_entries([entry])
    )
