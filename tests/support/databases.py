"""Both databases, alike: servers that a test may restart, with a table to read by time.

Belongs here: what a test does to a server and its rows. Definitions and runs are in
:mod:`tests.support.columns`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pymysql

from resources.connections.jdbc import JdbcConnection
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import BY_TIME, Columns
from tests.support.feed import Feed
from tests.support.mariadb import MariaDB

START = datetime(2026, 1, 1, tzinfo=UTC)
FILLER = "x" * 400
"""So that an answer is longer than what the sockets between a server and its client hold."""
STRANGER = "sesame-open-9"


def at(number: int) -> datetime:
    """Return the time of a row."""
    return START + timedelta(seconds=number)


class TableLock(ABC):
    """Another client's lock of the whole table, which blocks all readers."""

    @abstractmethod
    def take(self) -> None:
        """Lock the table."""

    @abstractmethod
    def release(self) -> None:
        """Unlock the table, if it is locked."""


@dataclass
class DatabaseRows(ABC):
    """A table ``rows`` of its own name with an id, an indexed instant and a text.

    Attributes:
        name: the name of the table.
        port: the port through which dataflows reach the server, if not its own.
        hosts: the hosts of a URL with several servers; else nothing.
        user: the user that reads; None: an administrator.
        parameters: parameters of the URL.
    """

    name: str = field(default_factory=lambda: f"rows_{uuid4().hex[:8]}")
    port: int | None = None
    hosts: str | None = None
    user: tuple[str, str] | None = None
    parameters: str = ""

    scheme = ""
    database = ""
    columns = ""
    impatient = ""
    """Parameters of the URL with which Spark's statements are ended soon."""

    def __post_init__(self) -> None:
        """Create it."""
        self.ask(f"CREATE TABLE {self.name} (id bigint PRIMARY KEY, {self.columns})")
        self.ask(f"CREATE INDEX {self.name}_at ON {self.name} (at)")

    @abstractmethod
    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of an administrator's statement, in UTC."""

    @property
    @abstractmethod
    def administrator(self) -> tuple[str, str]:
        """Return name and password."""

    @property
    @abstractmethod
    def own_port(self) -> int:
        """Return the server's port."""

    @abstractmethod
    def fill(self, count: int, first: int = 1) -> None:
        """Add rows with following numbers, a second apart."""

    @abstractmethod
    def end_clients(self) -> None:
        """End the connections of all clients, as an administrator does."""

    @abstractmethod
    def restart(self) -> None:
        """Stop the server at once, and start it again."""

    @abstractmethod
    def stranger(self) -> tuple[str, str]:
        """Create a user who may connect but read nothing; return name and password."""

    @abstractmethod
    def limit_connections(self, user: str, *, closed: bool) -> None:
        """Allow a user no more connections, or any number."""

    @abstractmethod
    def locked(self) -> TableLock:
        """Return a lock that is not taken yet."""

    def reader(self) -> tuple[str, str]:
        """Create a user who may read the table; return name and password."""
        name, password = self.stranger()
        self.ask(f"GRANT SELECT ON {self.name} TO {self.role(name)}")
        return name, password

    def role(self, name: str) -> str:
        """Return a user's name for GRANT."""
        return name

    @property
    def url(self) -> str:
        """Return the URL of a connection."""
        hosts = self.hosts or f"127.0.0.1:{self.port or self.own_port}"
        return f"jdbc:{self.scheme}://{hosts}/{self.database}{self.parameters}"

    @property
    def connection(self) -> JdbcConnection:
        """Return the connection of a dataflow."""
        return JdbcConnection.parse(self.url, *(self.user or self.administrator))

    def flow(
        self, folder: Path, engine: SparkEngine, *, source: dict[str, Any] | None = None, **definition: Any
    ) -> Columns:
        """Return a dataflow that appends rows by time, unless the definition says otherwise."""
        user, password = self.user or self.administrator
        erp = {"type": "jdbc", "url": {"env": "ERP_URL"}, "user": user, "password": {"env": "ERP_PASSWORD"}}
        table_source = {"type": "jdbc", "connection": "erp", **(source or {"table": self.name})}
        feed = Feed(
            folder,
            engine,
            {"watermark": BY_TIME, **definition, "source": table_source},
            {"connections": {"erp": erp}},
            {"ERP_PASSWORD": password, "ERP_URL": self.url},
        )
        return Columns(feed)


@dataclass
class OnPostgres(DatabaseRows):
    """The table in PostgreSQL."""

    server: Postgres = field(kw_only=True)

    scheme, database, columns = "postgresql", "postgres", "at timestamptz, filler text"
    impatient = "?options=-c%20statement_timeout=300"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return self.server.ask(statement.replace("{", "{{").replace("}", "}}"))

    @property
    def administrator(self) -> tuple[str, str]:
        """Return the superuser."""
        return "postgres", self.server.password

    @property
    def own_port(self) -> int:
        """Return the server's port."""
        return self.server.port

    def fill(self, count: int, first: int = 1) -> None:
        """Add rows in one statement."""
        self.ask(
            f"INSERT INTO {self.name} SELECT n, timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second', '{FILLER}'"
            f" FROM generate_series({first}, {first + count - 1}) n"
        )

    def stranger(self) -> tuple[str, str]:
        """Create a role."""
        name = f"u_{uuid4().hex[:8]}"
        self.ask(f"CREATE ROLE {name} LOGIN PASSWORD '{STRANGER}'")
        return name, STRANGER

    def limit_connections(self, user: str, *, closed: bool) -> None:
        """Limit the role."""
        self.ask(f"ALTER ROLE {user} CONNECTION LIMIT {0 if closed else -1}")

    def locked(self) -> TableLock:
        """Return a lock by a transaction."""
        return _PostgresLock(self.server.url(), self.name)

    def end_clients(self) -> None:
        """End all connections but this one."""
        self.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def restart(self) -> None:
        """Restart as at a shutdown of its machine."""
        self.server.stop()
        self.server.start()


@dataclass
class OnMariaDB(DatabaseRows):
    """The table in MariaDB."""

    server: MariaDB = field(kw_only=True)

    scheme, database = "mariadb", "shop"
    columns = "at timestamp(6) NULL, filler text CHARACTER SET utf8mb4"
    impatient = "?sessionVariables=lock_wait_timeout=1"

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        return self.server.ask(statement)

    @property
    def administrator(self) -> tuple[str, str]:
        """Return the user who may do everything."""
        return "tests", self.server.password

    @property
    def own_port(self) -> int:
        """Return the server's port."""
        return self.server.port

    def fill(self, count: int, first: int = 1) -> None:
        """Add rows in one statement."""
        self.ask(
            f"INSERT INTO {self.name} SELECT seq, timestamp '2026-01-01 00:00:00' + INTERVAL seq SECOND, '{FILLER}'"
            f" FROM seq_{first}_to_{first + count - 1}"
        )

    def stranger(self) -> tuple[str, str]:
        """Create a user who sees the database, through another of its tables."""
        name = f"u_{uuid4().hex[:8]}"
        self.ask(f"CREATE USER {name}@'localhost' IDENTIFIED BY '{STRANGER}'")
        self.ask(f"GRANT INSERT ON shop.* TO {name}@'localhost'")
        return name, STRANGER

    def role(self, name: str) -> str:
        """Return the name with its host."""
        return f"{name}@'localhost'"

    def limit_connections(self, user: str, *, closed: bool) -> None:
        """Limit the account."""
        self.ask(f"ALTER USER {self.role(user)} WITH MAX_USER_CONNECTIONS {-1 if closed else 0}")

    def locked(self) -> TableLock:
        """Return a lock by a session."""
        return _MariaDBLock(self.server, self.name)

    def end_clients(self) -> None:
        """End all connections but this one."""
        for (number,) in self.ask(
            "SELECT id FROM information_schema.processlist WHERE id <> connection_id() AND user NOT LIKE 'system%'"
        ):
            with suppress(pymysql.Error):  # one that has just ended by itself
                self.ask(f"KILL CONNECTION {number}")

    def restart(self) -> None:
        """Restart as at a shutdown of its machine."""
        self.server.stop()
        self.server.start()


class _PostgresLock(TableLock):
    def __init__(self, url: str, table: str) -> None:
        self._url, self._table = url, table
        self._session: psycopg.Connection | None = None

    def take(self) -> None:
        """Lock the table in a transaction that stays open."""
        self._session = psycopg.connect(self._url)
        self._session.execute(f"LOCK TABLE {self._table} IN ACCESS EXCLUSIVE MODE".encode())

    def release(self) -> None:
        """Close the lock's connection."""
        if self._session is not None:
            self._session.close()


class _MariaDBLock(TableLock):
    def __init__(self, server: MariaDB, table: str) -> None:
        self._server, self._table = server, table
        self._session: Any = None

    def take(self) -> None:
        """Lock the table in a session that stays open."""
        self._session = self._server.session()
        self._session.cursor().execute(f"LOCK TABLES {self._table} WRITE")

    def release(self) -> None:
        """Close the lock's connection."""
        if self._session is not None and self._session.open:
            self._session.close()


def rows_of(server: Postgres | MariaDB, **fields: Any) -> DatabaseRows:
    """Return a table of a server."""
    return (
        OnPostgres(server=server, **fields)
        if isinstance(server, Postgres)
        else OnMariaDB(server=server, **fields)
    )
