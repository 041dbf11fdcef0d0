"""Stops a write on the Spark server in its middle until a test lets it go on, without sleeps.

The query of a gate opens two FIFOs for the row of id 1, and opening one for reading waits for somebody who
opens it for
writing: at the first a test sees that the row is reached, at the second it holds it. Whether the gate
stays open for
later writers is a property of the server's Java, which a row checks before the FIFOs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from resources.spark.engine import SparkEngine

_PATIENCE = 120.0


class Gate:
    """A gate with a query that waits at it."""

    def __init__(self, folder: Path, engine: SparkEngine) -> None:
        """Create its FIFOs in a new folder."""
        folder.mkdir()
        self._engine = engine
        self._key = f"gate.{uuid4().hex}"
        self._reached, self._gate = folder / "reached", folder / "gate"
        self._opened: dict[Path, int] = {}
        os.mkfifo(self._reached)
        os.mkfifo(self._gate)

    @property
    def sql(self) -> str:
        """Return a query of all rows; the row of id 1 waits until the gate is opened."""
        left_open = f"reflect('java.lang.System', 'getProperty', '{self._key}') = 'open'"
        reached, passed = (
            f"reflect('scala.io.Source', 'fromFile', '{path}', 'UTF-8') is not null"
            for path in (self._reached, self._gate)
        )
        return f"select id from input where id <> 1 or {left_open} or ({reached} and {passed})"

    def wait(self) -> None:
        """Wait until a writer stands at the gate."""

        def somebody_reads() -> bool:
            with suppress(OSError):
                os.close(os.open(self._reached, os.O_WRONLY | os.O_NONBLOCK))
                return True
            return False

        until(somebody_reads)

    def leave_open(self) -> None:
        """Open the gate for all later writers, but not for one that stands there already."""
        session = self._engine.session()
        session.sql(f"select reflect('java.lang.System', 'setProperty', '{self._key}', 'open')").collect()

    def open(self) -> None:
        """Open the gate for writers that stand there, also between the two FIFOs."""
        for path in (self._reached, self._gate):
            if path not in self._opened:
                self._opened[path] = os.open(
                    path, os.O_RDWR | os.O_NONBLOCK
                )  # stays open, so that nobody ever waits again


@contextmanager
def gate(folder: Path, engine: SparkEngine) -> Iterator[Gate]:
    """Run a gate that is open at the end in any case: the server must not wait for ever."""
    new_gate = Gate(folder, engine)
    try:
        yield new_gate
    finally:
        new_gate.open()


def until(reached: Callable[[], bool], patience: float = _PATIENCE) -> None:
    """Wait for a condition; fail the test if it does not come about."""
    deadline = time.monotonic() + patience
    while not reached():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {patience:.0f} s for what did not come about")
        time.sleep(0.02)
