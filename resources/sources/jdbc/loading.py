"""Load rows of a database with Spark, in one query or in parts, without revealing secrets.

See docs/reference/databases.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.failures import source_error

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class JdbcLoader:
    """Loads rows over one connection's settings."""

    def __init__(self, connection: JdbcConnection, label: str) -> None:
        """Use a database; ``label`` names the source in errors."""
        self._connection, self._label = connection, label

    def query(self, spark: SparkSession, query: str, *, defers_schema: bool = False) -> DataFrame:
        """Return the rows of a query.

        Args:
            spark: the session.
            query: in the database's SQL.
            defers_schema: whether the caller knows the columns, or asks later, and reports errors with
            :func:`source_error`: each question costs a connection and some 20 ms.
        """
        text = self._for_driver(query)
        with self._without_secrets():
            frame = spark.read.format("jdbc").options(**self._connection.options, query=text).load()
            if not defers_schema:
                _ = frame.schema  # Spark Connect queries the database only now
        return frame

    def parts(
        self, spark: SparkSession, table: str, conditions: Sequence[str], *, defers_schema: bool = False
    ) -> DataFrame:
        """Return the rows of one relation in parts; Spark looks up its columns once.

        With a single part Spark would look them up per part, over two connections.
        """
        options = self._connection.options
        url = options.pop("url")
        with self._without_secrets():
            frame = spark.read.jdbc(
                url,
                self._for_driver(table),
                predicates=[self._for_driver(condition) for condition in conditions],
                properties=options,
            )
            if not defers_schema:
                _ = frame.schema
        return frame

    def _for_driver(self, text: str) -> str:
        return DIALECTS[self._connection.system].for_driver(text)

    @contextmanager
    def _without_secrets(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            source_failure = source_error(error, self._connection, self._label)
            if source_failure is None:
                raise
            raise source_failure from None  # Spark's own text quotes the options
