"""The partitions of a user's own asset, as the rows of its table.

See docs/reference/dagster.md, Your own assets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Self
from zoneinfo import ZoneInfo

from dagster import (
    DagsterInstance,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from partitions.errors import ConfigurationError
from partitions.local_time import local
from partitions.predicate import Predicate
from partitions.unit_values import TIMES, ValueType, fit_value
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate

_ONLY = "unit"
"""The name of the only dimension of partitions that have one."""

_UTC = "UTC"


@dataclass(frozen=True)
class OwnPartitions:
    """The partitions of one asset, and the columns that tell the partition of a row.

    Attributes:
        definition: the partitions.
        window_column: the column with the time of a row; None if the partitions have no time windows.
        unit_columns: the column of each other dimension, by its name.
        what: the asset, for messages.
    """

    definition: PartitionsDefinition[str]
    window_column: str | None
    unit_columns: Mapping[str, str]
    what: str

    @classmethod
    def of(
        cls, definition: PartitionsDefinition[str], window_column: Any, unit_columns: Any, what: str
    ) -> Self:
        """Return the partitions with the columns that the metadata names.

        Args:
            definition: the partitions.
            window_column: the metadata ``strandline/window_column``.
            unit_columns: the metadata ``strandline/unit_columns``: the name of a column if there is one
                dimension beside time, or a name for each dimension.
            what: the asset, for messages.

        Raises:
            ConfigurationError: a column is not named, or is named for no dimension.
        """
        dimensions = _dimensions(definition)
        times = [name for name, of in dimensions.items() if isinstance(of, TimeWindowPartitionsDefinition)]
        units = [name for name in dimensions if name not in times]
        if len(times) > 1:
            raise ConfigurationError(
                f"{what}: expected at most one dimension of time windows, found {' and '.join(times)}"
            )
        _check_window_column(window_column, has_windows=bool(times), what=what)
        by_dimension = {units[0]: unit_columns} if isinstance(unit_columns, str) and units else unit_columns
        if by_dimension is None:
            by_dimension = {}
        if (
            not isinstance(by_dimension, Mapping)
            or set(by_dimension) != set(units)
            or not all(isinstance(column, str) for column in by_dimension.values())
        ):
            raise ConfigurationError(_unit_columns_error(units, unit_columns, what))
        columns = [*filter(None, [window_column]), *by_dimension.values()]
        if repeated := [column for column in dict.fromkeys(columns) if columns.count(column) > 1]:
            raise ConfigurationError(
                f"{what}: expected a column of its own for each dimension of its partitions, found {repeated[0]} "
                "twice in its metadata, so partitions would replace each other's rows. Name another column"
            )
        return cls(definition, window_column, dict(by_dimension), what)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that tell the partition of a row."""
        window = () if self.window_column is None else (self.window_column,)
        return (*window, *dict.fromkeys(self.unit_columns.values()))

    @property
    def zone_name(self) -> str:
        """The name of the zone of the time windows; UTC without any."""
        windows = self._windows
        return windows.timezone if windows is not None else _UTC

    def check_distinct(self, types: Mapping[str, ValueType], instance: DagsterInstance) -> None:
        """Raise if two partition keys stand for one value of a column, such as ``7`` and ``007``.

        Args:
            types: the types of the table's columns.
            instance: has the keys of dynamic partitions.

        Raises:
            ConfigurationError: names the keys.
        """
        dimensions = _dimensions(self.definition)
        for name, column in self.unit_columns.items():
            value_type = types.get(column, "text")
            if value_type == "text":
                continue
            keys_by_value: dict[Any, str] = {}
            for key in dimensions[name].get_partition_keys(dynamic_partitions_store=instance):
                try:
                    value = fit_value(key, value_type, self._zone)
                except ValueError:
                    continue  # a run of this partition says so
                if (namesake := keys_by_value.setdefault(value, key)) != key:
                    raise ConfigurationError(
                        f"{self.what}: expected partitions with values of their own, found {namesake} and {key}, "
                        f"which are one value of column {column}, so they would replace each other's rows. "
                        "Remove one, or return the column as text"
                    )

    def rows_of(self, keys: Sequence[str], types: Mapping[str, ValueType]) -> Predicate:
        """Return the predicate of exactly the rows of some partitions; without keys no row matches.

        Args:
            keys: partition keys.
            types: the types of the table's columns.

        Raises:
            ConfigurationError: a column is missing or cannot tell the partition.
        """
        try:
            columns = ExtentColumns.checked(types, self.window_column, self.unit_columns, self._zone)
            extents = list(self._extents(keys))
            self._check_times(extents, types)
            return extents_predicate(extents, columns)
        except ConfigurationError as error:
            if error.message.startswith(self.what):
                raise
            raise ConfigurationError(f"{self.what}: {error.message}") from error

    def _extents(self, keys: Sequence[str]) -> Iterator[Extent]:
        windows = self._windows
        time_name = next(
            (name for name in _dimensions(self.definition) if name not in self.unit_columns), None
        )
        for key in keys:
            parts = self._parts(key)
            lower = upper = None
            if windows is not None and time_name is not None:
                window = windows.time_window_for_partition_key(parts[time_name])
                lower, upper = (round(time.timestamp() * 1000) for time in (window.start, window.end))
            yield Extent(lower, upper, ({name: parts[name] for name in self.unit_columns},))

    def _parts(self, key: str) -> Mapping[str, str]:
        """Return the key of each dimension."""
        if not isinstance(self.definition, MultiPartitionsDefinition):
            return dict.fromkeys(_dimensions(self.definition), key)
        return self.definition.get_partition_key_from_str(key).keys_by_dimension

    @property
    def _windows(self) -> TimeWindowPartitionsDefinition | None:
        dimensions = _dimensions(self.definition).values()
        return next((of for of in dimensions if isinstance(of, TimeWindowPartitionsDefinition)), None)

    @property
    def _zone(self) -> tzinfo:
        return ZoneInfo(self.zone_name)

    def _check_times(self, extents: Sequence[Extent], types: Mapping[str, ValueType]) -> None:
        """Raise if the window column holds no times, or days while a window begins within a day."""
        if self.window_column is None:
            return
        value_type = types[self.window_column]
        if value_type not in TIMES:
            raise ConfigurationError(
                f"{self.what}: column {self.window_column}: expected times or days, by which a window is "
                f"found, found {value_type}. Return the column as a timestamp or a date"
            )
        bounds = [ms for extent in extents for ms in (extent.lower, extent.upper) if ms is not None]
        times = (local(ms, self._zone) for ms in bounds) if value_type == "day" else ()
        if (within := next((time for time in times if time.time() != time.min.time()), None)) is not None:
            raise ConfigurationError(
                f"{self.what}: column {self.window_column}: expected times, since a window begins at "
                f"{within:%Y-%m-%d %H:%M}, found days. Return the column as a timestamp"
            )


def _dimensions(definition: PartitionsDefinition[str]) -> dict[str, PartitionsDefinition[str]]:
    if isinstance(definition, MultiPartitionsDefinition):
        return {part.name: part.partitions_def for part in definition.partitions_defs}
    return {_ONLY: definition}


def _check_window_column(column: Any, *, has_windows: bool, what: str) -> None:
    if has_windows and not (isinstance(column, str) and column):
        raise ConfigurationError(
            f"{what}: expected the column that tells the window of a row, since it has partitions of time, "
            f"found {'none' if column is None else repr(column)}. Name it in the asset's metadata: "
            '"strandline/window_column": "COLUMN"'
        )
    if not has_windows and column is not None:
        raise ConfigurationError(
            f"{what}: expected no strandline/window_column in its metadata, since its partitions are no time "
            f"windows, found {column!r}. Remove it, or name the column in strandline/unit_columns"
        )


def _unit_columns_error(units: Sequence[str], value: Any, what: str) -> str:
    text = "none" if value is None else repr(value)
    if not units:
        return (
            f"{what}: expected no strandline/unit_columns in its metadata, since it has no partitions beside "
            f"time windows, found {text}. Remove it"
        )
    named = json.dumps(dict.fromkeys(units, "COLUMN")) if units != [_ONLY] else '"COLUMN"'
    return (
        f"{what}: expected the column that tells the partition of a row for {', '.join(units)}, found {text}. "
        f'Name it in the asset\'s metadata: "strandline/unit_columns": {named}'
    )
