"""Keeps standard output free for the one JSON document of ``--json``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def reserve_stdout() -> Iterator[TextIO]:
    """Yield standard output, and send all other output of the block to stderr.

    That includes the output of a user's function, and of commands that it calls.
    """
    stdout = sys.__stdout__
    if stdout is None or sys.stdout is not stdout:  # a stand-in: child processes do not write to it
        results = sys.stdout
        with redirect_stdout(sys.stderr):
            yield results
        return
    stdout.flush()
    number = stdout.fileno()
    saved = os.dup(number)
    os.dup2(sys.__stderr__.fileno() if sys.__stderr__ else 2, number)
    try:
        with (
            os.fdopen(os.dup(saved), "w", encoding=stdout.encoding, errors=stdout.errors) as document,
            redirect_stdout(sys.stderr),
        ):
            yield document
    finally:
        stdout.flush()
        os.dup2(saved, number)
        os.close(saved)
