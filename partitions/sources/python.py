"""A function of the user that yields rows (docs/reference/python-functions.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from partitions.refusal import Refusal
from partitions.sources.definition import NO_TIME, AskedAbove, AskedWindows, ConnectionType
from partitions.sources.rows import RowsSource

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _function_name(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ValueError("expected package.module:name")
    return text


FunctionName = Annotated[str, AfterValidator(_function_name)]
"""A function of the user."""

Value = str | int | float | bool
Param = Value | tuple[Value, ...]


class PythonSource(RowsSource):
    """A function of the user that yields rows.

    Attributes:
        function: ``package.module:name``; gets a ``RowRequest``, and yields batches.
        highest: ``package.module:name``; gets the same and a column's name, and returns the highest value that there is, or None.
        connection: of ``platform.yaml``, of type python; the function gets its settings.
        params: the function gets them as they are.
        schema_: Spark DDL; without it the schema is inferred once from the first rows and pinned.
    """

    connection_type: ClassVar[ConnectionType | None] = "python"

    type: Literal["python"]
    function: FunctionName
    highest: FunctionName | None = None
    connection: Annotated[str, Field(min_length=1)] | None = None
    params: dict[Annotated[str, Field(min_length=1)], Param] = Field(default_factory=dict)
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None

    @property
    def shown(self) -> str:
        """The function."""
        return f"function {self.function}"

    @property
    def declared_schema(self) -> str | None:
        """``schema``."""
        return self.schema_

    @property
    def asked_windows(self) -> AskedWindows:
        """The function gets the two ends of what is asked for."""
        return super().asked_windows._replace(by_range=True)

    @property
    def asked_above(self) -> AskedAbove:
        """Only a function of its own says what the highest value is without fetching rows."""
        return AskedAbove(saves_bound=False, tells_what_is_new=self.highest is not None)

    def identity(self) -> dict[str, Any]:
        """Return what makes it another source (docs/reference/state.md)."""
        identity = self.model_dump(
            include={"type", "function", "connection", "window_column", "unit_columns"}
        )
        return identity | {"params": {name: _named(value) for name, value in sorted(self.params.items())}}

    def reading(self) -> dict[str, Any]:
        """Return what else its rows depend on."""
        return {"schema": self.schema_}

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield a function that nothing asks."""
        yield from super().unit_refusals()
        if self.highest is not None:
            yield Refusal(("source", "highest"), self.highest, "no such key (all units are asked for)")

    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield keys that name columns of nothing: windows and units themselves reach the function as values."""
        if not timed and self.window_column is not None:
            yield Refusal(("source", "window_column"), self.window_column, NO_TIME)
        for name, column in self.unit_columns.items():
            if name not in unit_fields:
                yield Refusal(
                    ("source", "unit_columns", name),
                    f"the column {column}",
                    f"a name of the definition's units: {', '.join(unit_fields) or 'it has none'}",
                )


def _named(value: Any) -> Any:
    """A text of the environment by its variable, since a state must not hold a secret; any other value itself, as JSON has it."""
    if isinstance(value, tuple):
        return [_named(item) for item in value]
    return repr(value) if isinstance(value, str) and type(value) is not str else value
