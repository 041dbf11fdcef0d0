"""The common part of sources that are queried for rows, by columns or by a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from partitions.refusal import Refusal
from partitions.sources.definition import NO_TIME, WHOLE_WINDOW, RowColumns, SourceDefinition, WindowSupport


def _check_column_name(text: str) -> str:
    if "\x00" in text:
        raise ValueError("expected the name of a column")
    return text


ColumnName = Annotated[str, Field(min_length=1), AfterValidator(_check_column_name)]


class RowsSource(SourceDefinition):
    """A source that is queried for rows.

    Attributes:
        window_column: the time that decides a row's window: a date or a timestamp, with or without a zone.
        unit_columns: by the name of a unit's value, the column that holds it.
        has_query: whether a query or request with placeholders may replace the columns.
        placeholder_location: the key that may contain placeholders, and its name in messages.
    """

    has_query: ClassVar[bool] = False
    placeholder_location: ClassVar[tuple[str, str]] = ("query", "the query")
    window_column: ColumnName | None = None
    unit_columns: dict[Annotated[str, Field(min_length=1)], ColumnName] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> RowsSource:
        names = [*([self.window_column] if self.window_column else []), *self.unit_columns.values()]
        repeated_column = next((name for name in names if names.count(name) > 1), None)
        if repeated_column:
            raise ValueError(
                f"window_column and unit_columns: expected a column of its own for each, found {repeated_column} twice"
            )
        return self

    @property
    def form(self) -> str:
        """The type of the source: its records are rows."""
        return f"a source of type {self.type}"

    @property
    def row_columns(self) -> RowColumns:
        """``window_column`` and ``unit_columns``."""
        return RowColumns(self.window_column, self.unit_columns)

    @property
    def window_support(self) -> WindowSupport:
        """Any range if there is a column with a row's time, or both ends are in the query."""
        by_range = self.window_column is not None or self.placeholders >= WHOLE_WINDOW
        return super().window_support._replace(by_range=by_range)

    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield what columns and query lack to identify windows and units, or have too much."""
        placeholder_names = self.placeholders
        if timed and self.window_column is None and not placeholder_names >= WHOLE_WINDOW:
            or_query = ", or a query with {start} and {end}" if self.has_query else ""
            yield Refusal(
                ("source", "window_column"),
                "nothing",
                f"the column with a row's time{or_query} (windows are read)",
            )
        if not timed and self.window_column is not None:
            yield Refusal(("source", "window_column"), self.window_column, NO_TIME)
        if not timed and placeholder_names & WHOLE_WINDOW:
            yield Refusal(("source", "query"), f"{{{min(placeholder_names & WHOLE_WINDOW)}}}", NO_TIME)
        yield from self._unit_refusals(unit_fields)

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield keys that only windows have."""
        for key in ("window_column", "unit_columns"):
            if value := getattr(self, key):
                columns = value if isinstance(value, str) else ", ".join(value)
                yield Refusal(("source", key), columns, "no such key (fields name the columns of a unit)")
        yield from super().unit_refusals()

    def windowless_refusals(self) -> Iterator[Refusal]:
        """Yield keys and placeholders that only windows and units have."""
        if self.window_column is not None:
            yield Refusal(
                ("source", "window_column"), self.window_column, "no such key (only windows have it)"
            )
        if self.unit_columns:
            yield Refusal(
                ("source", "unit_columns"), ", ".join(self.unit_columns), "no such key (only units have it)"
            )
        if self.placeholders:
            yield Refusal(
                ("source", self.placeholder_location[0]),
                f"{{{min(self.placeholders)}}}",
                f"{self.placeholder_location[1].removeprefix('the ')} without placeholders (only windows fill them)",
            )

    def _unknown_unit_refusals(self, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield columns of unit values that do not exist."""
        for name, column in self.unit_columns.items():
            if name not in unit_fields:
                yield Refusal(
                    ("source", "unit_columns", name),
                    f"the column {column}",
                    f"a name of the definition's units: {', '.join(unit_fields) or 'it has none'}",
                )

    def _unit_refusals(self, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield unit values that do not reach the source, and names of units that do not exist."""
        placeholder_names = self.placeholders - WHOLE_WINDOW
        for name in unit_fields:
            if name not in self.unit_columns and f"unit.{name}" not in placeholder_names:
                or_query = f", or {{unit.{name}}} in {self.placeholder_location[1]}" if self.has_query else ""
                yield Refusal(
                    ("source", "unit_columns", name), "nothing", f"the column with a row's {name}{or_query}"
                )
        yield from self._unknown_unit_refusals(unit_fields)
        unknown = sorted(placeholder_names - {f"unit.{name}" for name in unit_fields})
        if unknown:
            yield Refusal(
                ("source", self.placeholder_location[0]),
                f"{{{unknown[0]}}}",
                f"a name of the definition's units: {', '.join(unit_fields) or 'it has none'}",
            )
