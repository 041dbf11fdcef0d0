"""The catalog of Iceberg tables in PostgreSQL: a row per table that names its newest metadata.

A commit updates the row only if it still names the metadata before. We write SQL ourselves because
pyiceberg's ``SqlCatalog`` writes metadata through its models, and imports SQLAlchemy, which `plan` does
not need (docs/explanation/adr/0032).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from partitions.errors import SourceError, TargetError, shorten_to_line
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.drivers import require_driver
from resources.tables.iceberg.catalog import (
    LOCAL_FILES,
    SqlNames,
    at_own_place,
    key_below,
    names_other_folder,
    strip_file_scheme,
)
from resources.tables.iceberg.folder_metadata import check_not_moved, find_moved_metadata, read_metadata
from resources.tables.iceberg.metadata import Metadata, dropped_metadata_files, with_snapshot
from resources.tables.iceberg.refs import RefChange, commit_refs

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession

_NUMBER = re.compile(r"(\d+)-")
_APPLICATION = "strandline iceberg catalog"
"""Application name of the connections of Spark's sessions in PostgreSQL."""

IDLE_SECONDS = 60
"""Idle time after which such a connection is ended. Spark reopens one that it still needs."""


_CATALOG_TABLE = """
CREATE TABLE IF NOT EXISTS iceberg_tables (
    catalog_name VARCHAR(255) NOT NULL,
    table_namespace VARCHAR(255) NOT NULL,
    table_name VARCHAR(255) NOT NULL,
    metadata_location VARCHAR(1000),
    previous_metadata_location VARCHAR(1000),
    iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name)
)
"""
"""Iceberg's own table of tables, version V1; a database that a lake is moved to may lack it."""


class JdbcCatalog(SqlNames):
    """The row of the table at a place, two levels below Iceberg's warehouse."""

    def __init__(self, place: Place, connection: JdbcConnection) -> None:
        """Use a table; it need not exist."""
        self._place, self._connection = place, connection
        self._warehouse, self._namespace, self._table = place.spark_url.rsplit("/", 2)
        self._catalog = _catalog_name(self._warehouse)

    def newest(self) -> Metadata | None:
        """Return the metadata that the row names."""
        location = self._location()
        if location is None:
            check_not_moved(self._place)
            return None
        return at_own_place(self._read(location), self._place)

    def find_moved(self) -> tuple[Metadata, tuple[str, ...]] | None:
        """Return the metadata that a row names, by the new or the old address, else the newest file's."""
        location = self._location()
        if location is not None:
            listed = self._read(location)
            return (listed, ()) if names_other_folder(listed, self._place) else None
        moved = find_moved_metadata(self._place)
        if moved is None:
            return None
        old_warehouse, namespace, table = strip_file_scheme(moved.table_location).rsplit("/", 2)
        old_location = self._location((_catalog_name(old_warehouse), namespace, table))
        listed_before = read_metadata(self._place, old_location.rpartition("/")[2]) if old_location else None
        if listed_before is not None:
            return listed_before, ()
        return moved, (
            f"the catalog does not know the old address; the newest metadata file is used: {moved.location}",
        )

    def publish_moved(self, moved: Metadata, raw: Mapping[str, Any]) -> None:
        """Write the metadata, and the row that names it."""
        before = self._location()
        location = self._put_metadata(moved, raw)
        if before is not None:
            is_published = self._replace_row(before, location)
        else:
            with self._connect() as session:
                session.execute(_CATALOG_TABLE)
                result = session.execute(
                    "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, iceberg_type)"
                    " VALUES (%s, %s, %s, %s, 'TABLE') ON CONFLICT DO NOTHING",
                    (*self._row, location),
                )
                is_published = result.rowcount == 1
        if not is_published:
            raise TargetError(
                f"table {self._place}: another process added it to the catalog first. Run `strandline "
                "relocate` again"
            )

    def _read(self, location: str) -> Metadata:
        from obstore.exceptions import BaseError

        try:
            data = bytes(self._place.store.get(self._key(location)).bytes())
            return Metadata.parse(data, location, storage=self._place.pyiceberg_options)
        except SourceError as error:
            raise TargetError(error.message) from error
        except (BaseError, OSError, ValueError) as error:
            raise self._error(f"read its metadata {location}", error) from None

    def change_refs(self, change: RefChange) -> bool:
        """Write metadata with the change, and point the row to it unless another writer came first."""
        return commit_refs(change, self.newest, self._put_next)

    def add_snapshot(self, base: Metadata, snapshot: Mapping[str, Any]) -> bool:
        """Write metadata with the snapshot, and point the row to it unless another writer came first."""
        return self._put_next(base, with_snapshot(base, snapshot))

    def _put_next(self, base: Metadata, raw: Mapping[str, Any]) -> bool:
        from obstore.exceptions import BaseError

        location = self._put_metadata(base, raw)
        is_replaced = self._replace_row(base.location, location)
        for file in dropped_metadata_files(base, raw) if is_replaced else [location]:
            with suppress(BaseError, OSError, TargetError):
                self._place.store.delete(self._key(file))
        return is_replaced

    def _replace_row(self, before: str, location: str) -> bool:
        """Point the row to another metadata file; return False if it no longer names the one before."""
        with self._connect() as session:
            result = session.execute(
                "UPDATE iceberg_tables SET metadata_location = %s, previous_metadata_location = %s"
                " WHERE catalog_name = %s AND table_namespace = %s AND table_name = %s AND metadata_location = %s",
                (location, before, *self._row, before),
            )
            return result.rowcount == 1

    def _put_metadata(self, base: Metadata, raw: Mapping[str, Any]) -> str:
        """Write the file of the metadata after ``base``, which no row names yet; return its address."""
        from obstore.exceptions import BaseError

        folder, _, file = base.location.rpartition("/")
        match = _NUMBER.match(file)
        location = f"{folder}/{int(match[1]) + 1 if match else 1:05d}-{uuid4()}.metadata.json"
        try:
            self._place.store.put(self._key(location), json.dumps(raw).encode())
        except (BaseError, OSError) as error:
            raise self._error("write its metadata", error) from None
        return location

    def namespace(self, session: SparkSession) -> str:
        """Configure the catalog in the session and return the namespace's name.

        Idle connections of other sessions are ended first.

        Iceberg keeps a connection for each session that has used the catalog, and a Spark Connect server
        keeps each session for an hour. Without this, a run a minute would use up the database's
        connections.
        """
        if not self._is_configured(session):
            self._end_idle_connections()
        return super().namespace(session)

    def _end_idle_connections(self) -> None:
        with suppress(TargetError), self._connect() as session:
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND application_name = %s"
                " AND state = 'idle' AND state_change <= clock_timestamp() - make_interval(secs => %s)",
                (_APPLICATION, IDLE_SECONDS),
            )

    @property
    def _settings(self) -> Mapping[str, str]:
        user = {"jdbc.user": self._connection.user} if self._connection.user is not None else {}
        return {
            "type": "jdbc",
            "uri": self._connection.url,
            "jdbc.schema-version": "V1",
            "jdbc.ApplicationName": _APPLICATION,
            "retryable_status_codes": "57P01",  # a connection that was ended is opened again
            **user,
            **{f"jdbc.{name}": value for name, value in self._connection.secrets},
            "warehouse": self._warehouse,
            "cache-enabled": "false",
            **(LOCAL_FILES if self._place.local else {}),
        }

    @property
    def _row(self) -> tuple[str, str, str]:
        return self._catalog, self._namespace, self._table

    def _location(self, row: tuple[str, str, str] | None = None) -> str | None:
        """Return the metadata's address in a row: catalog, namespace and table; None: the table's own row."""
        require_driver("psycopg")
        from psycopg.errors import UndefinedTable

        with self._connect() as session:
            try:
                catalog_row: Any = session.execute(
                    "SELECT metadata_location FROM iceberg_tables"
                    " WHERE catalog_name = %s AND table_namespace = %s AND table_name = %s",
                    row or self._row,
                ).fetchone()
            except UndefinedTable:  # the catalog was never used
                return None
        return catalog_row[0] if catalog_row else None

    @contextmanager
    def _connect(self) -> Iterator[psycopg.Connection]:
        require_driver("psycopg")
        import psycopg

        libpq: Any = self._connection.libpq
        try:
            with psycopg.connect(autocommit=True, connect_timeout=10, **libpq) as session:
                yield session
        except psycopg.OperationalError as error:
            raise self._error("be looked up in its catalog", error) from None

    def _key(self, location: str) -> str:
        key = key_below(self._place, location)
        if key is None:
            raise TargetError(
                f"table {self._place}: expected its metadata below its folder, found it at {location}: "
                "the catalog has another table of this name. Use another target.table"
            )
        return key

    def _error(self, verb: str, error: Exception) -> TargetError:
        message = self._connection.hide(shorten_to_line(str(error)))
        return TargetError(
            f"table {self._place}: cannot {verb} (catalog {self._connection}): {type(error).__name__}: {message}"
        )


def _catalog_name(warehouse: str) -> str:
    return f"strandline_{sha256(warehouse.encode()).hexdigest()[:8]}"
