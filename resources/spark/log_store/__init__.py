"""The log store with which Delta's own writer commits to S3 by a conditional put.

Delta's default checks whether a version exists and then writes it, so two drivers can overwrite each
other's commit. This one is ``ConditionalPutLogStore.java``; ``python -m scripts.log_store`` builds the jar
beside it, byte for byte the same everywhere. Spark takes it at its start only. See
docs/explanation/adr/0020.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

JAR = Path(__file__).with_name("strandline-log-store.jar")
CLASS = "strandline.ConditionalPutLogStore"

SETTING = "spark.delta.logStore.s3a.impl"
FOR_ALL_SCHEMES = "spark.delta.logStore.class"
"""Delta refuses to start with both settings."""


def log_store_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that make Spark use the log store; {} if the user's settings name one for all."""
    return {} if FOR_ALL_SCHEMES in conf else {SETTING: CLASS}


def log_store_problem(chosen: str | None, for_all: str | None) -> str | None:
    """Return what is wrong with a running Spark's log store for S3; None if it commits conditionally.

    Args:
        chosen: its value of ``SETTING``.
        for_all: its value of ``FOR_ALL_SCHEMES``. A user's choice for all schemes is trusted.
    """
    if chosen == CLASS or for_all:
        return None
    store = f"{SETTING}={chosen}" if chosen else "Delta's own"
    return (
        f"Spark commits to S3 with {store}, which does not write conditionally: a keyed merge can "
        f"overwrite what another driver commits at the same moment. Start Spark with --jars {JAR} --conf "
        f"{SETTING}={CLASS}"
    )
