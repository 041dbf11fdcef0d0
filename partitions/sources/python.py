"""A function of the user that yields rows (docs/reference/python-functions.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from partitions.refusal import Refusal
from partitions.sources.definition import (
    NO_TIME,
    ConnectionType,
    IncrementalSupport,
    RecordSupport,
    WindowSupport,
)
from partitions.sources.rows import RowsSource

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def _function_name(text: str) -> str:
    if not _FUNCTION.fullmatch(text):
        raise ValueError("expected package.module:name")
    return text


FunctionName = Annotated[str, AfterValidator(_function_name)]
"""The name of a user's function."""

Value = str | int | float | bool
Param = Value | tuple[Value, ...]


class PythonSource(RowsSource):
    """A function of the user that yields rows.

    Attributes:
        function: ``package.module:name``; receives a ``Request``, and yields batches.
        highest: ``package.module:name``; receives the request and a column's name, and returns the
        column's highest value, or None.
        connection: a connection of ``platform.yaml``, of type python; the function receives its settings.
        params: passed to the function unchanged.
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
    def label(self) -> str:
        """The function."""
        return f"function {self.function}"

    @property
    def declared_schema(self) -> str | None:
        """``schema``."""
        return self.schema_

    @property
    def window_support(self) -> WindowSupport:
        """Any range: the function receives both ends."""
        return super().window_support._replace(by_range=True)

    @property
    def incremental_support(self) -> IncrementalSupport:
        """Detects new rows only if a second function returns the highest value without fetching rows."""
        return IncrementalSupport(saves_bound=False, detects_new_rows=self.highest is not None)

    @property
    def record_support(self) -> RecordSupport:
        """Fields that the schema lacks can be left out."""
        return RecordSupport(always_checked=None)

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source: a change makes it another one (docs/reference/state.md)."""
        identity = self.model_dump(
            include={"type", "function", "connection", "window_column", "unit_columns"}
        )
        return identity | {
            "params": {name: _mask_secrets(value) for name, value in sorted(self.params.items())}
        }

    def reading(self) -> dict[str, Any]:
        """Return further keys that its rows depend on."""
        return {"schema": self.schema_}

    def unit_refusals(self) -> Iterator[Refusal]:
        """Yield a function for the highest value, which a list of units does not need."""
        yield from super().unit_refusals()
        if self.highest is not None:
            yield Refusal(("source", "highest"), self.highest, "no such key (a list of units has no bounds)")

    def window_refusals(self, *, timed: bool, unit_fields: Sequence[str]) -> Iterator[Refusal]:
        """Yield keys for columns that the definition does not have.

        Windows and units need no columns: the function receives them as values.
        """
        if not timed and self.window_column is not None:
            yield Refusal(("source", "window_column"), self.window_column, NO_TIME)
        yield from self._unknown_unit_refusals(unit_fields)


def _mask_secrets(value: Any) -> Any:
    """Return a value for the state, with texts from the environment replaced by their variable.

    A state must not contain secrets; any other value stays as it is.
    """
    if isinstance(value, tuple):
        return [_mask_secrets(item) for item in value]
    return repr(value) if isinstance(value, str) and type(value) is not str else value
