"""Run ``strandline`` commands, each in a process of its own that has its modules already.

A command takes about two CPU seconds to import pandas and pyspark, longer than many loads of the demo.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection

_MODULES = (
    "platform_assets.cli.ledger",
    "platform_assets.cli.main",
    "platform_assets.cli.plan",
    "platform_assets.cli.promote",
    "platform_assets.cli.replay",
    "platform_assets.cli.run",
    "platform_assets.cli.state",
    "deltalake",
    "pandas",
    "pyiceberg.table",
    "pyspark.sql.connect.session",
    "rich.progress",
    "rich.table",
)
_processes = get_context("forkserver")
_processes.set_forkserver_preload(list(_MODULES))


def prepare() -> None:
    """Import the modules, so that the first command does not wait for them."""
    process = _processes.Process(target=_do_nothing)
    process.start()
    process.join()


def run_command(words: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]) -> int:
    """Run a command, and return its exit code.

    Args:
        words: the words after ``strandline``.
        environment: all environment variables of the process.
        say: called with each line of output and errors, in their order.
    """
    reader, writer = _processes.Pipe(duplex=False)
    process = _processes.Process(target=_run, args=(tuple(words), dict(environment), writer))
    process.start()
    writer.close()
    with os.fdopen(os.dup(reader.fileno()), encoding="utf-8", errors="replace") as output:
        reader.close()
        for line in output:
            say(line.rstrip())
    process.join()
    return int(process.exitcode or 0)


def _run(words: Sequence[str], environment: Mapping[str, str], writer: Connection) -> None:
    """Run a command in this process, whose output goes to the other one line by line."""
    for stream in (sys.stdout, sys.stderr):
        os.dup2(writer.fileno(), stream.fileno())
    writer.close()
    sys.stdout = sys.stderr = open(1, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115 - as long as the process
    os.environ.clear()
    os.environ.update(environment)
    from platform_assets.cli.main import main

    sys.argv = ["strandline", *words]
    main()


def _do_nothing() -> None:
    """Do nothing: the process that starts this has imported the modules."""
