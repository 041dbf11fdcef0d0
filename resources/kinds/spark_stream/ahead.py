"""Have Spark read new input into the outbox, before any of it is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError, shorten_to_line
from partitions.spark_stream.definition import StructuredStream
from resources.kinds.spark_stream.folder import StreamFolder
from resources.kinds.spark_stream.inbox import Inbox, take_in
from resources.kinds.spark_stream.inputs import Inputs
from resources.kinds.spark_stream.run import run_available
from resources.sources.files.failures import schema_mismatch_error
from resources.sources.schema import column_changes
from resources.spark.advice import without_advice
from resources.spark.errors import EngineLost
from resources.spark.failures import fails_on_values, root_cause
from resources.spark.process import describe_engine_loss

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class ReadAhead:
    """Runner of one dataflow's Spark stream.

    Attributes:
        inputs: the sources, and the query over them.
    """

    inputs: Inputs

    @property
    def _dataflow(self) -> Dataflow:
        return self.inputs.dataflow

    def check_columns(self, spark: SparkSession, pinned: str | None) -> None:
        """Raise unless the query has the pinned columns; no input is read for this.

        Args:
            spark: the run's session.
            pinned: text of the schema; None if none is pinned yet.

        Raises:
            SchemaError: the columns differ. Spark would read values that the table has no column for, and
                they would be lost.
        """
        columns = self.inputs.query(spark).schema
        if changes := column_changes(columns, pinned) if pinned is not None else {}:
            raise schema_mismatch_error(
                f"dataflow {self._dataflow.name}: expected the pinned columns in the stream, found "
                f"others: {'; '.join(changes.values())}",
                "Restore the source, or source.schema",
                self._dataflow.name,
                next(iter(changes)),
            )

    def read(self, spark: SparkSession, folder: StreamFolder) -> StrandlineError | None:
        """Read all new input into the outbox. Files are checked and copied into the inboxes first.

        Returns:
            the bad file that stopped the copying; None if there is none. Input before its micro-batch is
                in the outbox.

        Raises:
            StrandlineError: code ``query``: the query failed. Batches that finished before stay in the
                outbox.
            EngineLost: the Spark engine died.
        """
        inboxes = self.inputs.inboxes(folder)
        files_per_batch = self._dataflow.watermark_as(StructuredStream).checkpoint.interval_files
        for inbox in inboxes:
            inbox.open()
        with self._failures_of_query("its new files were being checked"):
            copied, bad = take_in(spark, inboxes, files_per_batch)
        if bad is None or copied:
            self._read_on(spark, folder, inboxes)
        return bad

    def _read_on(self, spark: SparkSession, folder: StreamFolder, inboxes: Sequence[Inbox]) -> None:
        """Have Spark read the files in the inboxes and the new versions of the tables."""
        definition, tables = self._dataflow.watermark_as(StructuredStream), self.inputs.tables
        if newest := {name: at for name, table in tables.items() if (at := table.tip(None).newest)}:
            folder.note_tables(newest)
        with self._failures_of_query("Spark was reading its stream"):
            reports = run_available(
                self.inputs.query(spark, inboxes),
                output_mode=definition.output_mode,
                policy=definition.policy,
                checkpoint=folder.checkpoint,
                outbox=folder.outbox,
            )
        folder.keep(reports)

    @contextmanager
    def _failures_of_query(self, when: str) -> Iterator[None]:
        """Raise a Spark failure as an error of the dataflow.

        Args:
            when: what Spark was doing, as a clause after "while".
        """
        try:
            yield
        except StrandlineError:
            raise
        except Exception as error:
            if engine_loss := describe_engine_loss(error):
                raise EngineLost.of(self._dataflow.name, when, engine_loss) from error
            name = self._dataflow.name
            remedy = (
                ". The query fails on the values of a row, so it would fail each time. Correct "
                "transform, sql or operators, or the rows at the source, and read the source again from "
                f"its start: `strandline state reset {name} --replace --reason TEXT`"
                if fails_on_values(error)
                else ". The next run commits the batches that finished, and continues after them"
            )
            raise StrandlineError(
                f"dataflow {name}: Spark's query failed: {_reason(error)}{remedy}", code="query"
            ) from error


def _reason(error: Exception) -> str:
    """Return why a query failed, in one line.

    If the user's code failed, this is the line below the last Python traceback, else Spark's root cause.
    """
    _, traceback, rest = str(error).rpartition("Traceback (most recent call last):")
    lines = (line for line in rest.splitlines() if line and not line[0].isspace())
    reason = next(lines, None) if traceback else None
    return shorten_to_line(without_advice(reason) if reason else root_cause(error)).rstrip(" .;")
