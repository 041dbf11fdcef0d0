"""The entries of a window definition: the time dimension, and the declared units."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from partitions.errors import ConfigurationError
from partitions.json_faults import parse_json
from partitions.model import Model
from partitions.window.extent import Unit
from partitions.window.units import parse_units


class Range(Model):
    """The start and the end of the time dimension (docs/reference/windows.md).

    Both are instants; ``to`` may also be ``-``, ``watermark`` or ``upstream``.
    """

    from_: Annotated[str, Field(alias="from")]
    to: str


class DatetimeEntry(Model):
    """The time dimension."""

    name: Annotated[str, Field(min_length=1)]
    type: Literal["datetime"]
    range: Range


class UnitEntry(Model):
    """The declared units: plain values that belong to ``name``, or objects with all fields of a unit."""

    name: Annotated[str, Field(min_length=1)]
    type: Literal["unit"]
    units: Annotated[tuple[str | int | float | dict[str, Any], ...], BeforeValidator(parse_units)]

    @property
    def listed(self) -> tuple[Unit, ...]:
        """Return each unit as a mapping of names to values."""
        return tuple(unit if isinstance(unit, dict) else {self.name: unit} for unit in self.units)


Entry = Annotated[DatetimeEntry | UnitEntry, Field(discriminator="type")]


def _json_array(value: object) -> object:
    if isinstance(value, str):
        value = parse_json(value, "expected a JSON array")
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"expected an array of watermark entries, found {type(value).__name__}")
    return value


Entries = Annotated[tuple[Entry, ...], BeforeValidator(_json_array)]
"""All entries: an array, or its text in JSON."""
