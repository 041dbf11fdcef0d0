"""The declaration of a stream watermark (docs/reference/streams.md).

:mod:`partitions.spark_stream.definition` declares streams of Spark's engine.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from partitions.model import Duration, Model
from partitions.path.definition import Checkpoint, PartitionFilter, PathWatermark
from partitions.sources.rows import ColumnName
from partitions.stream.late_rows import OnLateRows
from partitions.stream.split_changes import Mode
from partitions.stream.splits import SplitOptions
from partitions.watermark_definition import WatermarkDefinition

SpanOfTime = Duration | Annotated[int, Field(ge=0, strict=True)]
"""A distance of event times: a duration beside timestamps, a whole number beside whole numbers."""

SplitName = Annotated[str, Field(min_length=1)]


class BufferLimits(Model):
    """Limits of the buffer: more rows stop the run, more drift of the slowest split causes a warning."""

    max_rows: Annotated[int, Field(ge=1, strict=True)] = 100_000_000
    max_drift: SpanOfTime = timedelta(hours=6)


class EventTimeWatermark(WatermarkDefinition):
    """What the streams of both engines share.

    Attributes:
        event_time: the column with the time of a row.
    """

    takes_operators: ClassVar[bool] = True
    takes_columns: ClassVar[bool] = False
    rows_name_origin: ClassVar[bool] = False
    reads_versions: ClassVar[bool] = True
    holds_source_rows: ClassVar[bool] = False

    type: Literal["stream"]
    event_time: ColumnName


class StreamWatermark(EventTimeWatermark):
    """One event-time watermark for each split, and their minimum as the global one.

    Attributes:
        engine: ``splits`` is the platform's own; ``structured_streaming`` is Spark's.
        event_time: a column with a timestamp (without a zone: UTC) or a whole number.
        split: the columns whose values tell a row's split; without them the stream is one split.
        timeout: how far rows of one split may be out of order.
        order_by: orders rows with the same event time.
        late: what happens to rows below their split's watermark, or below the global one if that is higher.
        splits: declared splits; the global watermark waits for each of them.
        min_splits: the number of splits that need a watermark before there is a global one.
        idle: what happens to a split without rows for ``idle_after`` epochs.
        scaling: what a change of the set of splits does.
        max_ahead: rows later than the plan's clock by more are quarantined; None: none are.
        checkpoint: how much input an epoch may have.
        buffer: its limits.
        close_after: after this time without input, by the run's clock, waiting rows leave. Folders that
        name a time close this long after their end, too.
        scope: like the keys after it, belongs to the path watermark above which files are read.
    """

    SPLITS_ONLY: ClassVar[tuple[str, ...]] = (
        "split", "order_by", "late", "splits", "min_splits", "idle", "idle_after", "scaling", "max_ahead", "buffer",
    )  # fmt: skip

    FILES_ONLY: ClassVar[tuple[str, ...]] = (
        "scope", "partition_filter", "time_template", "layout", "settle",
    )  # fmt: skip

    engine: Literal["splits", "structured_streaming"] = "splits"
    split: ColumnName | Annotated[tuple[ColumnName, ...], Field(min_length=1)] | None = None
    timeout: SpanOfTime
    order_by: tuple[ColumnName, ...] = ()
    late: OnLateRows = "divert"
    splits: tuple[SplitName, ...] = ()
    min_splits: Annotated[int, Field(ge=1, strict=True)] = 1
    idle: Literal["exclude", "adopt_max", "stall"] = "exclude"
    idle_after: Annotated[int, Field(ge=1, strict=True)] = 5
    scaling: Mode = "split"
    max_ahead: SpanOfTime | None = None
    checkpoint: Checkpoint = Checkpoint()
    buffer: BufferLimits = BufferLimits()
    close_after: Duration | None = None
    scope: Literal["global", "partition"] = "partition"
    partition_filter: PartitionFilter | None = None
    time_template: str | None = None
    layout: Literal["mixed", "leaf"] = "mixed"
    settle: Duration = timedelta(0)

    @field_validator("splits", "order_by")
    @classmethod
    def _check_distinct(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"expected each name once, found {twice} twice")
        return names

    @model_validator(mode="after")
    def _check_path_watermark(self) -> StreamWatermark:
        try:
            _ = self.above_files
        except ValidationError as error:
            raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None
        return self

    @property
    def diverts_late_rows(self) -> bool:
        """Whether late rows go into a table beside the dataflow's own."""
        return self.late == "divert"

    @property
    def above_files(self) -> PathWatermark:
        """Return the path watermark above which files are read."""
        closes = ("close_after",) if self._names_times else ()
        keys = (*self.FILES_ONLY, *closes, "checkpoint", "max_slices")
        return PathWatermark.model_validate({"type": "path", **{key: getattr(self, key) for key in keys}})

    @property
    def _names_times(self) -> bool:
        """Return whether folders name a time, after which they close."""
        by_prefix = self.partition_filter is not None and self.partition_filter.prefix_template is not None
        return self.scope == "partition" and (self.time_template is not None or by_prefix)

    @property
    def split_columns(self) -> tuple[str, ...]:
        """Return the columns that tell a row's split; empty if the stream is one split."""
        if self.split is None:
            return ()
        return (self.split,) if isinstance(self.split, str) else self.split

    @property
    def policy(self) -> SplitOptions:
        """Return the options of splits that judge rows."""
        return SplitOptions(
            self.timeout,
            frozenset(self.splits),
            self.min_splits,
            self.idle,
            self.idle_after,
            self.scaling,
        )

    def identity(self) -> dict[str, Any]:
        """Return the parts of the definition that the state depends on (docs/reference/state.md)."""
        prefix = self.partition_filter.prefix_template if self.partition_filter else None
        return {
            "engine": self.engine,
            "event_time": self.event_time,
            "split": list(self.split_columns),
            **({"scope": self.scope} if self.scope != "partition" else {}),
            **({"source": {"prefix_template": prefix}} if prefix else {}),
        }
