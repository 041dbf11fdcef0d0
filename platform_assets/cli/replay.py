"""``strandline replay``: a range is read again, chunk by chunk, into a table aside (docs/replay.md)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import click

from partitions.plan import counted
from platform_assets.cli.context import Context, shared
from platform_assets.cli.plan import print_plans
from platform_assets.platform import build_platform
from resources.loop.outcome import Step


@click.command("replay")
@click.argument("name")
@click.option("--start", required=True, help="First value of the range: a date, a time or a whole number.")
@click.option("--end", required=True, help="The value that ends it, which is not part of it.")
@click.option("--every", metavar="'N UNIT'", help="Length of a chunk; without it the range is one chunk.")
@click.option("--column", help="The column that is cut; by default the first watermark column.")
@click.option("--into", metavar="LAYER/NAME", required=True, help="The table aside.")
@click.option("--dry-run", is_flag=True, help="Only show the chunks.")
@shared
def command(
    context: Context,
    name: str,
    start: str,
    end: str,
    every: str | None,
    column: str | None,
    into: str,
    dry_run: bool,
) -> int:
    """Read a range again into a table aside. The same command again goes on where this one has stopped."""
    from resources.aside import Asked, plan_aside, replay_aside

    (flow,) = context.dataflows([name])
    asked, now = Asked(start, end, into, every, column), context.now or datetime.now(UTC)
    platform = build_platform(context.project, _say)
    if dry_run:
        documents = [dict(plan_aside(platform, flow, asked, now).as_json())]
        context.emit(documents, lambda: print_plans(context, documents))
        return 0
    progress = _Progress(context)
    with progress:
        done = replay_aside(platform, flow, asked, now, observer=progress.hear, begun=progress.begin)
    error = done.outcome.error
    if error is not None and error.exit_code in (3, 4) and context.as_json:
        raise error
    document = {**done.outcome.as_json(), "dataflow": name, "table": into, "chunks": done.chunks}
    context.emit([document], lambda: _print(context, document))
    return error.exit_code if error else 0


class _Progress:
    """A bar over the chunks with the time that is left, for people."""

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

    def begin(self, done: int, number: int) -> None:
        """Show how many chunks are done."""
        self._bar.update(self._task, total=number, completed=done)

    def hear(self, step: Step, line: str) -> None:
        """Count a chunk, and say what became of it."""
        if step == Step.APPENDED:
            self._bar.advance(self._task)
        if step in (Step.PLANNED, Step.APPENDED):
            self._bar.console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def _print(context: Context, document: dict[str, Any]) -> None:
    chunks = document["chunks"]
    rows = counted(sum(chunk["rows"] for chunk in chunks), "row")
    counts = Counter(chunk["status"] for chunk in chunks)
    told = ", ".join(f"{count} {status}" for status, count in counts.items())
    color = "red" if document["error"] else "green"
    click.secho(
        f"{document['dataflow']}: {document['status']}, {rows} into {document['table']}; chunks: {told}",
        fg=color,
    )
    if error := document["error"]:
        click.secho(f"  {error['message']}", fg="red", err=True)
        context.offer(error["choices"], 4, err=True)
    else:
        name, table = document["dataflow"], document["table"]
        context.offer([f"strandline {word} {name} {table} --reason TEXT" for word in ("promote", "drop")], 2)


def _say(line: str) -> None:
    click.echo(f"  {line}", err=True)
