"""A client for a database without Spark: its clock, columns, indexes and single values.

Belongs here: connections by Python's drivers, and how each database describes itself. Rows are read by
Spark (:mod:`resources.sources.jdbc.source`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.errors import SourceError
from partitions.sources.database_types import ColumnType, mariadb_type
from partitions.unit_values import ValueType
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.dialects.dialect import Dialect
from resources.drivers import require_driver
from resources.sources.jdbc.failures import error_of
from resources.sources.jdbc.postgresql_types import postgresql_types
from resources.sources.jdbc.text_tables import tables_of_csv, tables_of_rows

if TYPE_CHECKING:
    import pyarrow as pa

_CONNECT_SECONDS = 10
_ALIVE: dict[str, Any] = {
    "application_name": "strandline",
    "connect_timeout": _CONNECT_SECONDS,
    "keepalives_idle": 30,
    "tcp_user_timeout": 30_000,
    "client_encoding": "UTF8",
}
"""Settings of libpq: they detect a server that vanished silently, and name the client to the server."""
_SESSION = ("-c TimeZone=UTC", "-c DateStyle=ISO", "-c extra_float_digits=3")
"""How values are written, regardless of the settings of role and database."""

_POSTGRESQL_KINDS: Mapping[int, ValueType] = {
    1184: "instant",
    1114: "local",
    1082: "day",
    20: "whole",
    21: "whole",
    23: "whole",
    701: "number",
    1700: "number",
    25: "text",
    1042: "text",
    1043: "text",
    16: "flag",
}
"""By a type's OID."""


_INEXACT = "its values have no exact decimal form, so a bound would miss them; cast it to a double in a query"
_TOO_LONG = "Spark holds 38 digits; cast it in a query"
_UNORDERED = "whose values have no order for a bound; cast it to text in a query"
_DIGITS = 38
_BINARY = 63
"""MariaDB's number for the binary character set."""

_MYSQL_KINDS: Mapping[int, ValueType] = {
    7: "instant",
    12: "local",
    10: "day",
    14: "day",
    1: "whole",
    2: "whole",
    3: "whole",
    8: "whole",
    9: "whole",
    13: "whole",
    0: "number",
    5: "number",
    246: "number",
    252: "text",
    253: "text",
    254: "text",
}
"""By a type's number in the protocol."""


_UNDEFINED_COLUMN, _BAD_FIELD = "42703", 1054
"""Error codes for an unknown column: of PostgreSQL, and of MariaDB and MySQL."""


class CursorColumn(NamedTuple):
    """A column of a query.

    Attributes:
        name: the column's name in the query.
        kind: its data type for comparisons; None if it has none.
        type: its type in a table.
        why: its type, and why it cannot be compared, in words.
        own_name: its name in the table, if different: MariaDB and MySQL ignore case.
    """

    name: str
    kind: ValueType | None
    type: ColumnType
    why: str = ""
    own_name: str | None = None


@dataclass(frozen=True)
class Client:
    """An open connection in one read-only transaction: all answers are of one snapshot.

    Attributes:
        dialect: the database's dialect.
        ask: runs a query and returns its rows; instants are aware and in UTC.
        describe: runs a query and returns its columns.
        stream: runs a query of texts and numbers, whose columns get these names, and yields its rows as the
        server sends them, all as texts. No other query runs meanwhile.
    """

    dialect: Dialect
    ask: Callable[[str], Sequence[tuple[Any, ...]]]
    describe: Callable[[str], Sequence[CursorColumn]]
    stream: Callable[[str, Sequence[str]], Iterator[pa.Table]]

    def value(self, query: str) -> Any:
        """Return the only value of the only row; None if there is no row."""
        rows = self.ask(query)
        return rows[0][0] if rows else None

    def clock(self) -> datetime:
        """Return the database's clock, aware."""
        now: datetime = self.value(self.dialect.clock)
        return now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)


class SqlSnapshot(NamedTuple):
    """A relation of a database, as of one moment.

    Attributes:
        database: open connection.
        relation: table or query, as SQL after FROM.
        types: type of each column.
        now: the database's clock, aware.
    """

    database: Client
    relation: str
    types: Mapping[str, ColumnType]
    now: datetime


@contextmanager
def client(connection: JdbcConnection, timeout: float | None = None) -> Iterator[Client]:
    """Open a connection, and close it afterwards.

    Args:
        connection: how to reach the database.
        timeout: the seconds after which the server ends a query; None: the server's own limit.

    Raises:
        SourceError: the database refuses, or does not answer (SourceUnreachable). Its text contains no
        secret.
    """
    driver_connection = {"postgresql": _postgresql, "mariadb": _mysql}[connection.system]
    with driver_connection(connection, timeout) as database:
        yield database


def is_unknown_column(error: Exception) -> bool:
    """Return whether a driver's error means that a query names an unknown column."""
    return getattr(error, "sqlstate", None) == _UNDEFINED_COLUMN or error.args[:1] == (_BAD_FIELD,)


@contextmanager
def _postgresql(connection: JdbcConnection, timeout: float | None) -> Iterator[Client]:
    require_driver("psycopg")
    import psycopg

    settings: dict[str, Any] = dict(connection.libpq)
    limits = [f"-c statement_timeout={int(timeout * 1000)}"] if timeout is not None else []
    options = " ".join([settings.pop("options", ""), *_SESSION, *limits]).strip()
    try:
        with psycopg.connect(**_ALIVE, **settings, options=options) as driver_connection:
            driver_connection.read_only = True
            driver_connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

            def ask(query: str) -> Sequence[tuple[Any, ...]]:
                return driver_connection.execute(query.encode()).fetchall()

            def describe(query: str) -> Sequence[CursorColumn]:
                cursor = driver_connection.execute(query.encode())
                if cursor.description is None:
                    raise SourceError(
                        f"database {connection}: expected columns, found none. Write the query as a SELECT"
                    )
                types = postgresql_types(cursor, ask)
                return [
                    _postgresql_column(column, type_)
                    for column, type_ in zip(cursor.description, types, strict=True)
                ]

            def stream(query: str, names: Sequence[str]) -> Iterator[pa.Table]:
                statement = f"COPY ({query}) TO STDOUT (FORMAT csv)"
                with driver_connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
                    yield from tables_of_csv(copy, names)

            yield Client(DIALECTS[connection.system], ask, describe, stream)
    except psycopg.Error as error:
        # With several servers each has its own line; the text may quote the address.
        raise error_of(str(error) or type(error).__name__, connection) from None


@contextmanager
def _mysql(connection: JdbcConnection, timeout: float | None) -> Iterator[Client]:
    require_driver("pymysql")
    import pymysql
    import pymysql.cursors

    driver_connection = _first_server(connection, timeout)
    try:
        with driver_connection, driver_connection.cursor() as cursor:
            is_mariadb = "MariaDB" in driver_connection.get_server_info()
            for statement in _mysql_snapshot(connection, timeout, is_mariadb=is_mariadb):
                cursor.execute(statement)

            def ask(query: str) -> Sequence[tuple[Any, ...]]:
                cursor.execute(query)
                zoned = [_MYSQL_KINDS.get(column[1]) == "instant" for column in cursor.description or ()]
                return [
                    tuple(
                        value.replace(tzinfo=UTC) if is_zoned and value is not None else value
                        for value, is_zoned in zip(row, zoned, strict=True)
                    )
                    for row in cursor.fetchall()
                ]

            def describe(query: str) -> Sequence[CursorColumn]:
                cursor.execute(query)
                if cursor.description is None:
                    raise SourceError(
                        f"database {connection}: expected columns, found none. Write the query as a SELECT"
                    )
                # cursor.description has neither the charset nor the table's name for a column.
                return [
                    _mysql_column(field)._replace(
                        own_name=field.org_name if field.org_name not in ("", field.name) else None
                    )
                    for field in cursor._result.fields
                ]

            def stream(query: str, names: Sequence[str]) -> Iterator[pa.Table]:
                with driver_connection.cursor(pymysql.cursors.SSCursor) as unbuffered:
                    unbuffered.execute(query)
                    yield from tables_of_rows(unbuffered, names)

            yield Client(DIALECTS[connection.system], ask, describe, stream)
    except pymysql.Error as error:
        raise _driver_error(error, connection) from None


def _mysql_snapshot(connection: JdbcConnection, timeout: float | None, *, is_mariadb: bool) -> Iterator[str]:
    """Yield the statements that open a session and its read-only snapshot; the timeout is in seconds."""
    if connection.session_variables is not None:
        yield f"SET {connection.session_variables}"
    yield "SET time_zone = '+00:00'"
    if timeout is not None:
        yield (
            f"SET max_statement_time = {timeout}"
            if is_mariadb
            else f"SET max_execution_time = {int(timeout * 1000)}"
        )
    yield "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    yield "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


def _postgresql_column(column: Any, type_: ColumnType) -> CursorColumn:
    kind, type_name = _POSTGRESQL_KINDS.get(column.type_code), column.type_display
    if type_name.startswith("float4"):
        return CursorColumn(column.name, None, type_, f"of type real: {_INEXACT}")
    if kind == "number" and (column.precision or 0) > _DIGITS:
        return CursorColumn(column.name, None, type_, f"of type {type_name}: {_TOO_LONG}")
    type_words = "of a type of your own" if type_name.isdecimal() else f"of type {type_name}"
    return CursorColumn(column.name, kind, type_, "" if kind else f"{type_words}, {_UNORDERED}")


def _mysql_column(field: Any) -> CursorColumn:
    from pymysql.constants import FIELD_TYPE, FLAG

    kind = _MYSQL_KINDS.get(field.type_code)
    names = [name for name, code in vars(FIELD_TYPE).items() if code == field.type_code]
    name, is_binary = names[0].lower(), field.charsetnr == _BINARY  # behind it its aliases
    type_ = mariadb_type(
        name,
        field.length,
        field.scale,
        unsigned=bool(field.flags & FLAG.UNSIGNED),
        binary=is_binary,
    )
    match field.type_code:
        case FIELD_TYPE.FLOAT:
            return CursorColumn(field.name, None, type_, f"of type float: {_INEXACT}")
        case FIELD_TYPE.NEWDECIMAL if field.length - 2 > _DIGITS:  # with its sign and point
            return CursorColumn(field.name, None, type_, f"of a decimal type that is too long: {_TOO_LONG}")
    if kind == "text" and is_binary:
        return CursorColumn(field.name, None, type_, f"of a binary type, {_UNORDERED}")
    return CursorColumn(field.name, kind, type_, "" if kind else f"of type {name}, {_UNORDERED}")


def _first_server(connection: JdbcConnection, timeout: float | None) -> Any:
    """Return a connection to the first server that answers."""
    require_driver("pymysql")
    import pymysql

    servers, settings = connection.mysql
    tls_settings = _tls(connection)
    for number, (host, port) in enumerate(servers, 1):
        try:
            return pymysql.connect(
                host=host,
                port=port,
                **settings,
                **tls_settings,
                charset="utf8mb4",
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=None if timeout is None else timeout + _CONNECT_SECONDS,
            )
        except pymysql.Error as error:
            if number == len(servers):
                raise _driver_error(error, connection) from None
    raise AssertionError(servers)


def _tls(connection: JdbcConnection) -> Mapping[str, Any]:
    """Return PyMySQL settings that verify the same as Spark's driver.

    PyMySQL's own settings would not compare the host without a file of authorities.
    """
    import ssl

    mode, authorities = connection.mysql_tls
    if mode is None:
        return {"ssl_disabled": True}
    try:
        context = ssl.create_default_context(cafile=authorities)
    except OSError as error:  # ssl.SSLError, too
        raise SourceError(
            f"database {connection}: expected certificates in PEM at serverSslCert of its URL on this machine, "
            f"found {error}. Correct the path; Spark reads the same one"
        ) from None
    context.verify_flags &= (
        ~ssl.VERIFY_X509_STRICT
    )  # the certificates that MariaDB makes for itself are not strict
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_NONE if mode == "trust" else ssl.CERT_REQUIRED
    return {"ssl": context}


def _driver_error(error: Exception, connection: JdbcConnection) -> SourceError:
    """Return the error for a driver's error: its last argument is the text, and its number says nothing."""
    driver_text = str(error.args[-1]) if error.args else ""
    return error_of(driver_text or type(error).__name__, connection)
