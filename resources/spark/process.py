"""The Java process of embedded Spark: its output goes to a file, and into the error if it fails.

The start-up output of Java and Spark tells a user nothing, and would stand between a command's own lines.
It goes to an unnamed file, which ends with this process. If Spark does not start, or dies, its last lines
are in the error.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Collection, Mapping
from typing import IO

from partitions.errors import shorten_to_line
from resources.spark.advice import without_advice
from resources.spark_runtime import ICEBERG_PACKAGE

SHOW = "STRANDLINE_DEBUG"
"""The environment variable that, set to 1, lets Java print to the terminal."""

_DYING_SECONDS = 0.2
_TAIL_BYTES = 64 * 1024
_SHOWN_LINES = 3
_TELLING = re.compile(
    r"unresolved dependency|not found|UnknownHost|OutOfMemory|Exception|Error|error:|Killed"
)
_IN_PYTHON = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(\S.*)")
_NOISE = re.compile(
    r"^\s+at |^\s*\.\.\. \d+ more|^WARNING: |^\S+ \S+ (WARN|INFO) |^Setting |^Using Spark's default|^To adjust logging"
)

_output: IO[bytes] | None = None


def start_java(settings: Mapping[str, str], secret_keys: Collection[str] = ()) -> None:
    """Start the Java process, and Spark in it; do nothing if this process has one already.

    Java prints to the terminal if ``SHOW`` is set; else its output is kept for errors.

    Args:
        settings: Spark's settings.
        secret_keys: the keys of settings that hold secrets: they reach Java by its socket, and not by its
            command line, which every user of the machine can read.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    global _output  # noqa: PLW0603 - one Java process for each of ours, as pyspark has it
    if is_java_running():
        return
    visible = {key: value for key, value in settings.items() if key not in secret_keys}
    conf = SparkConf(loadDefaults=False).setAll(list(visible.items()))
    output = {}
    if os.environ.get(SHOW) != "1":
        if _output is None:
            _output = tempfile.TemporaryFile(prefix="strandline-java-")  # noqa: SIM115 - open as long as Java is
        output = {"stdout": _output, "stderr": subprocess.STDOUT}
    gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
    # Java has the named jars and the fetched ones. If they were named again here, executors would get only the named ones.
    rest = {key: value for key, value in settings.items() if key != "spark.jars"}
    SparkContext(conf=SparkConf(loadDefaults=False).setAll(list(rest.items())), gateway=gateway)


def is_java_running() -> bool:
    """Return whether this process has a Java process for Spark, whoever started it."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def describe_java_end() -> str | None:
    """Return how the Java process ended, with its last output; None while it runs, or if there is none."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        code: int = process.wait(_DYING_SECONDS)  # a process that was just killed may not have ended yet
    except subprocess.TimeoutExpired:
        return None
    why = " (the system stopped it, often because memory ran out)" if code == -signal.SIGKILL else ""
    output = last_output()
    return f"Spark's Java process ended with code {code}{why}{f'; its output: {output}' if output else ''}"


def last_output() -> str:
    """Return the last informative output of the Java process; "" if there is none, or it went elsewhere."""
    if _output is None:
        return ""
    size = os.fstat(_output.fileno()).st_size
    return telling_lines(
        os.pread(_output.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES)).decode(errors="replace")
    )


def telling_lines(text: str) -> str:
    """Return the last lines of Java's output that tell a failure, without stack traces.

    If no line does, return the last lines.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _NOISE.match(line)]
    chosen = dict.fromkeys([line for line in lines if _TELLING.search(line)] or lines[-_SHOWN_LINES:])
    return " | ".join(shorten_to_line(line) for line in list(chosen)[-_SHOWN_LINES:])


_OF_RPC = re.compile(
    r"<_\w+ of RPC that terminated with:.*?StatusCode\.(?:UNAVAILABLE|DEADLINE_EXCEEDED|CANCELLED)", re.DOTALL
)
_DETAILS = re.compile(r'details = "(.*?)"\s*$', re.MULTILINE)


def error_line(error: Exception) -> str:
    """Return the line of a Spark error that tells what happened, without advice to change values.

    If a user's Python function failed, its own error stands at the end of a traceback. py4j's first line
    only names the call; Java's own error is in the second.
    """
    text = str(error).strip()
    if match := _IN_PYTHON.search(text):
        return shorten_to_line(without_advice(match[1]))
    if _OF_RPC.search(text):
        return _details(text)
    lines = text.splitlines() or [type(error).__name__]
    in_java = lines[1:2] and lines[1].startswith(": ")
    return shorten_to_line(without_advice(lines[1][2:] if in_java else lines[0]))


_GONE = ("RetriesExceeded", "Py4JNetworkError")
"""Errors of the connection to an engine, by name, since only the library in use is imported."""

_SILENT = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED")
"""Status codes of an RPC without an answer. Spark's own errors are failed RPCs, too, with other codes."""


_LACKS_ICEBERG = re.compile(r"ClassNotFoundException: org\.apache\.iceberg\.[\w.$]+")
"""Spark's message for an Iceberg catalog if it was started without Iceberg's runtime."""


def missing_iceberg(error: BaseException, server: str | None = None) -> str | None:
    """Return what to do about an engine without Iceberg's runtime; None if the error is another one.

    No later run succeeds on that engine.

    Args:
        error: Spark's error.
        server: the address of the Connect server, if it is known to be one.
    """
    if _LACKS_ICEBERG.search(str(error)) is None:
        return None
    return (
        f"{f'the Spark Connect server {server}' if server else 'this Spark process'} was started without "
        f"Iceberg. Start it with the package {ICEBERG_PACKAGE} (docs/reference/iceberg.md). `strandline "
        "dev` does so if a dataflow uses Iceberg when it starts: restart it. Or use another engine: "
        "unset STRANDLINE_SPARK_REMOTE or spark.remote"
    )


def is_remote(session: object) -> bool:
    """Return whether a session is on a Connect server.

    Another session raises a pyspark error if a Connect-only attribute is used.
    """
    return type(session).__module__.startswith("pyspark.sql.connect")


def server_of(session: object) -> str | None:
    """Return the address of a session's Connect server; None if Spark runs elsewhere."""
    if not is_remote(session):
        return None
    endpoint = getattr(getattr(getattr(session, "client", None), "_builder", None), "endpoint", None)
    return f"sc://{endpoint}" if endpoint else None


def describe_engine_loss(error: BaseException) -> str | None:
    """Return the line of an error that tells of a lost engine or session; None for another error.

    The read or write itself is not to blame for such an error.
    """
    visited: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in visited:
        visited.add(id(at))
        if any(kind.__name__ in _GONE for kind in type(at).__mro__) or _status(at) in _SILENT:
            details = getattr(at, "details", None)
            detail = details() if callable(details) else None
            return shorten_to_line(str(detail)) if detail else _details(str(at))
        condition = getattr(at, "getCondition", None)
        name = condition() if callable(condition) else None
        if str(name).startswith("INVALID_HANDLE."):
            return shorten_to_line(str(at).splitlines()[0])
        if _OF_RPC.search(str(at)):
            return _details(str(at))
        at = at.__cause__ or at.__context__
    return None


def _status(error: BaseException) -> str | None:
    """Return the name of the status code of an RPC's error; None for another error."""
    code = (
        getattr(error, "code", None)
        if any(kind.__name__ == "RpcError" for kind in type(error).__mro__)
        else None
    )
    return getattr(code(), "name", None) if callable(code) else None


def _details(text: str) -> str:
    """Return the details of an RPC's error; without any, its first line."""
    match = _DETAILS.search(text)
    return shorten_to_line(match[1] if match else (text.strip().splitlines() or ["no answer"])[0])
