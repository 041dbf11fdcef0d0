"""Put what a function yields where Spark reads it: only the rows that are meant, with the pinned columns (docs/reference/python-functions.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from resources.sources.evolving import FOLLOWS
from resources.sources.python.batches import cast_to, column_names
from resources.sources.python.call import FunctionCaller
from resources.sources.python.calls import FunctionCalls, MeantRows
from resources.sources.python.schema import FunctionSchema, arrow_schema
from resources.staging import Staging

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class RowStaging:
    """Stages the rows of one source."""

    def __init__(
        self,
        dataflow: Dataflow,
        schema: FunctionSchema,
        caller: FunctionCaller,
        calls: FunctionCalls,
        staging: Staging,
    ) -> None:
        """Stage nothing yet.

        Args:
            dataflow: the definition.
            schema: of the rows; it may follow what these bring.
            caller: words what is wrong with them.
            calls: that yield them.
            staging: where they are put.
        """
        self._dataflow, self._schema, self._caller, self._calls = dataflow, schema, caller, calls
        self._staging, self._files = staging, 0
        self._columns_brought: set[str] = set()

    def frame(self, spark: SparkSession, calls: Sequence[MeantRows], schema: StructType) -> DataFrame:
        """Call the function, and return what is asked for, staged.

        Raises:
            SourceError: the function fails, or yields something else than expected.
        """
        self._columns_brought = set()
        if not calls:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*self.put(calls, arrow_schema(schema), lambda table: None))

    def put(
        self, calls: Sequence[MeantRows], schema: pa.Schema, look: Callable[[pa.Table], None]
    ) -> Sequence[str]:
        """Stage the rows of calls, and return the URLs of their files.

        Args:
            calls: of the function.
            schema: of the rows.
            look: is shown each table of rows.

        Raises:
            SourceError: as for :meth:`frame`.
        """
        self._files += 1
        with self._staging.batches(f"rows-{self._files}", schema) as staged:
            for call in calls:
                for table in self._tables(call, schema):
                    staged.write(table)
                    look(table)
        return [self._staging.folder.child(file.path).spark_url for file in staged.files]

    def lacking(self, names: Sequence[str]) -> Sequence[str]:
        """Return those of some columns that no batch of the rows that were staged last has; none if there was no batch."""
        brought = self._columns_brought
        return [name for name in names if name.casefold() not in brought] if brought else []

    def _tables(self, call: MeantRows, schema: pa.Schema) -> Iterator[pa.Table]:
        """What is asked for of each batch."""
        ignores = self._dataflow.unknown_fields == "ignore"
        for batch in self._calls.batches(call.request):
            self._columns_brought |= {name.casefold() for name in column_names(batch)}
            try:
                complete_batch = self._schema.with_all(batch, schema)
                table = cast_to(complete_batch, schema, self._schema.zone_name, ignore_unknown=ignores)
            except SchemaError as error:
                self._schema.follow(batch, schema)
                if error.reason != "unknown_field" or self._dataflow.target.schema_mode not in FOLLOWS:
                    raise self._caller.wrong(error, call.request) from None
                table = cast_to(
                    complete_batch, schema, self._schema.zone_name, ignore_unknown=True
                )  # columns without a value
            yield table.filter(call.condition(schema))
