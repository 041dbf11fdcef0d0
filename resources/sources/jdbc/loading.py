"""Load rows of a database with Spark, in one query or in parts, without a word of the connection's secrets (docs/reference/databases.md)."""

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
    """Loads over one connection."""

    def __init__(self, connection: JdbcConnection, shown: str) -> None:
        """Use a database; ``shown`` is how an error names the source."""
        self._connection, self._shown = connection, shown

    def query(self, spark: SparkSession, query: str, *, later: bool = False) -> DataFrame:
        """Return the rows of a query.

        Args:
            spark: the session.
            query: in the database's words.
            later: whether the caller knows the columns of what it makes of them, or asks for those, and tells by :func:`source_error` what goes wrong:
                each question costs a connection and some 20 ms.
        """
        text = self._for_driver(query)
        with self._without_secrets():
            frame = spark.read.format("jdbc").options(**self._connection.options, query=text).load()
            if not later:
                _ = frame.schema  # on Spark Connect it is only now that the database is asked
        return frame

    def parts(
        self, spark: SparkSession, table: str, conditions: Sequence[str], *, later: bool = False
    ) -> DataFrame:
        """Return the rows of one relation, whose columns Spark looks up once: of one for each part it asks the database for each, over two connections."""
        options = self._connection.options
        url = options.pop("url")
        with self._without_secrets():
            frame = spark.read.jdbc(
                url,
                self._for_driver(table),
                predicates=[self._for_driver(condition) for condition in conditions],
                properties=options,
            )
            if not later:
                _ = frame.schema
        return frame

    def _for_driver(self, text: str) -> str:
        return DIALECTS[self._connection.system].for_driver(text)

    @contextmanager
    def _without_secrets(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            source_failure = source_error(error, self._connection, self._shown)
            if source_failure is None:
                raise
            raise source_failure from None  # Spark's own text quotes the options
