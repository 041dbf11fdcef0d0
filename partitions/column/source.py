"""What a column watermark's planner is told of its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from partitions.last_look import SourceLook
from partitions.unit_values import Kind


@dataclass(frozen=True)
class Observed:
    """A look at a source, of one moment.

    Attributes:
        now: the source's clock, aware.
        kinds: what each watermark column holds.
        refused: columns that are there and cannot have a watermark, each with its type and why, in words.
        maxima: the highest value of a column, if the source knows it without a scan: from an index, or statistics. None: the column has
            no value. Without an entry it is not known.
        nulls: how many rows have NULL in every watermark column; None if the source does not know without a scan.
        version: what is read from, if the source has versions; else None.
        sent: for a source that is told of upper bounds: returns the highest one that it can be told and that is not above a given one. Rows
            at such a bound are not read. None: any bound can be asked for, with the rows at it.
        columns: the names of all columns, for messages; none if the source tells only some.
        source: what tells the source from another one of its name, as JSON; None: nothing does.
        settled: up to when no open transaction can still write times, if one began before ``now``.
        waits: by column, the open transactions that its rows wait for, in words.
        warnings: what the user should know of how the source tells that.
        look: of a source that only a read tells more of: how it looks from outside.
    """

    now: datetime
    kinds: Mapping[str, Kind]
    maxima: Mapping[str, Any]
    nulls: int | None = None
    version: int | str | None = None
    sent: Callable[[Any], Any] | None = None
    look: SourceLook | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] = ()
    source: str | None = None
    settled: datetime | None = None
    waits: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
