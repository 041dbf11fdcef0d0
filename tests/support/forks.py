"""Processes that a test kills, forked from a process that has imported what they need.

Imports take longer than the work of most of them. A fork is a process of its own, with its own session and
variables, and is
really killed. Its parent has started no thread and no engine, and has opened nothing.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.support.environment import clean_environment
from tests.support.feed import CHECKOUT

_PATIENCE = 240
"""Seconds that a process may take."""
_IMPORTED = (
    "deltalake",
    "duckdb",
    "obstore.store",
    "pandas",
    "psycopg",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "pyiceberg.io.pyarrow",
    "pyiceberg.table",
    "pyspark.sql.connect.session",
    "tests.support.crash_runner",
    "tests.support.decision_crash",
    "tests.support.own_asset_crash",
)
"""What the processes would import, and what these import late."""


@dataclass(frozen=True)
class Ended:
    """A process that is over.

    Attributes:
        code: its exit code; below 0 the signal that killed it.
        output: the end of its output.
    """

    code: int
    output: str


def forked(module: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Ended:
    """Call ``main`` of a module in a process of its own, and wait until it is over.

    Args:
        module: a module of the tests.
        arguments: the arguments of its ``main``.
        environment: all variables of the process.

    Raises:
        TimeoutError: if it is not over in time; it is then killed.
    """
    with TemporaryDirectory() as folder:
        output = Path(folder, "output")
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "output": str(output),
        }
        code = _parent().ask(request)
        return Ended(code, output.read_text(errors="replace")[-4000:])


class _Parent:
    """The process that forks."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks"],
            cwd=CHECKOUT,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        atexit.register(self._end)

    def ask(self, request: Mapping[str, Any]) -> int:
        """Have it fork once; return the fork's exit code."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        child = int(self._line(60))
        try:
            return int(self._line(_PATIENCE))
        except TimeoutError:
            os.killpg(child, signal.SIGKILL)
            self._line(60)
            raise

    def _line(self, seconds: float) -> str:
        answers = self._process.stdout
        assert answers is not None
        if not select.select([answers], [], [], seconds)[0]:
            raise TimeoutError(f"a forked process was not over after {seconds} s")
        line = answers.readline()
        assert line, "the process that forks has ended"
        return line

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


@cache
def _parent() -> _Parent:
    """Return one parent for all tests of this process."""
    return _Parent()


def _serve() -> dict[str, Any] | None:
    """Fork for each line of input; return the request in each fork, and None at the end of input."""
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            _be_apart(request)
            return request
        _tell(child)
        _tell(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    return None


def _tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _be_apart(request: Mapping[str, Any]) -> None:
    """Leave the session, the variables and the files of the parent process."""
    os.setsid()
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(request["output"], os.O_WRONLY | os.O_CREAT)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()


if __name__ == "__main__" and (request := _serve()) is not None:
    importlib.import_module(request["module"]).main(*request["arguments"])
