"""How many rows a run has loaded with values in ``_rescued_data``, counted while they are written (docs/reference/schemas.md, rescue)."""

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

_APART = "\x1f"


class RescuedRows:
    """Those of one run."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._rows = 0
        self._example: str | None = None

    def watched(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], None]]:
        """Have the write of a slice count them; return the rows, and what takes the count once they are written."""
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
                F.concat(F.coalesce(file, F.lit("")), F.lit(_APART), F.coalesce(names, F.lit(""))),
            )
        )
        asked = observed_rows(rows, observation, F.count(rescued).alias("rows"), first.alias("first"))

        def count() -> None:
            told = observed_values(observation)
            self._rows += told.get("rows") or 0
            self._example = self._example or told.get("first")

        return asked, count

    @property
    def remark(self) -> str | None:
        """What people are told; None if there is none."""
        if not self._rows:
            return None
        file, _, names = (self._example or "").partition(_APART)
        first = ": ".join(filter(None, [f"file {file}" if file else "", names]))
        return f"values of {pluralize(self._rows, 'row')} are in {RESCUED_DATA}{f'. One of them: {first}' if first else ''}"
