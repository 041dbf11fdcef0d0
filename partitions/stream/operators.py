"""What a stream does to its rows before they are in its table, as a definition declares it (docs/streams.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from partitions.model import Duration, Model


def _positive(span: timedelta) -> timedelta:
    if not span:
        raise ValueError("expected a duration above zero such as PT5M")
    return span


Length = Annotated[Duration, AfterValidator(_positive)]
"""An ISO 8601 duration above zero."""

Names = tuple[Annotated[str, Field(min_length=1)], ...]


class TumblingWindows(Model):
    """Windows of one size, each beginning where the one before ends; aligned to UTC midnight."""

    type: Literal["tumble"]
    size: Length


class HoppingWindows(Model):
    """Windows of one size, one every ``slide``; aligned to UTC midnight."""

    type: Literal["hop"]
    size: Length
    slide: Length

    @model_validator(mode="after")
    def _overlapping(self) -> HoppingWindows:
        if self.slide > self.size:
            raise ValueError("slide: expected at most the size: rows between two windows would be in none")
        return self


class SessionWindows(Model):
    """Sessions: rows of a group, each within the gap, inclusive, of the one before."""

    type: Literal["session"]
    gap: Length


Windows = Annotated[TumblingWindows | HoppingWindows | SessionWindows, Field(discriminator="type")]


class Aggregate(Model):
    """Rows of each window and group become one, with ``window_start`` and ``window_end`` (of a session its last row and the gap).

    Attributes:
        window: of event time.
        group_by: columns.
        aggregates: Spark SQL aggregates by the name of their column.
    """

    type: Literal["aggregate"] = "aggregate"
    window: Windows
    group_by: Names = ()
    aggregates: Annotated[dict[str, str], Field(min_length=1)]

    @field_validator("aggregates")
    @classmethod
    def _window_s_own(cls, aggregates: dict[str, str]) -> dict[str, str]:
        if taken := {"window_start", "window_end"} & {name.lower() for name in aggregates}:
            raise ValueError(
                f"expected other names than {', '.join(sorted(taken))}, which the window's columns have"
            )
        return aggregates


class Union(Model):
    """The rows of all sources together; each source has the same columns."""

    type: Literal["union"]


class Join(Model):
    """The rows of two sources that agree in columns.

    Attributes:
        how: Spark's type of join. All but inner need a watermark's column among ``on``.
        on: columns of both. Another column that both have gets its source's name in front, of the second: ``right_ts``.
    """

    type: Literal["join"]
    how: Literal["inner", "left", "right", "full", "left_semi"] = "inner"
    on: Annotated[Names, Field(min_length=1)]


class DropDuplicates(Model):
    """The first row of each key. What is remembered of keys without the event time is never dropped.

    Attributes:
        keys: columns; None: all of them.
    """

    type: Literal["drop_duplicates"]
    keys: Annotated[Names, Field(min_length=1)] | None = None


class DropDuplicatesWithinWatermark(Model):
    """The first row of each key, as long as rows of it are at most the timeout apart.

    Attributes:
        keys: columns; None: all of them.
    """

    type: Literal["drop_duplicates_within_watermark"]
    keys: Annotated[Names, Field(min_length=1)] | None = None


class TransformWithState(Model):
    """What a class of the user makes of the rows of each group, with state and event-time timers.

    Attributes:
        function: ``package.module:Class``, a ``StatefulProcessor`` over Rows that is made without arguments.
        group_by: columns.
        output: columns with types of what it yields, as DDL.
    """

    type: Literal["transform_with_state"]
    function: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    group_by: Annotated[Names, Field(min_length=1)]
    output: Annotated[str, Field(min_length=1)]


SparkOperator = Annotated[
    Union | Join | DropDuplicates | DropDuplicatesWithinWatermark | Aggregate | TransformWithState,
    Field(discriminator="type"),
]
"""What Structured Streaming does."""
