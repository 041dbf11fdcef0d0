"""Open the source of a comparison: a database, a lake table at a version, or all rows, once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError
from resources.reconcile.database_side import DatabaseSide
from resources.reconcile.rows import OpenedSource, ReconcileRows
from resources.reconcile.spark_side import SparkSide
from resources.sources.source import AnswersSql, HasVersions, at_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@contextmanager
def open_source(
    kind: ReconcileRows, source: Any, read_as_a_whole: Callable[[], DataFrame]
) -> Iterator[OpenedSource]:
    """Yield a source whose answers are of one moment.

    Args:
        kind: the comparison.
        source: the source of rows.
        read_as_a_whole: reads all rows that runs have loaded, for a source that counts nothing itself.

    Raises:
        ConfigurationError: code ``full_read``: it can only be read as a whole, which nobody has asked for.
    """
    if isinstance(source, AnswersSql):
        with source.sql_snapshot() as snapshot:
            yield OpenedSource(DatabaseSide(snapshot), snapshot.now)
        return
    if isinstance(source, HasVersions):
        version = source.version()
        fixed: Any = at_version(source, version)
        spark, pinned = kind.stores.engine(kind.dataflow).session(), kind.pinned_columns()
        # Each pass reads the files that it needs.
        yield OpenedSource(SparkSide(lambda rows: fixed.read_rows(spark, (rows,), pinned)), version=version)
        return
    if not kind.options.full_read:
        definition = kind.dataflow.source
        raise ConfigurationError(
            f"dataflow {kind.dataflow.name}: reconcile would read all of {definition.label}, since a source of type "
            f"{definition.type} counts no rows itself. With --full-read it does so, once",
            code="full_read",
        )
    rows = read_as_a_whole()
    yield OpenedSource(SparkSide(lambda _: rows))
