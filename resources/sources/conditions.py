"""Predicates for the rows of extents in a table, for reads of the lake and deletes on a target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import TYPE_CHECKING

from partitions.predicate import Predicate
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate
from resources.sources.schema import kinds

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def table_rows(
    extents: Iterable[Extent],
    schema: StructType,
    *,
    window: str | None,
    units: Mapping[str, str],
    zone: tzinfo,
) -> Predicate:
    """Return the predicate of exactly the rows of these extents.

    Args:
        extents: the extents of one read; without extents no row matches.
        schema: the table's schema.
        window: the column with a row's time; None if the definition has no time dimension.
        units: by the name of a unit's value, the table's column.
        zone: the zone of local times and days.

    Raises:
        ConfigurationError: a column is missing or cannot be compared, or cannot hold a unit's value.
    """
    columns = ExtentColumns.checked(kinds(schema), window, units, zone)
    return extents_predicate(extents, columns)
