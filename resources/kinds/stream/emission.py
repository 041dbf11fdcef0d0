"""What leaves a stream's buffer when the global watermark rises: rows or windows of any kind.

Rows wait until no open window needs them, so what a window is made of is always its rows, and any
aggregate of Spark's will do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.stream.operators import Aggregate, OverWindow, SessionWindows, splits_operator
from partitions.stream.windows import Hop
from resources.kinds.stream.buffer import Buffer
from resources.kinds.stream.over_rows import OverRows
from resources.kinds.stream.sorted_rows import SortedRows
from resources.kinds.stream.window_rows import SessionRows, WindowRows
from resources.spark.failures import root_cause


def emission_of(dataflow: Dataflow, buffer: Buffer) -> SortedRows:
    """Return what the definition says of the sorted rows."""
    match splits_operator(dataflow.operators):
        case None:
            return SortedRows(dataflow, buffer)
        case OverWindow() as over:
            return OverRows(dataflow, buffer, over)
        case Aggregate(window=SessionWindows(gap=gap)) as aggregate:
            return SessionRows(dataflow, buffer, aggregate, gap)
        case Aggregate(window=window) as aggregate:
            assert not isinstance(window, SessionWindows)
            return WindowRows(dataflow, buffer, aggregate, Hop.of(window))


@contextmanager
def refusals_of_spark(dataflow: Dataflow) -> Iterator[None]:
    """Have what Spark refuses of an operator told as the definition's fault.

    Raises:
        ConfigurationError: in Spark's words.
    """
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        cause_text = root_cause(error).rstrip(" .;")
        raise ConfigurationError(
            f"dataflow {dataflow.name}: operators: Spark refuses {dataflow.operators[0].type}: {cause_text}. Expected columns of the source and"
            " Spark SQL over them"
        ) from error
