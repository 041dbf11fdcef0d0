"""Stage the requested rows of a function for Spark, with the pinned columns.

See docs/reference/python-functions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from partitions.plan import pluralize
from resources.sources.evolving import FOLLOWS
from resources.sources.python.batches import cast_to, column_names, row_count
from resources.sources.python.call import FunctionCaller
from resources.sources.python.calls import FunctionCalls, RequestedRows
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
        """Start with nothing staged.

        Args:
            dataflow: the definition.
            schema: the rows' schema; it may follow them.
            caller: builds errors about the rows.
            calls: the function's calls, which yield the rows.
            staging: where they are staged.
        """
        self._dataflow, self._schema, self._caller, self._calls = dataflow, schema, caller, calls
        self._staging, self._files = staging, 0
        self._yielded_names: set[str] = set()
        self._yielded_rows, self._work_calls, self._outside_calls = 0, 0, list[str]()

    @property
    def remarks(self) -> Sequence[str]:
        """A warning about calls for windows and units whose rows all lie outside; empty if there are none."""
        if not self._outside_calls:
            return ()
        number = f"{len(self._outside_calls):,} of {pluralize(self._work_calls, 'call')}"
        warning = (
            f"{self._dataflow.source.label}: {number} returned rows, but none of what they were called for, such as"
            f" {self._outside_calls[0]}. These rows were left out, and the windows count as loaded: compare the"
            " times, zones and units of the rows with the request"
        )
        return (warning,)

    def frame(self, spark: SparkSession, calls: Sequence[RequestedRows], schema: StructType) -> DataFrame:
        """Call the function, and return its requested rows, staged.

        Raises:
            SourceError: the function fails, or yields something unexpected.
        """
        self._yielded_names = set()
        if not calls:
            return spark.createDataFrame([], schema)
        return spark.read.schema(schema).parquet(*self.stage(calls, arrow_schema(schema), lambda table: None))

    def stage(
        self, calls: Sequence[RequestedRows], schema: pa.Schema, inspect: Callable[[pa.Table], None]
    ) -> Sequence[str]:
        """Stage the rows of calls, and return the URLs of their files.

        Args:
            calls: the function's calls.
            schema: the rows' schema.
            inspect: receives each table of rows.

        Raises:
            SourceError: as for :meth:`frame`.
        """
        self._files += 1
        with self._staging.batches(f"rows-{self._files}", schema) as staged:
            for call in calls:
                requested_rows = 0
                for table in self._tables(call, schema):
                    staged.write(table)
                    inspect(table)
                    requested_rows += len(table)
                self._note_outside(call, requested_rows)
        return [self._staging.folder.child(file.path).spark_url for file in staged.files]

    def _note_outside(self, call: RequestedRows, requested_rows: int) -> None:
        """Record a call for a window or a unit that returned rows, and none of them of the request.

        A function above a column may return what it has: rows below the bound are loaded already.
        """
        if call.request.bounds:
            return
        self._work_calls += 1
        if self._yielded_rows and not requested_rows:
            self._outside_calls.append(f"{pluralize(self._yielded_rows, 'row')} {call.request.call_words}")

    def lacking(self, names: Sequence[str]) -> Sequence[str]:
        """Return the columns that no batch of the last staging has; none if there was no batch."""
        yielded_names = self._yielded_names
        return [name for name in names if name.casefold() not in yielded_names] if yielded_names else []

    def _tables(self, call: RequestedRows, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield the requested rows of each batch."""
        ignores, self._yielded_rows = self._dataflow.unknown_fields == "ignore", 0
        for batch in self._calls.batches(call.request):
            self._yielded_names |= {name.casefold() for name in column_names(batch)}
            self._yielded_rows += row_count(batch)
            try:
                complete_batch = self._schema.with_missing_columns(batch, schema)
                table = cast_to(complete_batch, schema, self._schema.zone_name, ignore_unknown=ignores)
            except SchemaError as error:
                self._schema.follow(batch, schema)
                if error.reason != "unknown_field" or self._dataflow.target.schema_mode not in FOLLOWS:
                    raise self._caller.misfit_error(error, call.request) from None
                table = cast_to(
                    complete_batch, schema, self._schema.zone_name, ignore_unknown=True
                )  # columns without a value
            yield table.filter(call.condition(schema))
