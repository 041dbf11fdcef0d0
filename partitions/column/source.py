"""The observation of a source for the planner of a column watermark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from partitions.last_look import SourceSnapshot
from partitions.unit_values import ValueType


@dataclass(frozen=True)
class SourceObservation:
    """A source as observed at one moment.

    Attributes:
        now: the source's clock, aware.
        kinds: the value type of each watermark column.
        maxima: the highest value of a column, if the source knows it without a scan: from an index, or
        statistics. None: the column has no value. A missing column is unknown.
        nulls: the number of rows with NULL in every watermark column; None if the source does not know it
        without a scan.
        version: the source's version; None if it has none.
        highest_sendable: for a source that receives upper bounds: returns the highest bound at or below a
        value that it can receive. Rows at such a bound are not read. None: any bound is possible, and rows
        at it are read.
        snapshot: the snapshot of a source whose rows only a read can tell.
        refused_columns: existing columns that cannot have a watermark, each with its type and the reason,
        in words.
        columns: the names of all columns, for messages; empty if the source names only some.
        source: a text, as JSON, that differs for another source of the same name; None: nothing tells them
        apart.
        settled: up to this time no open transaction can still write, if one began before ``now``.
        waits: for each column, the open transactions that its rows wait for, in words.
        warnings: what the user should know about open transactions.
    """

    now: datetime
    kinds: Mapping[str, ValueType]
    maxima: Mapping[str, Any]
    nulls: int | None = None
    version: int | str | None = None
    highest_sendable: Callable[[Any], Any] | None = None
    snapshot: SourceSnapshot | None = None
    refused_columns: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    source: str | None = None
    settled: datetime | None = None
    waits: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
