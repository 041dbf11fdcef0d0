"""Which pinned columns a record has no field for: absent is not NULL (docs/reference/loads.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.schema_merging import RESCUED_DATA
from partitions.target import ABSENT_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import Column

_NAMES = "array<string>"


def absent_names(members: Column, names: Sequence[str]) -> Column:
    """Return the names of pinned columns, in lower case, that a record has no member for.

    Args:
        members: the record's members by name, as a map.
        names: the pinned columns that records have.
    """
    from pyspark.sql import functions as F

    present = F.coalesce(F.map_keys(members), F.array().cast(_NAMES))
    absent = [F.when(~F.array_contains(present, name), F.lit(name.lower())) for name in names]
    return F.array_compact(F.array(*absent)) if absent else F.array().cast(_NAMES)


def fitting_mark(names: Sequence[str]) -> Column:
    """Return ``ABSENT_COLUMN`` of rows without ``_rescued_data``; it fails for a value that does not fit.

    Checks have found no such value, so a failure shows that they differ from the parser.

    Args:
        names: the pinned columns that records have.
    """
    from pyspark.sql import functions as F

    absent = F.col(ABSENT_COLUMN)
    if not names:
        return absent
    misfits = F.json_object_keys(F.col(RESCUED_DATA))
    has_misfit = F.arrays_overlap(misfits, F.array(*[F.lit(name) for name in names]))
    message = F.concat(F.lit("values that do not fit their columns: "), F.col(RESCUED_DATA))
    return F.when(F.coalesce(has_misfit, F.lit(False)), F.raise_error(message)).otherwise(absent)
