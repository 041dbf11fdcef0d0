"""The settings of a Spark that Strandline does not start: a Connect server, or a session of the user."""

from __future__ import annotations

from collections.abc import Mapping

from resources.spark.engine import LOCAL_FILES, SNAPSHOT_PARTITIONS, SparkEngine
from resources.spark.log_store import log_store_settings
from resources.spark.settings import TIME_ZONE
from resources.spark_runtime import PACKAGES_KEY

_SERVER_SETTINGS = (
    "spark.jars.packages",
    "spark.jars.excludes",
    "spark.jars",
    PACKAGES_KEY,
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.sql.codegen.cache.maxEntries",
    TIME_ZONE,
)
_SESSION_SETTINGS = (LOCAL_FILES, SNAPSHOT_PARTITIONS)


def server_settings(engine: SparkEngine) -> dict[str, str]:
    """Return the settings that a Connect server must be started with, by their names.

    Addresses and credentials of buckets are not among them.

    Args:
        engine: an engine for all places and formats that sessions of the server will read and write.
    """
    settings = SparkEngine(
        places=engine.places,
        drivers=engine.drivers,
        shared=engine.shared,
        conf={key: value for key, value in engine.conf.items() if key == "spark.jars.packages"},
    ).settings()
    log_store = log_store_settings(engine.conf) if engine.commits_to_s3 else {}
    return {key: settings[key] for key in _SERVER_SETTINGS if key in settings} | log_store


def session_settings(engine: SparkEngine) -> dict[str, str]:
    """Return the settings that a Spark of the user must be started with, and one that makes it fast.

    Args:
        engine: as for :func:`server_settings`.
    """
    settings = engine.settings()
    return server_settings(engine) | {key: settings[key] for key in _SESSION_SETTINGS}


def as_properties(settings: Mapping[str, str]) -> str:
    """Return settings as the text of a file for ``spark-submit --properties-file``."""
    return "".join(f"{key} {value}\n" for key, value in settings.items())
