"""``strandline reconcile``: compares source and table (docs/how-to/is-my-table-right.md)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.errors import StrandlineError, strip_dataflow
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import writing_platform
from platform_assets.cli.several import collect_results
from platform_assets.words import in_words
from resources.outcome import error_json
from resources.reconcile.options import LIMIT

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from partitions.reconcile.result import Reconciliation
    from resources.platform.platform import Platform
    from resources.reconcile.options import ReconcileOptions

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
def command(context: Context, names: tuple[str, ...], **options: Any) -> int:
    """Compare the source with the table up to the watermark: missing, extra and different rows."""
    from resources.reconcile.options import ReconcileOptions

    comparison, flows = ReconcileOptions(**options), context.dataflows(names)
    platform, now = writing_platform(context).loading(flows), context.now or datetime.now(UTC)
    results: dict[str, Reconciliation] = {}

    def answer(flow: Dataflow) -> dict[str, Any]:
        results[flow.name] = _reconcile(platform, flow, comparison, now)
        return results[flow.name].as_json()

    documents, code = collect_results(flows, answer, _failed)
    kinds = {flow.name: flow.kind for flow in flows}
    context.emit({"dataflows": documents}, lambda: _print_all(context, documents, results, kinds))
    return code or (_DIFFERS if any(not document["equal"] for document in documents) else 0)


def _reconcile(
    platform: Platform, flow: Dataflow, options: ReconcileOptions, now: datetime
) -> Reconciliation:
    from resources.reconcile.reconciling import reconcile

    return reconcile(platform, flow, options, now)


def _failed(flow: Dataflow, error: StrandlineError) -> dict[str, Any]:
    empty: dict[str, list[Any]] = {name: [] for name in ("ranges", *_SORTS, "not_compared")}
    unknown = dict.fromkeys(
        ("level", "up_to", "state_number", "table_version", "source_time", "source_version")
    )
    return {"dataflow": flow.name, **unknown, **empty, "equal": False, "error": error_json(error)}


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
    up_to = in_words(kind, document["up_to"])
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
