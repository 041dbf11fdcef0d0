"""A lock on a file that ends with its process, so that only one process of its kind runs."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from partitions.errors import DataflowHeld


@contextmanager
def single_process(lock: Path, process_name: str) -> Iterator[None]:
    """Hold a file lock while the block runs; it ends with this process, however it ends.

    Args:
        lock: a file, created if it is missing.
        process_name: names the process, for the error.

    Raises:
        DataflowHeld: if another process holds it.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataflowHeld(f"expected no other {process_name}, found one that holds {lock}") from None
        yield
