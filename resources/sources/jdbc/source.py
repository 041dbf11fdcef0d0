"""Rows of a database, read through JDBC: the predicate is in the pushed query, so the database reads what is asked for and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from typing import TYPE_CHECKING

from partitions.errors import SourceError
from partitions.sources import JdbcSource
from partitions.window.extent import Extent
from partitions.window.predicates import disjoint
from resources.dialects import DIALECTS
from resources.jdbc import JdbcConnection
from resources.sources.jdbc.failures import source_error
from resources.sources.jdbc.query import NUMBER, JdbcQuery
from resources.sources.schema import PinsColumns, kinds, pinned_struct, strict
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class JdbcRows(PinsColumns):
    """Reads a table or a query of a database. ``{unit.NAME}`` is NULL when its columns are looked up."""

    def __init__(self, connection: JdbcConnection, source: JdbcSource, zone: tzinfo) -> None:
        """Use a database; nothing is opened yet.

        Args:
            connection: how it is reached.
            source: what is read of it.
            zone: the definition's; times and dates without a zone are of it.

        Raises:
            ConfigurationError: if the query's placeholders stand in quotes or in a comment.
        """
        self._connection, self._source = connection, source
        self._query = JdbcQuery(source, DIALECTS[connection.system], zone)

    def version(self) -> None:
        """None: a database has no versions that could be read again."""
        return

    def read(
        self,
        spark: SparkSession,
        extents: Sequence[Extent],
        pinned: str,
        version: object = None,  # noqa: ARG002 - part of what all readers of rows take
    ) -> DataFrame:
        """Exactly the rows of these extents, with the pinned columns in their order.

        The rows are fetched when the frame is written, in one query of one connection, so they are of one snapshot. What
        goes wrong then, :meth:`failure` tells.

        Raises:
            ConfigurationError: if nothing tells a row's window or unit, or a unit's value cannot be one of its column.
            SourceError: as for :meth:`pin`.
        """
        schema = pinned_struct(pinned)
        if not disjoint(extents):
            return spark.createDataFrame([], schema)
        return strict(_times(self._load(spark, self._query.rows(extents, schema)), schema), schema)

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """The same for extents of one unit each, with the number of each in the column ``NUMBER``.

        Raises:
            ConfigurationError, SourceError: as for :meth:`read`.
        """
        from pyspark.sql.types import IntegerType, StructField, StructType

        schema = pinned_struct(pinned)
        more = StructType([*schema.fields, StructField(NUMBER, IntegerType())])
        return strict(_times(self._load(spark, self._query.numbered(extents, schema)), more), more)

    def failure(self, error: Exception) -> SourceError | None:
        """The SourceError for what made a write of a read frame fail; None if it was not the database."""
        return source_error(error, self._connection)

    def _columns(self, spark: SparkSession) -> StructType:
        return self._load(spark, self._query.columns()).schema

    def _load(self, spark: SparkSession, query: str) -> DataFrame:
        with self._without_secrets():
            frame = spark.read.format("jdbc").options(**self._connection.options, query=query).load()
            _ = frame.schema  # on Spark Connect it is only now that the database is asked
        return frame

    @contextmanager
    def _without_secrets(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            source_failure = source_error(error, self._connection)
            if source_failure is None:
                raise
            raise source_failure from None  # Spark's own text quotes the options


def _times(frame: DataFrame, schema: StructType) -> DataFrame:
    """Times that were sent as text: an instant's is in UTC, whatever the session's zone."""
    from pyspark.sql import functions as F

    known = kinds(schema)
    return frame.select(
        *[
            F.concat(F.col(quoted(name)), F.lit("Z")).alias(name)
            if known.get(name) == "instant"
            else F.col(quoted(name))
            for name in schema.fieldNames()
        ]
    )
