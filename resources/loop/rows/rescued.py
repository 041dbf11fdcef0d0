"""The count of rows with values in ``_rescued_data``, taken while they are written.

See docs/reference/schemas.md, rescue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from partitions.plan import pluralize
from partitions.schema_merging import RESCUED_DATA
from resources.observation import observed_values
from resources.sources.files.paths import SOURCE_FILE
from resources.spark.frames import observed_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SEPARATOR = "\x1f"


class RescuedRows:
    """The number of rows with rescued values that one run wrote, with an example."""

    def __init__(self) -> None:
        """Start with a count of zero."""
        self._rows = 0
        self._example: str | None = None

    def observe(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], None]]:
        """Return the rows with an observation of rescued values, and a function that adds it to the count.

        Call the function after the write.
        """
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        observation, rescued = Observation(), F.col(RESCUED_DATA)
        if RESCUED_DATA not in rows.columns:
            return rows, lambda: None
        file = F.col(SOURCE_FILE) if SOURCE_FILE in rows.columns else F.lit("")
        names = F.array_join(F.json_object_keys(rescued), ", ")
        first = F.min(
            F.when(
                rescued.isNotNull(),
                F.concat(F.coalesce(file, F.lit("")), F.lit(_SEPARATOR), F.coalesce(names, F.lit(""))),
            )
        )
        observed_df = observed_rows(rows, observation, F.count(rescued).alias("rows"), first.alias("first"))

        def count() -> None:
            counts = observed_values(observation)
            self._rows += counts.get("rows") or 0
            self._example = self._example or counts.get("first")

        return observed_df, count

    @property
    def warning(self) -> str | None:
        """The warning for people; None if no value was rescued."""
        if not self._rows:
            return None
        file, _, names = (self._example or "").partition(_SEPARATOR)
        first = ": ".join(filter(None, [f"file {file}" if file else "", names]))
        return f"{RESCUED_DATA} holds values of {pluralize(self._rows, 'row')}{f'. One of them: {first}' if first else ''}"
