"""``strandline reconcile``: compares source and table (docs/how-to/is-my-table-right.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.errors import StrandlineError, strip_dataflow
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import confirm, print_effect, writing_platform
from platform_assets.cli.several import collect_results
from platform_assets.kinds import PROFILES
from resources.outcome import error_json
from resources.reconcile.options import LIMIT

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from partitions.reconcile.result import Reconciliation
    from resources.platform.platform import Platform
    from resources.reconcile.options import ReconcileOptions
    from resources.reconcile.repairing import RepairPlan

_DIFFERS = 1
_SORTS = ("missing", "extra", "different")


@click.command("reconcile")
@click.argument("names", nargs=-1, required=True)
@click.option("--start", metavar="A", help="First value of the range: a date, a time or a whole number.")
@click.option("--end", metavar="B", help="End of the range, exclusive; at most the watermark.")
@click.option(
    "--every", metavar="'N UNIT'", help="Length of a range, such as '1 month'; by default all is one."
)
@click.option(
    "--keys", is_flag=True, help="Refuse a dataflow without merge_keys, instead of counting its rows."
)
@click.option(
    "--repair", "repairs", flag_value="all", help="Then make differing rows of the table what the source has."
)
@click.option(
    "--repair-missing", "repairs", flag_value="missing", help="Only add missing rows; leave all others."
)
@click.option("--reason", help="Reason for the repair; stored in the log.")
@click.option("--yes", is_flag=True, help="Repair without asking.")
@click.option("--rows", is_flag=True, help="Compare all columns, not only keys and watermark columns.")
@click.option(
    "--full-read",
    is_flag=True,
    help="Read all of a source that counts no rows itself: files, an API, a function.",
)
@click.option(
    "--limit",
    default=LIMIT,
    show_default=True,
    type=click.IntRange(0, 100_000),
    help="Most keys of each sort to show.",
)
@shared_options
def command(context: Context, names: tuple[str, ...], reason: str | None, yes: bool, **options: Any) -> int:
    """Compare the source with the table up to the watermark: missing, extra and different rows."""
    from resources.reconcile.options import ReconcileOptions

    comparison, flows = ReconcileOptions(**options), context.dataflows(names)
    if (comparison.repairs is None) != (reason is None):
        raise click.UsageError(
            "expected --reason TEXT with --repair or --repair-missing, and only with these"
        )
    platform, now = writing_platform(context).loading(flows), context.now or datetime.now(UTC)
    results: dict[str, Reconciliation] = {}

    def answer(flow: Dataflow) -> dict[str, Any]:
        if reason is None:
            results[flow.name] = _reconcile(platform, flow, comparison, now)
            return {**results[flow.name].as_json(), "repair": None}
        plan = _plan(platform, flow, comparison, now)
        results[flow.name] = plan.comparison
        return {**plan.comparison.as_json(), "repair": _repair(platform, plan, reason, now, yes=yes)}

    documents, code = collect_results(flows, answer, _failed)
    kinds = {flow.name: flow.kind for flow in flows}
    context.emit({"dataflows": documents}, lambda: _print_all(context, documents, results, kinds))
    return code or (_DIFFERS if any(_still_differs(document) for document in documents) else 0)


def _reconcile(
    platform: Platform, flow: Dataflow, options: ReconcileOptions, now: datetime
) -> Reconciliation:
    from resources.reconcile.reconciling import reconcile

    return reconcile(platform, flow, options, now)


def _plan(platform: Platform, flow: Dataflow, options: ReconcileOptions, now: datetime) -> RepairPlan:
    from resources.reconcile.repairing import plan_repair

    return plan_repair(platform, flow, options, now)


def _repair(
    platform: Platform, plan: RepairPlan, reason: str, now: datetime, *, yes: bool
) -> dict[str, Any] | None:
    """Show what a repair does, ask unless ``yes``, and do it; None if there is nothing to repair."""
    from resources.loop.holder_wait import HOLD_WAIT
    from resources.reconcile.repairing import repair

    plan.check()
    if plan.repaired is None:
        return None
    name = plan.dataflow.name
    print_effect(f"{name}: repair", plan.lines)
    if not yes:
        confirm("Repair these rows?")
    outcome = repair(platform, plan, reason, now, hold_wait=HOLD_WAIT)
    if outcome.error is not None:
        raise outcome.error
    return {
        "rows": sum(commit.rows for commit in outcome.committed if commit.entry.why == "reconcile"),
        "removed": sum(
            commit.removed or 0 for commit in outcome.committed if commit.entry.why == "reconcile"
        ),
        "complete": plan.repairs_everything,
        "entry": outcome.newest.as_json() if outcome.newest else None,
    }


def _still_differs(document: dict[str, Any]) -> bool:
    repaired = document.get("repair")
    return not (document["equal"] or (repaired and repaired["complete"]))


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    empty: dict[str, list[Any]] = {name: [] for name in ("ranges", *_SORTS, "not_compared")}
    unknown = dict.fromkeys(
        ("level", "up_to", "state_number", "table_version", "source_time", "source_version")
    )
    return {
        "dataflow": flow.name,
        **unknown,
        **empty,
        "equal": False,
        "repair": None,
        "error": error_json(error),
    }


def _print_all(
    context: Context,
    documents: list[dict[str, Any]],
    results: dict[str, Reconciliation],
    kinds: dict[str, str],
) -> None:
    for document in documents:
        name = document["dataflow"]
        if error := document["error"]:
            click.secho(f"{name}: {strip_dataflow(name, error['message'])}", fg="red")
            context.offer(error["choices"])
        else:
            _print(context, document, results[name], kinds[name])


def _print(context: Context, document: dict[str, Any], result: Reconciliation, kind: str) -> None:
    from partitions.reconcile.result import LEVEL_WORDS, counts_in_words

    name, totals = result.dataflow, counts_in_words(result.totals, result.level)
    up_to = PROFILES[kind].reach_in_words(document["up_to"]) if document["up_to"] else "none"
    verdict = f"{name}: source and table are equal" if result.is_equal else f"{name}: {totals}"
    click.secho(
        f"{verdict}, up to {up_to}" if result.is_whole else verdict, fg="green" if result.is_equal else "red"
    )
    click.echo(f"  compared {LEVEL_WORDS[result.level]}: {result.position.words}")
    if len(result.ranges) > 1 or not result.is_equal:
        _print_ranges(context, result)
    for sort in _SORTS:
        keys = getattr(result, sort)
        for key in keys:
            click.echo(
                f"  {sort}: {', '.join(f'{column} = {_text(value)}' for column, value in key.items())}"
            )
        hidden = getattr(result.totals, sort) - len(keys)
        if keys and hidden > 0:
            click.echo(f"  … and {hidden:,} more {sort} (--limit)")
    for column in result.not_compared:
        click.echo(f"  not compared: {column.name}: {column.why}")
    if repaired := document["repair"]:
        rows, removed = pluralize(repaired["rows"], "row"), pluralize(repaired["removed"], "row")
        entry = repaired["entry"]
        click.secho(f"  repaired by entry {entry['number']}: {rows} written, {removed} removed", fg="green")


def _print_ranges(context: Context, result: Reconciliation) -> None:
    from rich.table import Table

    from partitions.reconcile.result import counts_in_words

    table = Table("range", "source", "table", "result")
    for range_ in result.ranges:
        if range_.source or range_.table:
            counts = counts_in_words(range_.counts, result.level)
            table.add_row(range_.range.words, f"{range_.source:,}", f"{range_.table:,}", counts)
    context.console.print(table)


def _text(value: Any) -> str:
    from partitions.column.predicates import format_bound

    return "NULL" if value is None else format_bound(value)
