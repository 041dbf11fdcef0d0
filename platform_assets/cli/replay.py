"""``strandline replay``: reads a range again, in place or into an isolated table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.deciding import DELETED, GONE
from platform_assets.cli.plan import print_plans
from platform_assets.cli.several import worst_exit_code
from platform_assets.platform import build_platform
from resources.outcome import Outcome, Step

if TYPE_CHECKING:
    from resources.platform.platform import Platform
    from resources.replay.options import ReplayOptions


@click.command("replay")
@click.argument("names", nargs=-1, required=True)
@click.option("--start", required=True, help="First value of the range: a date, a time or a whole number.")
@click.option("--end", required=True, help="End of the range, exclusive.")
@click.option(
    "--every",
    metavar="'N UNIT'",
    help="Length of a chunk, such as '1 month'; without it the range is one chunk.",
)
@click.option(
    "--column",
    help="Column of the range; by default the first watermark column. Of files: the column of their rows.",
)
@click.option(
    "--by",
    type=click.Choice(["folder", "arrival"]),
    help="Choose files by their folder (the default), or by the time of their arrival.",
)
@click.option(
    "--save-watermark", is_flag=True, help="Raise the watermark to the end of each chunk with rows."
)
@click.option("--replace", is_flag=True, help="Delete the rows of each chunk in the commit that loads it.")
@GONE
@DELETED
@click.option("--into", metavar="LAYER/NAME", help="An isolated table; without it the dataflow's own table.")
@click.option("--dry-run", is_flag=True, help="Only show the chunks.")
@shared_options
def command(
    context: Context, names: tuple[str, ...], into: str | None, dry_run: bool, **range_options: Any
) -> int:
    """Read a range again, without asking. If it stops, the same command continues from there."""
    from resources.replay.options import ReplayOptions

    if range_options["by"] == "folder":
        range_options["by"] = None
    flows, options = context.dataflows(names), ReplayOptions(table=into, **range_options)
    if into is not None and len(flows) > 1:
        raise click.UsageError("--into: expected one NAME: each replay has a table of its own")
    now, platform = context.now or datetime.now(UTC), build_platform(context.project, _say).loading(flows)
    plans = [_plan(platform, flow, options, now) for flow in flows]  # refuse all before the first one starts
    if dry_run:
        documents = [dict(plan.as_json()) for plan in plans]
        context.emit(documents, lambda: print_plans(context, documents))
        return 0
    results = [_replay(context, platform, flow, options, now, is_only=len(flows) == 1) for flow in flows]
    documents = [document for document, _ in results]
    promotable = {flow.name for flow in flows if platform.replay(flow, options, now).can_promote}
    context.emit(documents, lambda: _print_all(context, documents, options, promotable))
    return worst_exit_code([0, *(error.exit_code for _, error in results if error is not None)])


def _plan(platform: Platform, flow: Dataflow, options: ReplayOptions, now: datetime) -> Any:
    from resources.replay.in_place import plan_in_place
    from resources.replay.isolated.replaying import plan_isolated

    return (plan_in_place if options.table is None else plan_isolated)(platform, flow, options, now)


def _replay(
    context: Context,
    platform: Platform,
    flow: Dataflow,
    options: ReplayOptions,
    now: datetime,
    *,
    is_only: bool,
) -> tuple[dict[str, Any], StrandlineError | None]:
    """Replay one dataflow; return its document and its error.

    Raises:
        StrandlineError: if it is the only dataflow and its replay never began; or was held or needs a
            decision, and the answer is JSON.
    """
    from resources.loop.holder_wait import HOLD_WAIT
    from resources.notes.last_run import note_failed_start
    from resources.replay.in_place import replay_in_place
    from resources.replay.isolated.replaying import replay_isolated

    progress, into = _Progress(context), options.table or flow.table
    callbacks: dict[str, Any] = {"observer": progress.show_step, "on_progress": progress.show_chunks}
    try:
        with progress:
            if options.table is None:
                replay = replay_in_place(platform, flow, options, now, hold_wait=HOLD_WAIT, **callbacks)
            else:
                replay = replay_isolated(platform, flow, options, now, **callbacks)
    except StrandlineError as error:
        if options.table is None:
            note_failed_start(platform.log, flow.name, error, is_replay=True)
        if is_only:
            raise
        outcome = Outcome(flow.name, None, {}, 0, error=error)
        return {**outcome.as_json(), "table": into, "chunks": []}, error
    failure = replay.outcome.error
    if is_only and failure is not None and failure.exit_code in (3, 4) and context.as_json:
        raise failure
    return {
        **replay.outcome.as_json(),
        "dataflow": flow.name,
        "table": into,
        "chunks": replay.reports,
    }, failure


class _Progress:
    """A progress bar over the chunks with the remaining time, for people."""

    def __init__(self, context: Context) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("  chunks"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), disable=context.as_json)
        self._task = self._bar.add_task("chunks", total=None)

    def __enter__(self) -> None:
        self._bar.start()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show_chunks(self, reports: Sequence[dict[str, Any]]) -> None:
        """Show how many chunks are done."""
        loaded = [report for report in reports if report["status"] not in ("pending", "failed")]
        self._bar.update(self._task, total=len(reports), completed=len(loaded))

    def show_step(self, step: Step, line: str) -> None:
        """Print the line of a step that plans or appends; other steps print nothing."""
        if step in (Step.PLANNED, Step.APPENDED):
            self._bar.console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _print_all(
    context: Context,
    documents: Sequence[dict[str, Any]],
    options: ReplayOptions,
    promotable: Collection[str],
) -> None:
    for document in documents:
        _print(context, document)
        if options.table is not None and not document["error"]:
            name = document["dataflow"]
            words = ("promote", "drop") if document["chunks"] and name in promotable else ("drop",)
            commands = [f"strandline {word} {name} {options.table} --reason TEXT" for word in words]
            context.offer(commands, 2)


def _print(context: Context, document: dict[str, Any]) -> None:
    chunks, error = document["chunks"], document["error"]
    rows = pluralize(sum(chunk["rows"] for chunk in chunks), "row")
    counts = Counter(chunk["status"] for chunk in chunks)
    statuses = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none in this range"
    color = "red" if error else "green"
    click.secho(
        f"{document['dataflow']}: {document['status']}, {rows} into {document['table']}; chunks: {statuses}",
        fg=color,
    )
    for warning in document["warnings"]:
        click.secho(f"  warning: {warning}", fg="yellow", err=True)
    if error:
        click.secho(f"  {error['message']}", fg="red", err=True)
        context.offer(error["choices"], 4, err=True)


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)
