"""Connections to a PostgreSQL server: opened on demand, reused while they work, replaced when broken.

Each call takes a connection of its own, so threads never wait for each other. A failure that may pass (a
restart, a dropped connection) is retried; callers make sure that a repeated statement does no harm.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from resources.connections.postgres import Database
from resources.retries import retry_attempts
from resources.watermarks.blobs.postgres_failures import StandbyError, is_transient, provider_error

if TYPE_CHECKING:
    from psycopg.abc import RV, PQGen

T = TypeVar("T")

_ANSWER_SECONDS = 20.0
"""Seconds for the answer to one statement. The server's own limit is shorter and says more, if it can still say anything."""

_IDLE_CONNECTIONS = 2
"""Idle connections kept for later calls. Sensors ask every half minute, and a server has few connections."""

# If several servers are named, all but one are copies, which may lag behind.
_OF_SEVERAL = {"target_session_attrs": "primary"}
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 30,
    "fallback_application_name": "strandline",
}
# An answer must mean that the row is on disk, whatever the role's settings are.
_SETTLE = """SELECT pg_is_in_recovery(), set_config('statement_timeout', '15s', false),
    set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)"""


class PostgresPool:
    """Connections of one database. Threads and forked processes may share the object."""

    def __init__(self, database: Database, patience: float) -> None:
        """Use a database, without opening anything yet.

        Args:
            database: the database's address.
            patience: seconds after which a failing call is not retried.
        """
        self._database, self._patience = database, patience
        self._idle: deque[tuple[int, psycopg.Connection]] = deque()

    def run(self, operation: str, act: Callable[[psycopg.Connection], T]) -> T:
        """Run ``act`` on a connection in autocommit, and retry it on another while the failure may pass.

        Raises:
            ProviderError: its message contains ``operation``, such as ``write flow/entries/…``.
        """
        limits = {"attempts": None, "timeout": self._patience, "wait_max": 2.0, "wait_jitter": 0.2}
        try:
            for attempt in retry_attempts(is_transient, **limits):
                with attempt, self._lend() as connection:
                    return act(connection)
        except psycopg.Error as error:
            raise provider_error(self._database, operation, error) from error
        raise AssertionError("a try either returns or raises")

    @contextmanager
    def _lend(self) -> Iterator[psycopg.Connection]:
        connection = self._idle_connection() or self._open()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def _idle_connection(self) -> psycopg.Connection | None:
        """Return an idle connection of this process: a connection inherited by a fork belongs to its parent."""
        with suppress(IndexError):
            while True:
                process, connection = self._idle.pop()
                if process == os.getpid():
                    return connection
        return None

    def _give_back(self, connection: psycopg.Connection) -> None:
        if connection.info.transaction_status != TransactionStatus.IDLE:
            connection.close()
            self._idle.clear()  # the same failure has broken the others
        elif len(self._idle) < _IDLE_CONNECTIONS:
            self._idle.append((os.getpid(), connection))
        else:
            connection.close()

    def _open(self) -> psycopg.Connection:
        named = conninfo_to_dict(self._database.url)
        several = _OF_SEVERAL if "," in str(named.get("host")) else {}
        settings: dict[str, Any] = _DEFAULTS | several | named
        connection = _ConnectionWithTimeout.connect(autocommit=True, prepare_threshold=None, **settings)
        try:
            row = connection.execute(_SETTLE).fetchone()
        except BaseException:
            connection.close()
            raise
        if row is None or row[0]:
            connection.close()
            raise StandbyError("the server is a standby: its data may be older than the state")
        return connection


class _ConnectionWithTimeout(psycopg.Connection):
    """A connection that limits the wait for an answer: a frozen server keeps connections open in silence."""

    def wait(self, gen: PQGen[RV], *arguments: Any, **named: Any) -> RV:
        """Wait for the answer to a statement, at most 20 seconds."""
        return super().wait(_within(gen, time.monotonic() + _ANSWER_SECONDS), *arguments, **named)


def _within(gen: PQGen[RV], deadline: float) -> PQGen[RV]:
    try:
        awaited_state = next(gen)
        while True:
            ready = yield awaited_state
            if time.monotonic() > deadline:
                raise psycopg.OperationalError(f"the server has not answered within {_ANSWER_SECONDS:.0f} s")
            awaited_state = gen.send(ready)
    except StopIteration as stop:
        return stop.value  # type: ignore[no-any-return]
