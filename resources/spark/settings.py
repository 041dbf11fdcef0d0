"""Settings of a session: read, set, restored, and tuned for small queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from resources.spark import connect_private as private
from resources.spark.process import is_remote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as SparkConnectSession


TIME_ZONE = "spark.sql.session.timeZone"
"""UTC in all sessions: times are read, written, compared and formatted in partition names in it."""
ANSI = "spark.sql.ansi.enabled"
"""True in all sessions: otherwise a value that does not fit its type silently becomes another one, or NULL."""
WRITTEN_TIMES = {
    # Spark's default type has no statistics, by which readers skip files, and readers beside Spark change years after 2262.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
}
"""How all sessions write times: Spark's old calendar would change days before 1582 for all other readers."""
READ_TIMES = {
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
}
"""How all sessions read times before 1582 in files that do not name their calendar; an option of a source may differ."""
WHOLE_READS = {
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
"""No session leaves out the rows of a damaged or lost file: a merge would remove them from the table."""
SMALL = 8 * 2**20
"""Bytes of source files below which compiling a query takes longer than running it."""
BYTES_PER_ROW = 100
"""An estimate, to choose between two ways to run a small query."""
# Spark generates and compiles Java code for each query, including Delta's own: its query for a tag differs after every commit.
# On a warm server that took 0.6 of the 1.3 s of a small write.
_INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
_original_settings: WeakKeyDictionary[SparkSession, dict[str, str | None]] = WeakKeyDictionary()
"""The values of these settings before they were changed; None: unset."""


def tune(session: SparkSession, size: int | None) -> bool:
    """Run the session's next write without compilation if the files are small.

    Otherwise restore the user's settings.

    Args:
        session: the session of one run.
        size: bytes of the files that are about to be read; None if unknown.

    Returns:
        whether the write may be compiled.
    """
    small = size is not None and size < SMALL
    if small and session not in _original_settings:
        _original_settings[session] = get_all(session, _INTERPRETED)
    if session in _original_settings:
        _restore(session, _INTERPRETED if small else _original_settings[session])
    return not small


def tune_for_rows(session: SparkSession, rows: int) -> None:
    """Tune the session (:func:`tune`) for queries over a known number of rows."""
    tune(session, rows * BYTES_PER_ROW)


def set_all(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Set settings of a session, with one call to a Connect server."""
    if is_remote(session) and settings:
        private.set_many(cast("SparkConnectSession", session), settings)
        return
    for key, value in settings.items():
        session.conf.set(key, value)


def get_all(session: SparkSession, keys: Iterable[str]) -> dict[str, str | None]:
    """Return settings of a session, with one call to a Connect server; None for unset ones."""
    names = list(keys)
    if is_remote(session) and names:
        return private.get_many(cast("SparkConnectSession", session), names)
    return {name: session.conf.get(name, None) for name in names}


def _restore(session: SparkSession, settings: Mapping[str, str | None]) -> None:
    """Restore settings as :func:`get_all` returned them; unset a setting whose value is None.

    It takes at most two calls to a Connect server.
    """
    set_all(session, {key: value for key, value in settings.items() if value is not None})
    unset = [key for key, value in settings.items() if value is None]
    if is_remote(session) and unset:
        private.unset_many(cast("SparkConnectSession", session), unset)
        return
    for key in unset:
        session.conf.unset(key)


@contextmanager
def temporary_settings(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session while the block runs, and restore them in any case."""
    before = get_all(session, settings)
    try:
        set_all(session, settings)
        yield
    finally:
        _restore(session, before)
