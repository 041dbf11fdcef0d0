"""Iceberg tables that a database or a server knows: dataflows whose tables are, and what another client asks of the catalog."""

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
    """A database that knows tables."""
    return JdbcConnection.parse(_url(postgres), "postgres", postgres.password)


def known_to_database(feed: Feed, postgres: Postgres) -> Feed:
    """The dataflow, whose tables a database knows."""
    connection = {"type": "jdbc", "url": {"env": "URL"}, "user": "postgres", "password": {"env": "PASSWORD"}}
    return _known(feed, "jdbc", connection, {"URL": _url(postgres), "PASSWORD": postgres.password})


def known_to_server(feed: Feed, rest: RestCatalogServer) -> Feed:
    """The dataflow, whose tables a server knows. Of one name it knows one, whatever lake it lies in."""
    connection = {"type": "iceberg_rest", "uri": rest.uri, "token": {"env": "TOKEN"}}
    feed.define(target={"table": f"bronze/flow_{uuid4().hex[:8]}"})
    return _known(feed, "rest", connection, {"TOKEN": "any"})


def name_in_sql(spark: SparkSession, place: Place) -> str:
    """The name in SQL of a table that a catalog knows."""
    return IcebergTable(place)._catalog.name(spark)


def metadata_of(place: Place) -> str:
    """Where the newest metadata is of a table that a catalog knows."""
    metadata = IcebergTable(place)._catalog.newest()
    assert metadata is not None
    return metadata.location


def put_back(place: Place, metadata: str) -> None:
    """Have the catalog know a table by other metadata of it, which is there still: files of a table never change."""
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


def _known(feed: Feed, catalog: str, connection: dict[str, Any], environment: dict[str, str]) -> Feed:
    """A catalog knows a table at one address, which a copy of the project keeps."""
    feed.settings = {
        "iceberg": {"catalog": catalog, "connection": "known"},
        "connections": {"known": connection},
        "lake": str(feed.folder / "lake"),
    }
    feed.environment = environment
    feed.__post_init__()
    return feed
