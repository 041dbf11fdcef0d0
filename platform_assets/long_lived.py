"""Python's collector of cycles while a code location is made.

All that is made stays as long as the process. The collector would look through it again and again, and find
nothing: it took a third of the time of a location of many dataflows.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 100
"""The number of dataflows above which the collector passes over what exists when a location is made."""


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the collector inside the block, or in the function that this decorates."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def long_lived(dataflows: int) -> Iterator[None]:
    """Pause the collector inside the block; of many dataflows leave all that exists then to it no more.

    So Dagster's own work after the block, such as the jobs, is not slowed down either.

    Args:
        dataflows: how many are made inside the block.
    """
    with collection_paused():
        yield
        if dataflows > MANY:
            gc.freeze()
