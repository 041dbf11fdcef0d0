"""``strandline test``: runs the tests of dataflows, rows in, rows out."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from partitions.plan import pluralize
from platform_assets.cli.context import Context, shared_options
from platform_assets.fixtures.test_files import TESTS, find_tests
from platform_assets.project import InvalidProject


@click.command("test")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@shared_options
def command(context: Context, names: Sequence[str]) -> int:
    """Run the tests of dataflows (tests/NAME/*.yaml): no source is opened, no table is written."""
    project, started = context.project, time.monotonic()
    try:
        tests = find_tests(project, names)
    except InvalidProject as error:
        errors = error.errors
        document = {"errors": [project_error.as_json() for project_error in errors]}
        context.emit(document, lambda: click.echo("\n".join(map(str, errors)), err=True))
        return error.exit_code
    if not tests:
        context.emit(
            [],
            lambda: click.echo(
                f"no tests: a test is a file {TESTS}/NAME/*.yaml, with the name of a dataflow"
            ),
        )
        return 0
    from platform_assets.fixtures.results import engine_for, run_tests

    flows = list({test.dataflow.name: test.dataflow for test in tests}.values())
    engine = engine_for(project, flows, lambda line: click.echo(f"  {line}", err=True))
    results = []
    for result in run_tests(project.folder, tests, engine.session):
        results.append(result)
        if not context.as_json:
            _print(context, result.file.name, result.status, result.file.test.description, result.lines)
    failed = sum(result.status == "failed" for result in results)
    context.emit(
        [result.as_json() for result in results],
        lambda: click.echo(
            f"{pluralize(len(results), 'test')}: {len(results) - failed} passed, {failed} failed, in {time.monotonic() - started:.1f} s"
        ),
    )
    return 1 if failed else 0


def _print(context: Context, name: str, status: str, description: str | None, lines: Sequence[str]) -> None:
    color = "red" if status == "failed" else "green"
    text = f": {description}" if description and status == "failed" else ""
    click.secho(f"{name}: {status}{text}", fg=color)
    for line in lines:
        click.echo(context.hide(f"  {line}"))
