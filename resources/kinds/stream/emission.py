"""Choose what leaves a stream's buffer: rows, windows, sessions, or rows with over-window values.

Rows stay in the buffer until no open window needs them. A window is always computed from its
rows, so any Spark aggregate works.
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
    """Return the emission for the operator of the definition; without an operator, the sorted rows."""
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
    """Raise Spark's refusal of an operator as an error in the definition.

    Raises:
        ConfigurationError: Spark refuses the operator; the message quotes Spark.
    """
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        cause_text = root_cause(error).rstrip(" .;")
        raise ConfigurationError(
            f"dataflow {dataflow.name}: operators: Spark refuses {dataflow.operators[0].type}: "
            f"{cause_text}. Use columns of the source, and Spark SQL over them"
        ) from error
