"""What a write itself saw of its work units: rows, and a digest that tells whether they changed (docs/reference/windows.md, The simulator).

Counted in the same job, with two aggregates for each work unit; so only of slices with few of them.
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

MOST = 32
"""Work units of a slice that is observed: each costs two conditions a row."""


class UnitStats(NamedTuple):
    """What a write counted of one work unit.

    Attributes:
        rows: how many.
        digest: of their values in any order, without what each run writes again.
    """

    rows: int
    digest: str


UnitStatsReader = Callable[[], dict[tuple[int | None, str], UnitStats]]
"""Returns the statistics by window start and unit, after the write; empty if it was skipped, or not observed."""


def observe(
    df: DataFrame, works: Sequence[WorkUnit], condition: Callable[[WorkUnit], str]
) -> tuple[DataFrame, UnitStatsReader]:
    """Have a write count the rows of each work unit.

    Args:
        df: what is about to be written.
        works: of the slice.
        condition: Spark SQL that tells the rows of one.
    """
    if not works or len(works) > MOST:
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

    def read_stats() -> dict[tuple[int | None, str], UnitStats]:
        counts = observed_values(observation)
        return {
            work.key: UnitStats(
                int(counts[f"n{number}"]), format((counts[f"d{number}"] or 0) & (2**64 - 1), "016x")
            )
            for number, work in enumerate(works)
            if f"n{number}" in counts
        }

    return observed_rows(df, observation, *aggregates), read_stats
