"""The command ``strandline``: imports a command's module, and gives every failure its exit code."""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NoReturn

import click
from typing_extensions import override

from partitions.errors import StrandlineError
from platform_assets.cli.context import Context, shared_options
from platform_assets.cli.json_output import reserve_stdout

COMMANDS = {
    "init": "Create a project folder, or dataflows for existing files.",
    "validate": "Check all project files.",
    "list": "Show the status of every dataflow (also: status).",
    "plan": "Show what the next run would do, and why.",
    "test": "Run the tests of dataflows: rows in, rows out.",
    "why": "Say why nothing is loaded, or what became of a part.",
    "run": "Load new data, exactly once.",
    "show": "Print rows of a table.",
    "reconcile": "Compare source and table: missing, extra and different rows.",
    "replay": "Read a range again, in place or into an isolated table.",
    "promote": "Put the rows of an isolated replay in place of the live ones.",
    "drop": "Remove an isolated replay.",
    "ledger": "Show what is covered and missing, unit by unit.",
    "simulate": "Show what each grace would have caught and read again.",
    "state": "Show the state of a dataflow, or decide about it.",
    "rejected": "Show the rows that failed a rule, or load them again.",
    "delete": "Delete rows in one commit, and keep them away.",
    "rename": "Rename a dataflow together with its state; its table stays.",
    "relocate": "Write the new addresses of Iceberg tables that were moved.",
    "splits": "Remove or merge splits of a stream.",
    "stream": "Flush the buffered rows of a stream whose input has ended.",
    "schema": "Show the schema, or infer it again.",
    "late": "Run one step of the sweep for late files.",
    "files": "Hand single files to the next run.",
    "maintain": "Merge a table's small files, and delete old ones.",
    "prepare": "Fetch Spark's jars, and let Spark start faster on this machine.",
    "packages": "Print the jars and settings that a Spark Connect server needs.",
    "doctor": "Check Java, Spark, state, lake, sources and Dagster.",
    "metrics": "Print Prometheus' metrics of every dataflow.",
    "watch": "Load new data every few seconds, in a process that keeps running.",
    "dev": "Open the Dagster UI with a warm engine beside it.",
}
"""Every command with its help line. The command is ``command`` in the module of the same name."""

ALIASES = {"status": "list"}
"""Other names that people may try first."""

_INTERRUPTED = 130

_STOPPED = "stopped by the user. Committed slices stay, and the same command continues from there"

_PACKAGES = {"partitions", "resources", "platform_assets", "strandline"}
"""The product's packages, in a checkout or installed."""

_GC_THRESHOLD = 50_000
"""Allocated objects before a garbage collection; with Python's 700 it took an eighth of a run with nothing to do."""


class Strandline(click.Group):
    """A group that imports a command when it is called, so that ``validate`` does not wait for Dagster."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of ``COMMANDS``."""
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing it now; None for an unknown name."""
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"{__package__}.{cmd_name}").command
        return command

    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command of these arguments; raise with the nearest name if it is unknown."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from partitions.spelling import nearest_name

            close = nearest_name(args[0], COMMANDS)
            hint = f"did you mean {close}?" if close else f"expected one of {', '.join(COMMANDS)}"
            raise click.UsageError(f"no command {args[0]!r}: {hint}", error.ctx) from None

    def main(self, args: Sequence[str] | None = None, *positional: Any, **named: Any) -> NoReturn:
        """Run a command, and exit with its code (docs/reference/cli.md)."""
        gc.set_threshold(_GC_THRESHOLD)
        arguments = list(sys.argv[1:] if args is None else args)
        context = Context(as_json="--json" in arguments)  # a usage error may come before the option is read
        named |= {"standalone_mode": False, "obj": context}
        with reserve_stdout() if context.as_json else nullcontext() as context.results:
            try:
                code = super().main(arguments, *positional, **named)
            except Exception as error:  # noqa: BLE001  the last place that can give it an exit code and a message
                code = _report(error, context)
        sys.exit(code if isinstance(code, int) else 0)


@dataclass(frozen=True)
class _Failure:
    exit_code: int
    code: str
    message: str
    choices: Sequence[str] = ()


def _report(error: Exception, context: Context) -> int:
    """Print a failure, as JSON on stdout or for people on stderr, and return its exit code."""
    failure = _failure(error)
    if os.environ.get("STRANDLINE_DEBUG") == "1":
        click.echo(context.hide("".join(traceback.format_exception(error))), err=True)
    message = context.hide(failure.message)
    if context.as_json:
        document = {"code": failure.code, "message": message, "choices": list(failure.choices)}
        click.echo(json.dumps({"error": document}, indent=2), file=context.results)
    elif isinstance(error, click.UsageError):
        error.show()
    else:
        click.echo(f"strandline: {message}", err=True)
        context.offer(failure.choices, err=True)
    return failure.exit_code


def _failure(error: Exception) -> _Failure:
    match error:
        case StrandlineError():
            return _Failure(error.exit_code, error.code, error.message, error.choices)
        case click.ClickException():
            return _Failure(error.exit_code, "usage", error.format_message())
        case click.Abort(__cause__=KeyboardInterrupt()):
            return _Failure(_INTERRUPTED, "interrupted", _STOPPED)
        case click.Abort():
            return _Failure(_INTERRUPTED, "interrupted", "stopped by the user")
        case OSError(filename=str(place), strerror=str(why)):
            checks = "Check its path, owner and mode, and that its disk has free space"
            return _Failure(1, StrandlineError.code, f"{place}: {why}. {checks}")
    return _Failure(1, "internal", f"{type(error).__name__}: {error} (STRANDLINE_DEBUG=1 shows where)")


class _Lines(logging.Formatter):
    """A formatter of log lines for people: lines of the product itself show no module name."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a log record as a line for people."""
        text = super().format(record)
        level, package = record.levelname.lower(), record.name.partition(".")[0]
        return f"{level}: {text}" if package in _PACKAGES else f"{level}: {record.name}: {text}"


def _print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        from platform_assets.installation import installed_version

        click.echo(f"strandline {installed_version()}")
        context.exit()


@click.group(cls=Strandline, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@shared_options
def strandline(_: Context) -> None:
    """Load data that keeps arriving, exactly once, and show what is loaded, missing and next."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(handlers=[handler])
    warnings.filterwarnings(
        "ignore", r"\[RETRIES_EXCEEDED\]"
    )  # pyspark's; the error of the run says that the server is gone


def main() -> NoReturn:
    """Run the console script."""
    try:
        strandline.main(prog_name="strandline")
    finally:
        gc.freeze()  # or the interpreter looks at every object of pandas and pyspark once more before it ends: half a second
