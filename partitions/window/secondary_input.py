"""A secondary input: a table, query or source whose rows provide the units.

Filters decide which rows count. See docs/reference/windows.md, Units.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, model_validator

from partitions.errors import ConfigurationError
from partitions.model import Model
from partitions.sources import OneSource


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ConfigurationError(f"expected a regular expression, found {text!r}: {error}") from error
    return text


class SecondaryInput(Model):
    """A table, upstream asset, query or source; each of its rows provides one unit.

    Attributes:
        table: ``<layer>/<name>`` in the lake.
        asset: the key of an upstream asset, whose table is read, ``<layer>/<name>``.
        path: a table anywhere: a folder, or an object store's URL.
        query: a SELECT on the database of the dataflow's own source.
        source: any source, as a dataflow declares its own.
        fields: the columns that make a unit.
        filters: column to regular expression: a row counts if each one matches the whole text of its
        value; NULL never does.
    """

    table: str | None = None
    asset: str | None = None
    path: str | None = None
    query: str | None = None
    source: OneSource | None = None
    fields: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    filters: dict[str, Annotated[str, AfterValidator(_regex)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_one_place(self) -> SecondaryInput:
        named_places = [name for name in ("table", "asset", "path", "query", "source") if getattr(self, name)]
        if len(named_places) != 1:
            raise ValueError(
                f"expected one of table, asset, path, query and source, found {' and '.join(named_places) or 'none'}"
            )
        return self

    @property
    def columns(self) -> list[str]:
        """Return the columns to read: the fields, and the columns of filters."""
        return list(dict.fromkeys([*self.fields, *self.filters]))

    def units(self, rows: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
        """Yield one unit for each row that passes the filters; types are kept."""
        tests = [(name, re.compile(pattern)) for name, pattern in self.filters.items()]
        for row in rows:
            if all(_matches(pattern, row.get(name)) for name, pattern in tests):
                yield {field: row.get(field) for field in self.fields}


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    if value is None:
        return False
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return pattern.fullmatch(text) is not None
