"""The object stores of bucket names: one Spark process can reach a bucket name at one endpoint only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError
from resources.connections.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_opened: dict[tuple[str, str], str] = {}
"""The store of each Spark and bucket, as far as this process knows it."""


def stores_of(places: Iterable[Place]) -> dict[str, str]:
    """Return the address of each bucket's store.

    Raises:
        ConfigurationError: if two places give a bucket's name to different stores, or reach it in
        different ways.
    """
    stores: dict[str, str] = {}
    ways: dict[str, Mapping[str, str]] = {}
    for place in places:
        if place.bucket is None:
            continue
        if ways.setdefault(place.bucket, place.spark_conf) != place.spark_conf:
            raise ConfigurationError(
                f"bucket {place.bucket}: expected one connection for everything that a dataflow reads and "
                "writes in it, found two that differ: Spark knows a bucket only by its name. Use one "
                "connection; or, for two stores, buckets with different names"
            )
        stores[place.bucket] = ((place.connection and place.connection.endpoint) or "AWS").rstrip("/")
    return stores


def check_stores(session: SparkSession, remote: str | None, stores: Mapping[str, str]) -> None:
    """Raise ConfigurationError if this Spark knows a bucket name at another store.

    Hadoop opens a bucket once per JVM, by the name alone, and ignores the settings of later sessions: rows
    would be read and written at the first store. On a Connect server, names of global views record the
    store, since all sessions share them.
    """
    for bucket, store in stores.items():
        key = (remote or "", bucket)
        if key not in _opened:
            _opened[key] = _store_on_server(session, bucket, store) if remote else store
        if _opened[key] != store:
            raise ConfigurationError(
                f"bucket {bucket} of {store}: this Spark process has already opened a bucket of this name "
                f"in {_opened[key]}, and can open only one. Use a separate Spark process for each: a "
                "Connect server, or one `strandline run` per dataflow; or rename a bucket"
            )


def _store_on_server(session: SparkSession, bucket: str, store: str) -> str:
    """Return the store of a bucket name on a Connect server; record ``store`` if the server has none."""
    prefix = f"strandline_{_short_hash(bucket)}_"
    own_view = f"{prefix}{_short_hash(store)}"
    # A server may lack global views, or forbid to list them; then each write is still checked afterwards.
    with suppress(Exception):
        names = {
            row["viewName"] for row in session.sql(f"SHOW VIEWS IN global_temp LIKE '{prefix}*'").collect()
        }
        if names - {own_view}:
            return "another store"
        if not names:
            session.sql(
                f"CREATE OR REPLACE GLOBAL TEMPORARY VIEW {own_view} AS SELECT 1 AS is_known"
            ).collect()
    return store


def _short_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]
