"""The declared operators of a stream, which change its rows before they are loaded.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, TypeAdapter, field_validator, model_validator

from partitions.model import Duration, Model
from partitions.refusal import Refusal
from partitions.stream.over import Function, OverCall


def _positive(span: timedelta) -> timedelta:
    if not span:
        raise ValueError("expected a duration above zero such as PT5M")
    return span


Length = Annotated[Duration, AfterValidator(_positive)] | Annotated[int, Field(gt=0, strict=True)]
"""An ISO 8601 duration above zero beside timestamps, a whole number above zero beside whole numbers."""

Names = tuple[Annotated[str, Field(min_length=1)], ...]


class TumblingWindows(Model):
    """Windows of one size, each starting where the one before ends; aligned to UTC midnight."""

    type: Literal["tumble"]
    size: Length


class HoppingWindows(Model):
    """Windows of one size, one every ``slide``; aligned to UTC midnight."""

    type: Literal["hop"]
    size: Length
    slide: Length

    @model_validator(mode="after")
    def _check_slide(self) -> HoppingWindows:
        size: Any = self.size
        slide: Any = self.slide
        if isinstance(slide, int) != isinstance(size, int):
            raise ValueError("slide: expected a duration beside a duration, or two whole numbers")
        if slide > size:
            raise ValueError("slide: expected at most the size: rows between two windows would be in none")
        return self


class SessionWindows(Model):
    """Sessions: rows of a group, each within the gap (inclusive) of the row before."""

    type: Literal["session"]
    gap: Length


EPOCH = "_epoch"
"""The column with the number of a row's epoch: the one that read it, or that let it out of the buffer."""

RowOffset = Annotated[int, Field(strict=True)]
_KEYS: dict[Function, tuple[str, ...]] = {
    "row_number": (),
    "rank": (),
    "dense_rank": (),
    "lag": ("column", "offset"),
    "lead": ("column", "offset"),
    "max": ("column", "frame"),
    "sum": ("column", "frame"),
}

Windows = Annotated[TumblingWindows | HoppingWindows | SessionWindows, Field(discriminator="type")]


class Aggregate(Model):
    """Aggregate the rows of each window and group into one row.

    It has ``window_start`` and ``window_end``; a session ends at its last row plus the gap.

    Attributes:
        window: the window of event time.
        group_by: the columns whose values make a group.
        aggregates: Spark SQL aggregates by the name of their column.
    """

    type: Literal["aggregate"] = "aggregate"
    window: Windows
    group_by: Names = ()
    aggregates: Annotated[dict[str, str], Field(min_length=1)]

    @model_validator(mode="after")
    def _check_columns(self) -> Aggregate:
        names = ["window_start", "window_end", *(name.lower() for name in (*self.group_by, *self.aggregates))]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"expected each column once: window_start, window_end, group_by, aggregates; found {', '.join(twice)} twice"
            )
        return self


class OverColumn(Model):
    """One column of an over-window.

    Attributes:
        fn: the function; ``row_number`` follows the order of the rows, the ranks their event time.
        column: the column of lag, lead, max and sum.
        offset: the offset of lag and lead, in rows.
        frame: the frame of max and sum: the first and the last row, relative to this one.
    """

    fn: Function
    column: Annotated[str, Field(min_length=1)] | None = None
    offset: Annotated[int, Field(ge=1, strict=True)] | None = None
    frame: tuple[RowOffset, RowOffset] | None = None

    @model_validator(mode="after")
    def _check_keys(self) -> OverColumn:
        allowed_keys = _KEYS[self.fn]
        for key in ("column", "offset", "frame"):
            if getattr(self, key) is not None and key not in allowed_keys:
                raise ValueError(f"{key}: expected no such key beside fn: {self.fn}")
        if "column" in allowed_keys and self.column is None:
            raise ValueError(f"column: expected the column that {self.fn} reads")
        if "frame" in allowed_keys and (self.frame is None or self.frame[0] > self.frame[1]):
            raise ValueError(
                f"frame: expected the first and the last row that {self.fn} reads, relative to the "
                "current row, such as [-2, 0]"
            )
        return self

    @property
    def call(self) -> OverCall:
        """Return the computed value."""
        return OverCall(self.fn, self.column or "", self.offset or 1, self.frame or (0, 0))


class OverWindow(Model):
    """Add values to each row that come from its neighbours in event-time order.

    Attributes:
        partition_by: columns: only rows with equal values in them are neighbours.
        columns: by the name of the added column.
    """

    type: Literal["over"]
    partition_by: Names = ()
    columns: Annotated[dict[str, OverColumn], Field(min_length=1)]

    @field_validator("columns")
    @classmethod
    def _check_names(cls, columns: dict[str, OverColumn]) -> dict[str, OverColumn]:
        names = [name.lower() for name in columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"expected each column once, found {', '.join(twice)} twice")
        return columns


class Union(Model):
    """The rows of all sources together; all sources have the same columns."""

    type: Literal["union"]


class Join(Model):
    """Join the rows of two sources on equal values of columns.

    Attributes:
        how: Spark's type of join. All but inner need a bound in time: ``within``, or the event time among
        ``on``.
        on: columns of both. Another column that both have gets the second source's name in front:
        ``right_ts``.
        within: how far apart, at most, the event times of two rows are, inclusive; None: any.
    """

    type: Literal["join"]
    how: Literal["inner", "left", "right", "full", "left_semi"] = "inner"
    on: Annotated[Names, Field(min_length=1)]
    within: Duration | None = None

    def is_bounded(self, event_time: str) -> bool:
        """Return whether Spark forgets a row once the watermark has passed all possible matches."""
        return self.within is not None or self.is_on(event_time)

    def is_on(self, column: str) -> bool:
        """Return whether a column is among ``on``, ignoring case as Spark does."""
        return column.casefold() in {name.casefold() for name in self.on}


class DropDuplicates(Model):
    """Keep the first row of each key. Without the event time among them, keys are remembered for ever.

    Attributes:
        keys: columns; None: all of them.
    """

    type: Literal["drop_duplicates"]
    keys: Annotated[Names, Field(min_length=1)] | None = None


class DropDuplicatesWithinWatermark(Model):
    """Keep the first row of each key, if its rows are at most the timeout apart.

    Attributes:
        keys: columns; None: all of them.
    """

    type: Literal["drop_duplicates_within_watermark"]
    keys: Annotated[Names, Field(min_length=1)] | None = None


class TransformWithState(Model):
    """Transform the rows of each group with a user's class, which may keep state and event-time timers.

    Attributes:
        function: ``package.module:Class``, a ``StatefulProcessor`` over Rows that is created without
        arguments.
        group_by: the columns whose values make a group.
        output: columns with types of the rows that it yields, as DDL.
    """

    type: Literal["transform_with_state"]
    function: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")]
    group_by: Annotated[Names, Field(min_length=1)]
    output: Annotated[str, Field(min_length=1)]


Operator = Annotated[
    Union
    | Join
    | DropDuplicates
    | DropDuplicatesWithinWatermark
    | Aggregate
    | TransformWithState
    | OverWindow,
    Field(discriminator="type"),
]
"""An operator of a stream, of either engine."""

SplitsOperator = Aggregate | OverWindow
"""An operator of a stream over splits."""


def window_lengths(window: Windows) -> Iterator[tuple[str, timedelta | int]]:
    """Yield the lengths of a window definition with their keys: size, slide, gap."""
    for key in ("size", "slide", "gap"):
        if (length := getattr(window, key, None)) is not None:
            yield key, length


def _as_declared(length: timedelta | int) -> str:
    """Return a length as a definition writes it: ``PT5M``, or a whole number."""
    return str(TypeAdapter(timedelta | int).dump_python(length, mode="json"))


def splits_operator(operators: Sequence[Operator]) -> SplitsOperator | None:
    """Return the operator of a stream over splits; None if it has none.

    Raises:
        ValueError: there are several, or another one than aggregate or over.
    """
    match tuple(operators):
        case ():
            return None
        case (Aggregate() | OverWindow() as only,):
            return only
    raise ValueError("a stream over splits has one operator, aggregate or over")


def splits_refusals(operators: Sequence[Operator], timeout: timedelta | int) -> Iterator[Refusal]:
    """Yield why a stream over splits cannot run these operators.

    Args:
        operators: as declared.
        timeout: the watermark's timeout; lengths of windows are of the same type.
    """
    declared_types = ", ".join(operator.type for operator in operators)
    unsupported = [
        operator.type for operator in operators if not isinstance(operator, Aggregate | OverWindow)
    ]
    if unsupported:
        expected = "aggregate or over, or engine: structured_streaming (engine: splits reads one table)"
        yield Refusal(("operators",), ", ".join(unsupported), expected)
    elif len(operators) > 1:
        yield Refusal(
            ("operators",), declared_types, "one operator (a second dataflow can read this one's table)"
        )
    for operator in operators:
        if isinstance(operator, Aggregate):
            for key, length in window_lengths(operator.window):
                if isinstance(length, int) != isinstance(timeout, int):
                    expected_length = (
                        "a whole number" if isinstance(timeout, int) else "a duration such as PT5M"
                    )
                    yield Refusal(
                        ("operators", "window", key),
                        _as_declared(length),
                        f"{expected_length}, as watermark.timeout is ({_as_declared(timeout)})",
                    )
            names = (*operator.group_by, *operator.aggregates)
        else:
            names = tuple(operator.columns) if isinstance(operator, OverWindow) else ()
        if any(name.lower() == EPOCH for name in names):
            yield Refusal(
                ("operators",), f"a column {EPOCH}", f"another name than {EPOCH}, which each row has"
            )
