"""The log store with which Delta's own writer commits to S3 by a conditional put (docs/explanation/adr/0020).

Delta's default one looks whether a version is there and then puts it, so that two drivers can overwrite each other's commit. This one is
``ConditionalPutLogStore.java``; the jar beside it is made of it by ``python -m scripts.log_store``, byte for byte the same everywhere. Spark
takes it at its start only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

JAR = Path(__file__).with_name("strandline-log-store.jar")
CLASS = "strandline.ConditionalPutLogStore"

SETTING = "spark.delta.logStore.s3a.impl"
FOR_ALL_SCHEMES = "spark.delta.logStore.class"
"""Delta refuses to start with both."""


def log_store_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that make a Spark use the log store, beside the user's; none if these choose another for all schemes."""
    return {} if FOR_ALL_SCHEMES in conf else {SETTING: CLASS}


def log_store_problem(chosen: str | None, for_all: str | None) -> str | None:
    """Return what is wrong with a running Spark's log store for S3, and what to do; None if it commits conditionally.

    Args:
        chosen: its value of ``SETTING``.
        for_all: its value of ``FOR_ALL_SCHEMES``. What a user chooses for all schemes is believed.
    """
    if chosen == CLASS or for_all:
        return None
    store = f"{SETTING}={chosen}" if chosen else "Delta's own"
    return (
        f"Spark commits to S3 with {store}, which is not conditional: a merge by keys can overwrite what another driver commits at the same"
        f" moment. Start Spark with --jars {JAR} --conf {SETTING}={CLASS}"
    )
