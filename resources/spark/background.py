"""Work on a Connect server beside the run's own: questions that keep a session alive, and what may end after the process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from resources.spark.process import is_remote
from resources.spark.settings import TIME_ZONE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


AWAKE_SECONDS = 60.0
"""Between two questions that keep a session from ending; a server ends one by default that was not used for an hour."""


@contextmanager
def kept_awake(session: Callable[[], SparkSession | None]) -> Iterator[None]:
    """Within it a session on a Connect server does not end for want of use: this process may fetch rows for longer than a server waits.

    Args:
        session: returns the session, once there is one.
    """
    over = threading.Event()

    def ask() -> None:
        while not over.wait(AWAKE_SECONDS):
            own_session = session()
            if own_session is not None and is_remote(own_session):
                with suppress(Exception):  # the next real question tells what is wrong
                    own_session.conf.get(TIME_ZONE)

    threading.Thread(target=ask, name="strandline-awake", daemon=True).start()
    try:
        yield
    finally:
        over.set()


def leave_behind(session: SparkSession, work: Callable[[SparkSession], object]) -> None:
    """Begin something on a Connect server that ends there after this process, if need be. Do not wait, and do not report a failure.

    Spark in this process ends with it, so there nothing is begun.

    Args:
        session: of the run, which does nothing else with it from here on.
        work: what helps the next run, and changes nothing.
    """
    if not is_remote(session):
        return

    def begin() -> None:
        with suppress(Exception):
            work(session)

    threading.Thread(target=begin, name="strandline-left-behind", daemon=True).start()
