"""Work on a Connect server beside the run: keep sessions alive, and detached work."""

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
"""Seconds between two calls that keep a session alive; by default a server ends one after an idle hour."""


@contextmanager
def keep_session_alive(session: Callable[[], SparkSession | None]) -> Iterator[None]:
    """Keep a session on a Connect server alive while this process does something else for long.

    A server ends a session that is not used for an hour.

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


def run_detached(session: SparkSession, work: Callable[[SparkSession], object]) -> None:
    """Start work on a Connect server that may end after this process. Failures are not reported.

    Embedded Spark ends with this process, so nothing is started there.

    Args:
        session: the session of the run, which no longer uses it.
        work: helps the next run, and changes nothing.
    """
    if not is_remote(session):
        return

    def begin() -> None:
        with suppress(Exception):
            work(session)

    threading.Thread(target=begin, name="strandline-left-behind", daemon=True).start()
