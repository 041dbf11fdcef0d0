"""Where the one JSON document of ``--json`` goes, and nothing else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO


@contextmanager
def alone_on_stdout() -> Iterator[TextIO]:
    """Yield the standard output. What anything else prints as long as the block runs goes to stderr: a user's function, or a command that it calls."""
    usual = sys.__stdout__
    if usual is None or sys.stdout is not usual:  # a stand-in, which no command that is called would write to
        results = sys.stdout
        with redirect_stdout(sys.stderr):
            yield results
        return
    usual.flush()
    number = usual.fileno()
    kept = os.dup(number)
    os.dup2(sys.__stderr__.fileno() if sys.__stderr__ else 2, number)
    try:
        with (
            os.fdopen(os.dup(kept), "w", encoding=usual.encoding, errors=usual.errors) as document,
            redirect_stdout(sys.stderr),
        ):
            yield document
    finally:
        usual.flush()
        os.dup2(kept, number)
        os.close(kept)
