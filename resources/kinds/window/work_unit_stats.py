"""Row counts and digests of work units, observed during a write for ``strandline simulate``.

The write's own job computes them, with two aggregates per work unit: so only slices of at most
``MAX_OBSERVED`` work units are observed. See docs/reference/windows.md, The simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partitions.target import RUN_COLUMNS
from partitions.window.work_unit import WorkUnit
from resources.observation import observed_values
from resources.spark.frames import observed_rows
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MAX_OBSERVED = 32
"""The most work units of a slice that is observed: each costs two conditions a row."""


class WorkUnitStats(NamedTuple):
    """The statistics of the rows of one work unit.

    Attributes:
        rows: the number of rows.
        digest: a digest of their values, whatever their order, without maps and the columns of each run.
    """

    rows: int
    digest: str


WorkUnitStatsReader = Callable[[], dict[tuple[int | None, str], WorkUnitStats]]
"""Returns the statistics by window start and unit, after the write; empty if the write was skipped or not observed."""


def observe(
    df: DataFrame, works: Sequence[WorkUnit], condition: Callable[[WorkUnit], str]
) -> tuple[DataFrame, WorkUnitStatsReader]:
    """Return the rows, observed, and a function that returns the statistics per work unit after the write.

    More than ``MAX_OBSERVED`` work units are not observed; the function then returns nothing.

    Args:
        df: the rows to be written.
        works: the slice's work units.
        condition: returns Spark SQL that matches the rows of a work unit.
    """
    if not works or len(works) > MAX_OBSERVED:
        return df, dict
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    observation = Observation()
    values = [
        F.col(quoted(name)) for name, kind in df.dtypes if name not in RUN_COLUMNS and "map<" not in kind
    ]
    row = F.xxhash64(*values)
    aggregates: list[Column] = []
    for number, work in enumerate(works):
        of_unit = F.expr(condition(work))
        aggregates += [
            F.count(F.when(of_unit, 1)).alias(f"n{number}"),
            F.bit_xor(F.when(of_unit, row)).alias(f"d{number}"),
        ]

    def read_stats() -> dict[tuple[int | None, str], WorkUnitStats]:
        counts = observed_values(observation)
        return {
            work.key: WorkUnitStats(
                int(counts[f"n{number}"]), format((counts[f"d{number}"] or 0) & (2**64 - 1), "016x")
            )
            for number, work in enumerate(works)
            if f"n{number}" in counts
        }

    return observed_rows(df, observation, *aggregates), read_stats
