"""What sources have in common that are asked for rows, by columns or by a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from partitions.refusal import Refusal
from partitions.sources.definition import NO_TIME, WHOLE_WINDOW, AskedWindows, RowColumns, SourceDefinition


def _column(text: str) -> str:
    if "\x00" in text:
        raise ValueError("expected the name of a column")
    return text


ColumnName = Annotated[str, Field(min_length=1), AfterValidator(_column)]


class RowsSource(SourceDefinition):
    """A source that is asked for rows.

    Attributes:
        window_column: the time that decides on a row's window: a date or a timestamp, with or without a zone.
        unit_columns: the names of a unit's values to the columns that hold them.
        has_query: whether a query, or a request, with placeholders may stand in the place of columns.
        asks_in: the key where placeholders stand, and where in words.
    """

    has_query: ClassVar[bool] = False
    asks_in: ClassVar[tuple[str, str]] = ("query", "the query")
    window_column: ColumnName | None = None
    unit_columns: dict[Annotated[str, Field(min_length=1)], ColumnName] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _own_columns(self) -> RowsSource:
        names = [*([self.window_column] if self.window_column else []), *self.unit_columns.values()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(
                f"window_column and unit_columns: expected a column of its own for each, found {twice} twice"
            )
        return self

    @property
    def form(self) -> str:
        """The type: its records are rows."""
        return f"a source of type {self.type}"

    @property
    def row_columns(self) -> RowColumns:
        """``window_column`` and ``unit_columns``."""
        return RowColumns(self.window_column, self.unit_columns)

    @property
    def asked_windows(self) -> AskedWindows:
        """By a column with a row's time, or by both ends of a window in the query."""
        by_range = self.window_column is not None or self.placeholders >= WHOLE_WINDOW
        return super().asked_windows._replace(by_range=by_range)

    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield what neither columns nor the query say, and what they say too much."""
        asked = self.placeholders
        if timed and self.window_column is None and not asked >= WHOLE_WINDOW:
            or_query = ", or a query with {start} and {end}" if self.has_query else ""
            yield Refusal(
                ("source", "window_column"),
                "nothing",
                f"the column with a row's time{or_query} (windows are read)",
            )
        if not timed and self.window_column is not None:
            yield Refusal(("source", "window_column"), self.window_column, NO_TIME)
        if not timed and asked & WHOLE_WINDOW:
            yield Refusal(("source", "query"), f"{{{min(asked & WHOLE_WINDOW)}}}", NO_TIME)
        yield from self._unit_refusals(unit_fields)

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield what only windows have, too."""
        for key in ("window_column", "unit_columns"):
            if value := getattr(self, key):
                columns = value if isinstance(value, str) else ", ".join(value)
                yield Refusal(("source", key), columns, "no such key (fields name the columns of a unit)")
        yield from super().unit_refusals()

    def column_refusals(self) -> Iterator[Refusal]:
        """Yield what only windows have."""
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
                ("source", self.asks_in[0]),
                f"{{{min(self.placeholders)}}}",
                f"{self.asks_in[1].removeprefix('the ')} without placeholders (only windows have them; rows above a watermark are asked for without)",
            )

    def _unit_refusals(self, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Each value of a unit reaches the source, and the source names no others."""
        asked, names = self.placeholders - WHOLE_WINDOW, ", ".join(unit_fields) or "it has none"
        for name in unit_fields:
            if name not in self.unit_columns and f"unit.{name}" not in asked:
                or_query = f", or {{unit.{name}}} in {self.asks_in[1]}" if self.has_query else ""
                yield Refusal(
                    ("source", "unit_columns", name), "nothing", f"the column with a row's {name}{or_query}"
                )
        for name, column in self.unit_columns.items():
            if name not in unit_fields:
                yield Refusal(
                    ("source", "unit_columns", name),
                    f"the column {column}",
                    f"a name of the definition's units: {names}",
                )
        unknown = sorted(asked - {f"unit.{name}" for name in unit_fields})
        if unknown:
            yield Refusal(
                ("source", self.asks_in[0]), f"{{{unknown[0]}}}", f"a name of the definition's units: {names}"
            )
