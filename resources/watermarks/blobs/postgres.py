"""Blobs as rows of a table in PostgreSQL; the primary key (folder, name) makes an insert conditional.

The name of an entry is its number, so for entries the primary key is (dataflow, number). Names sort by
byte, whatever the database's collation is.
"""

from __future__ import annotations

from typing import Any

from psycopg import Connection, errors, sql

from resources.connections.postgres import Database
from resources.watermarks.blobs.postgres_pool import PostgresPool

PATIENCE = 15.0
"""Seconds after which a call is not tried again; with its last try it stays below the 60 s of a sensor's tick."""

_READ = "SELECT value FROM {schema}.watermark_log WHERE folder = %s AND name = %s"
_FIRST = "SELECT name FROM {schema}.watermark_log WHERE folder = %s ORDER BY name LIMIT %s"
_FOLDERS = """SELECT DISTINCT split_part(substr(folder, length(%s) + 1), '/', 1) COLLATE "C" AS name
FROM {schema}.watermark_log WHERE starts_with(folder, %s) ORDER BY name"""
_DELETE = "DELETE FROM {schema}.watermark_log WHERE folder = %s AND name = %s RETURNING name"
_PUT = "INSERT INTO {schema}.watermark_log (folder, name, value) VALUES (%s, %s, %b) ON CONFLICT (folder, name) DO "
_PUT_IF_ABSENT, _PUT_OVER = _PUT + "NOTHING", _PUT + "UPDATE SET value = excluded.value"

_HAS_TABLE = "SELECT to_regclass(format('%%I.watermark_log', %s::text)) IS NOT NULL"
_HAS_SCHEMA = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = %s)"
# IF NOT EXISTS fails if two sessions make a thing at once: here they wait for each other.
_ALONE = "SELECT pg_advisory_xact_lock(hashtext('strandline'), hashtext(%s))"
_MAKE_SCHEMA = "CREATE SCHEMA {schema}"
_MAKE_TABLE = """CREATE TABLE {schema}.watermark_log (
    folder text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (folder, name)
)"""
# For people with psql; the product does not read it.
_MAKE_VIEW = r"""CREATE VIEW {schema}.watermark_entries AS
SELECT split_part(folder, '/', 1) AS dataflow,
       split_part(split_part(name, '.', 1), '-', 2)::bigint AS number,
       convert_from(value, 'UTF8')::jsonb AS entry
FROM {schema}.watermark_log
WHERE folder LIKE '%/entries' AND name ~ '^[0-9]+-[0-9]+\.json$'"""

_NO_TABLE = (errors.UndefinedTable, errors.InvalidSchemaName)


class PostgresBlobs:
    """Blobs as rows. The first write creates the schema and the table if they are missing."""

    def __init__(self, database: Database, patience: float = PATIENCE) -> None:
        """Bind to a schema of a database, without opening anything yet.

        Args:
            database: the database's address.
            patience: seconds after which a failing call is not retried.
        """
        self._database = database
        self._connections = PostgresPool(database, patience)

    def get(self, key: str) -> bytes | None:
        """Return the value by one SELECT, or None if there is no row."""
        rows = self._rows("read", key, _READ, *_split(key))
        return rows[0][0] if rows else None

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write by one INSERT; return False if the key exists.

        A retry after an applied INSERT also returns False; the log then reads the entry back.
        """
        return self._write(key, _PUT_IF_ABSENT, data) == 1

    def put(self, key: str, data: bytes) -> None:
        """Write by one INSERT, which updates an existing row."""
        self._write(key, _PUT_OVER, data)

    def first_names(self, folder: str, count: int) -> list[str]:
        """Return the first names of a folder by one SELECT over the index, however long the folder is."""
        return [name for (name,) in self._rows("list", folder, _FIRST, folder, count)]

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in a folder, by one SELECT."""
        prefix = f"{folder}/" if folder else ""
        return [name for (name,) in self._rows("list", folder or "the schema", _FOLDERS, prefix, prefix)]

    def delete(self, key: str) -> None:
        """Remove the row by one DELETE, if it exists."""
        self._rows("delete", key, _DELETE, *_split(key))

    def _rows(self, verb: str, key: str, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none if the table does not exist yet."""

        def act(connection: Connection) -> list[tuple[Any, ...]]:
            try:
                return connection.execute(self._sql(query), values, binary=True).fetchall()
            except _NO_TABLE:
                return []

        return self._connections.run(f"{verb} {key}", act)

    def _write(self, key: str, query: str, data: bytes) -> int:
        """Return how many rows a statement wrote; create the table first if it does not exist."""

        def act(connection: Connection) -> int:
            values = (*_split(key), data)
            try:
                return connection.execute(self._sql(query), values).rowcount
            except _NO_TABLE:
                self._make(connection)
                return connection.execute(self._sql(query), values).rowcount

        return self._connections.run(f"write {key}", act)

    def _make(self, connection: Connection) -> None:
        """Create schema and table if they are missing; an existing schema stays as it is."""
        schema = self._database.schema
        with connection.transaction():
            connection.execute(_ALONE, [schema])
            if not _true(connection, _HAS_SCHEMA, schema):
                connection.execute(self._sql(_MAKE_SCHEMA))
            if not _true(connection, _HAS_TABLE, schema):
                connection.execute(self._sql(_MAKE_TABLE))
                connection.execute(self._sql(_MAKE_VIEW))

    def _sql(self, text: str) -> sql.Composed:
        return sql.SQL(text).format(schema=sql.Identifier(self._database.schema))


def _true(connection: Connection, query: str, value: str) -> bool:
    row = connection.execute(query, [value]).fetchone()
    return row is not None and bool(row[0])


def _split(key: str) -> tuple[str, str]:
    folder, _, name = key.rpartition("/")
    return folder, name
