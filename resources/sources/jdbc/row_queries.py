"""The queries whose rows Spark loads: exactly the rows of some extents or of a predicate.

See docs/reference/project-files.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.local_time import enclosing_instants
from partitions.predicate import Predicate, columns_of, rename_columns
from partitions.sources.database_types import ColumnType
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate, split_disjoint
from resources.dialects.predicates import predicate_sql
from resources.sources.jdbc.relation import SourceQueries
from resources.sources.schema import kinds
from resources.sources.source import NUMBER

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Types = Mapping[str, ColumnType]
"""The type of each column, by its name."""


class RowQueries(SourceQueries):
    """The row queries of one source."""

    def rows(self, extents: Sequence[Extent], schema: StructType, types: Types) -> str:
        """Return the query of these extents' rows, in the forms of their columns' types.

        Raises:
            ConfigurationError: nothing identifies a row's window or unit, or a column cannot hold a value.
        """
        if not self._source.placeholders:
            return self._select(self._relation.whole(), extents, schema, types)
        queries = [self._rows_of_extent(extent, schema, types) for extent in split_disjoint(extents)]
        return "\nUNION ALL\n".join(queries)

    def matching(self, rows: Predicate, types: Types) -> str:
        """Return the query of the rows that match a predicate, in the forms of their columns' types."""
        return f"SELECT {self._select_list(types)} FROM {self._relation.whole()} WHERE {predicate_sql(rows, self._dialect)}"  # noqa: S608 - names are quoted, values are literals

    def in_parts(self, parts: Sequence[Predicate], types: Types) -> tuple[str, list[str]]:
        """Return a table of all rows, in the forms of their columns' types, and a condition per part.

        The conditions use additional unconverted copies of columns, so that indexes apply; Spark does not
        select them.
        """
        aliases: dict[str, str] = {}
        for number, column in enumerate(dict.fromkeys(name for part in parts for name in columns_of(part))):
            aliases[column] = f"strandline_{number}"
            while aliases[column] in types:
                aliases[column] += "_"
        name = self._dialect.name
        names = ", ".join(
            [
                self._select_list(types),
                *(f"{name(column)} AS {name(alias)}" for column, alias in aliases.items()),
            ]
        )
        table = f"(SELECT {names} FROM {self._relation.whole()}) AS parts"  # noqa: S608 - names are quoted
        return table, [predicate_sql(rename_columns(part, aliases), self._dialect) for part in parts]

    def numbered(self, extents: Sequence[Extent], schema: StructType, types: Types) -> str:
        """Return the query of extents of one unit each, with a column for the extent's number.

        Raises:
            ConfigurationError: as for :meth:`rows`.
        """
        return "\nUNION ALL\n".join(
            self._rows_of_extent(extent, schema, types, f", {number} AS {self._dialect.name(NUMBER)}")
            for number, extent in enumerate(extents)
        )

    def _rows_of_extent(
        self, extent: Extent, schema: StructType, types: Types, extra_columns: str = ""
    ) -> str:
        """Return the query of one extent's rows; its placeholders get ends that include all of them."""
        kind = kinds(schema).get(self._source.window_column or "")
        lower, upper = enclosing_instants(extent.lower, extent.upper, kind, self._zone)
        relation = self._relation.within(Extent(lower, upper, extent.units), kind)
        return self._select(relation, [extent], schema, types, extra_columns)

    def _select(
        self,
        relation: str,
        extents: Sequence[Extent],
        schema: StructType,
        types: Types,
        extra_columns: str = "",
    ) -> str:
        column_kinds = kinds(schema)
        columns = ExtentColumns(
            column_kinds,
            self._source.window_column,
            self._source.unit_columns,
            self._zone,
            self._source.placeholders,
        )
        condition = predicate_sql(extents_predicate(extents, columns), self._dialect)
        return f"SELECT {self._select_list(types)}{extra_columns} FROM {relation} WHERE {condition}"  # noqa: S608 - names are quoted, values are literals

    def _select_list(self, types: Types) -> str:
        keys = [key for key in self._keys if key in types]
        return ", ".join(
            self._dialect.transfer_expression(name, type_, keys) for name, type_ in types.items()
        )
