"""Measures CPU and wall time of child processes and their children, and prints tables."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
OUT = CHECKOUT / "benchmarks" / "out"
_SAID = 1000
"""Characters of what a command that failed said last."""


@dataclass(frozen=True)
class Cost:
    """The cost of a command, including its children.

    Attributes:
        wall: wall time in seconds.
        cpu: user and system seconds.
        memory: peak of the largest single process, MiB.
        code: the exit code.
        output: its stdout.
        errors: the end of its stderr.
    """

    wall: float
    cpu: float
    memory: float
    code: int
    output: str
    errors: str


def command(arguments: Sequence[str], environment: dict[str, str] | None = None) -> Cost:
    """Run a command to its end; the caller checks its exit code."""
    started = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            arguments,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment() | (environment or {}),
            cwd=CHECKOUT,
            text=True,
        )
        output = process.stdout.read() if process.stdout else ""
        _, status, usage = os.wait4(process.pid, 0)
        errors.seek(0)
        stderr_end = errors.read()[-_SAID:]
    process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(
        time.monotonic() - started,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss / 1024,
        process.returncode,
        output,
        stderr_end,
    )


def _environment() -> dict[str, str]:
    """Return this process's environment, without the variables of a remote session of pyspark.

    With them, a child could not start Spark.
    """
    return {name: value for name, value in os.environ.items() if name != "SPARK_CONNECT_MODE_ENABLED"}


def script(name: str, *arguments: object, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """Run a script of ``benchmarks/scripts`` in a fresh process; return the JSON object that it prints.

    Raises:
        RuntimeError: if it fails.
    """
    cost = command(
        [sys.executable, str(CHECKOUT / "benchmarks/scripts" / f"{name}.py"), *map(str, arguments)],
        environment,
    )
    if cost.code:
        raise RuntimeError(f"{name} {arguments} failed with {cost.code}: {cost.output[-_SAID:]}{cost.errors}")
    result: dict[str, Any] = json.loads(cost.output.strip().splitlines()[-1])
    return result | {"process_wall": cost.wall, "process_cpu": cost.cpu, "process_memory": cost.memory}


def alternate(runs: int, **sides: Callable[[], float]) -> dict[str, list[float]]:
    """Measure all sides in turn, run after run, so that a drifting machine affects all alike."""
    figures: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(runs):
        for name, side in sides.items():
            figures[name].append(side())
    return figures


def ratio(figures: dict[str, list[float]], over: str, under: str) -> float:
    """Return the median of the pairwise ratios."""
    return statistics.median(a / b for a, b in zip(figures[over], figures[under], strict=True))


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def report(name: str, rows: list[dict[str, Any]], notes: Sequence[str] = ()) -> None:
    """Print a table, and write it to a file with a description of the machine."""
    from rich.console import Console
    from rich.table import Table

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(*columns, title=name)
    for row in rows:
        table.add_row(*(_format(row.get(column)) for column in columns))
    console = Console()
    console.print(table)
    for note in notes:
        console.print(note)
    OUT.mkdir(parents=True, exist_ok=True)
    machine = {"cores": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    (OUT / f"{name}.json").write_text(
        json.dumps({"name": name, "machine": machine, "rows": rows, "notes": list(notes)}, indent=2)
    )


def _format(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else "" if value is None else str(value)
