"""Iceberg tables of a database's or a server's catalog: their dataflows, and another client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg

from resources.connections.iceberg_rest import RestCatalogServer
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.tables.iceberg.table import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from scripts.postgres import Postgres
    from tests.support.feed import Feed


def catalog_of(postgres: Postgres) -> JdbcConnection:
    """Return a database as a catalog."""
    return JdbcConnection.parse(_url(postgres), "postgres", postgres.password)


def known_to_database(feed: Feed, postgres: Postgres) -> Feed:
    """Return the dataflow with tables in a database's catalog."""
    connection = {"type": "jdbc", "url": {"env": "URL"}, "user": "postgres", "password": {"env": "PASSWORD"}}
    return _in_catalog(feed, "jdbc", connection, {"URL": _url(postgres), "PASSWORD": postgres.password})


def known_to_server(feed: Feed, rest: RestCatalogServer) -> Feed:
    """Return the dataflow with tables in a server's catalog.

    The server has one table of a name, whatever lake it lies in.
    """
    connection = {"type": "iceberg_rest", "uri": rest.uri, "token": {"env": "TOKEN"}}
    feed.define(target={"table": f"bronze/flow_{uuid4().hex[:8]}"})
    return _in_catalog(feed, "rest", connection, {"TOKEN": "any"})


def name_in_sql(spark: SparkSession, place: Place) -> str:
    """Return the SQL name of a table in a catalog."""
    return IcebergTable(place)._catalog.name(spark)


def metadata_of(place: Place) -> str:
    """Return the address of the newest metadata of a table in a catalog."""
    metadata = IcebergTable(place)._catalog.newest()
    assert metadata is not None
    return metadata.location


def put_back(place: Place, metadata: str) -> None:
    """Point the catalog to older metadata of a table, whose files still exist."""
    if isinstance(place.catalog, RestCatalogServer):
        from pyiceberg.catalog.rest import RestCatalog

        client, name = RestCatalog("others", **place.catalog.options), tuple(place.url.rsplit("/", 2)[1:])
        client.drop_table(name)
        client.register_table(name, metadata)
        return
    assert place.catalog is not None
    libpq: Any = place.catalog.libpq
    with psycopg.connect(autocommit=True, **libpq) as session:
        session.execute(
            "UPDATE iceberg_tables SET metadata_location = %s WHERE metadata_location = %s",
            (metadata, metadata_of(place)),
        )


def _url(postgres: Postgres) -> str:
    return f"jdbc:{postgres.url().replace(f'postgres:{postgres.password}@', '')}"


def _in_catalog(feed: Feed, catalog: str, connection: dict[str, Any], environment: dict[str, str]) -> Feed:
    """Return the dataflow with a catalog; a copy of the project keeps its address."""
    feed.settings = {
        "iceberg": {"catalog": catalog, "connection": "known"},
        "connections": {"known": connection},
        "lake": str(feed.folder / "lake"),
    }
    feed.environment = environment
    feed.__post_init__()
    return feed
