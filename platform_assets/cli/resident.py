"""How ``strandline run`` finds the process of ``strandline watch`` and lets it work: a socket below the project's folder.

The asking side imports little: of a run that a resident process makes, it is what takes time.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TextIO, cast

from partitions.errors import Held
from platform_assets.cli.context import Context
from platform_assets.dagster_home import project_home
from platform_assets.installation import default_project

_LONGEST = 103
"""Bytes of a socket's path: macOS takes no more, Linux 4 more."""

_PATIENCE = 2.0
"""Seconds for the other side to say what it wants."""

_UNHEARD = 10.0
"""Seconds after which a resident process that has not taken a call is not waited for: it is stopped, or hangs."""

SAME = ("DAGSTER_HOME", "STRANDLINE_SPARK_REMOTE")
"""Variables that say where a run happens and is told: a resident process with another value than the asking one's does not run for it."""

Answer = Callable[[Context, Sequence[str]], int | None]
"""Runs dataflows, all without names; prints, and returns the exit code. None if it does not run these, and has done nothing."""


def address(project: Path) -> Path | None:
    """Return the socket of a project's resident process; None if its path is too long for one."""
    path = project_home(project).parent / "watch"
    return path if len(os.fsencode(path)) <= _LONGEST else None


def ask(context: Context, names: Sequence[str]) -> int | None:
    """Let the project's resident process run dataflows, and show what it prints.

    Args:
        context: of the call.
        names: of dataflows; none are all.

    Returns:
        the exit code; None if there is no such process, it does not answer, or it works elsewhere.
    """
    folder = context.folder or Path(os.environ.get("STRANDLINE_PROJECT") or default_project())
    path = address(folder.expanduser())
    if path is None or not path.exists():
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there, suppress(OSError):
        there.settimeout(_UNHEARD)
        there.connect(str(path))
        question = {
            "names": list(names),
            "folder": str(context.folder) if context.folder else None,
            "as_json": context.as_json,
            "terminals": [sys.stdout.isatty(), sys.stderr.isatty()],
            "environment": _environment(),
        }
        there.sendall(json.dumps(question).encode() + b"\n")
        said = there.makefile("r", encoding="utf-8")
        try:
            heard = said.readline()
        except TimeoutError:
            sys.stderr.write(
                f"strandline: `strandline watch` has not answered within {_UNHEARD:.0f} s: this run goes on without it\n"
            )
            return None
        there.settimeout(None)
        return _shown(chain([heard], said), context.results or sys.stdout) if heard else None
    return None


def _shown(said: Iterable[str], results: TextIO) -> int | None:
    """Print what the other side prints, and return its exit code; None if it refuses, 1 if it ends in the middle."""
    begun = False
    with suppress(OSError, ValueError):  # a line that is cut off
        for line in said:
            match json.loads(line):
                case {"heard": _}:
                    continue
                case {"refused": _}:
                    return None
                case {"code": int(code)}:
                    return code
                case {"out": str(text)}:
                    results.write(text)
                    results.flush()
                case {"err": str(text)}:
                    sys.stderr.write(text)
                    sys.stderr.flush()
            begun = True
    if not begun:
        return None
    sys.stderr.write(
        "strandline: `strandline watch` ended in the middle of this run: the next one finishes it\n"
    )
    return 1


@contextmanager
def alone(project: Path) -> Iterator[None]:
    """Be the project's only resident process as long as the block runs, or this process, however it ends.

    Raises:
        Held: if another process is.
    """
    folder = project_home(project).parent
    folder.mkdir(parents=True, exist_ok=True)
    lock = folder / "watch.lock"
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Held(
                f"expected no other `strandline watch` of this project, found one that holds {lock}"
            ) from None
        yield


@contextmanager
def listening(project: Path) -> Iterator[socket.socket | None]:
    """Listen for ``strandline run`` as long as the block runs, in the only resident process; yields None if the path is too long."""
    path = address(project)
    if path is None:
        yield None
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as here:
        path.unlink(missing_ok=True)  # of one that was killed
        before = os.umask(0o177)  # whoever may write to it may start runs
        try:
            here.bind(str(path))
        finally:
            os.umask(before)
        here.listen()
        try:
            yield here
        finally:
            path.unlink(missing_ok=True)


def hear(there: socket.socket) -> bool:
    """Tell a call that it was taken; return whether anybody still waits for that."""
    return _send(there, {"heard": True})


def serve(there: socket.socket, answer: Answer) -> None:
    """Do what a call asks for, and end it. What goes wrong with the connection ends nothing: the run goes on."""
    with there:
        there.settimeout(_PATIENCE)
        try:
            question = json.loads(there.makefile("r", encoding="utf-8").readline())
            elsewhere = any(
                value and value != os.environ.get(name) for name, value in question["environment"].items()
            )
            folder, names = question["folder"], question["names"]
            context = Context(Path(folder) if folder else None, question["as_json"])
            out, err = (
                _Spoken(there, name, terminal)
                for name, terminal in zip(("out", "err"), question["terminals"], strict=True)
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return  # of another version, say: it runs alone
        if elsewhere:
            _send(there, {"refused": "another environment"})
            return
        context.results = cast("TextIO", out)
        with _saying(err if context.as_json else out, err):
            code = answer(context, names)
        _send(there, {"refused": "other dataflows"} if code is None else {"code": code})


_of_this_thread = threading.local()


@contextmanager
def speaking_by_threads() -> Iterator[None]:
    """Have what each thread prints go where that thread says, as long as the block runs."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast("TextIO", _Routed(name, stream)) for name, stream in zip(("out", "err"), before, strict=True)
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def _saying(out: io.TextIOBase, err: io.TextIOBase) -> Iterator[None]:
    """Have what this thread prints go there."""
    _of_this_thread.out, _of_this_thread.err = out, err
    try:
        yield
    finally:
        del _of_this_thread.out, _of_this_thread.err


class _Routed(io.TextIOBase):
    """What is printed here goes where the thread says, and else where it would have gone."""

    def __init__(self, name: str, usual: TextIO) -> None:
        self._name, self._usual = name, usual

    def write(self, text: str) -> int:
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._stream.isatty()

    @property
    def _stream(self) -> TextIO:
        return cast("TextIO", getattr(_of_this_thread, self._name, self._usual))


class _Spoken(io.TextIOBase):
    """What is printed here appears on the other side."""

    def __init__(self, there: socket.socket, name: str, terminal: bool) -> None:
        self._there, self._name, self._terminal = there, name, terminal
        self._listens = True

    def write(self, text: str) -> int:
        self._listens = self._listens and _send(self._there, {self._name: text})
        return len(text)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._terminal


def _send(there: socket.socket, message: Mapping[str, Any]) -> bool:
    """Return whether it was taken: whoever asked may be gone, or stopped."""
    with suppress(OSError):
        there.sendall(json.dumps(message).encode() + b"\n")
        return True
    return False


def _environment() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in SAME}
