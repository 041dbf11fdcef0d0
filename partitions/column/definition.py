"""A column watermark as a user declares it (docs/reference/columns.md)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, field_validator, model_validator
from typing_extensions import override

from partitions.column.lookback import LookBack, nest_look_back
from partitions.column.state import EXCLUSIVE
from partitions.model import LONGEST, Duration
from partitions.sources.definition import SourceDefinition
from partitions.sources.rows import ColumnName
from partitions.watermark_definition import SliceSize, ZonedWatermark

TRANSACTIONS = "transactions"
"""A value of ``settle``: rows wait for the transactions that may still write below them."""

_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


def _settle(value: object) -> object:
    if value is None or value == TRANSACTIONS or isinstance(value, timedelta):
        return value
    try:
        return _DURATION.validate_python(value)
    except ValidationError:
        raise ValueError(
            f"expected an ISO 8601 duration such as PT2S, PT5M or P30D, not negative and of at most {LONGEST.days:,} days, or {TRANSACTIONS}"
        ) from None


class RowCheckpoint(SliceSize):
    """The size of a slice.

    Rows count where an index or statistics of the source can count them; seconds are an aim.
    """

    interval_rows: Annotated[int, Field(ge=1, strict=True)] = 1_000_000


class ColumnWatermark(ZonedWatermark):
    """A watermark that loads the rows above the highest value read of one or several columns.

    Attributes:
        columns: a row is new if any of them is above its stored value.
        settle: rows younger than this, by the source's clock, wait for a later run. ``transactions``: rows
        wait for the transactions that may still write below them; without ``settle`` they wait only where
        the source knows its open transactions.
        backward: how far below the stored value a run reads again.
        nulls: rows with NULL in every column: ``first`` reads them in the first run only, ``read`` in
        every run, ``skip`` never, ``fail`` stops the run if there are any.
        boundary: ``inclusive`` reads rows at the stored value again, for columns whose ties may be
        committed later.
        on_set_back: whether a run stops if the source is another one, or ends below the watermark.
        checkpoint: the size of a slice.
    """

    type: Literal["column"]
    columns: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    settle: Annotated[timedelta | Literal["transactions"] | None, BeforeValidator(_settle)] = None
    backward: LookBack | None = None
    nulls: Literal["first", "read", "skip", "fail"] = "first"
    boundary: Literal["exclusive", "inclusive"] = "exclusive"
    on_set_back: Literal["stop", "ignore"] = "stop"
    checkpoint: RowCheckpoint = RowCheckpoint()

    @model_validator(mode="before")
    @classmethod
    def _flat_look_back(cls, settings: Any) -> Any:
        return nest_look_back(settings)

    @field_validator("columns")
    @classmethod
    def _each_once(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"expected each column once, found {twice} twice")
        if EXCLUSIVE in columns:
            raise ValueError(f"expected another column name, found {EXCLUSIVE}, which the state uses itself")
        return columns

    @property
    def settle_time(self) -> timedelta:
        """Rows younger than this wait for a later run."""
        return self.settle if isinstance(self.settle, timedelta) else timedelta(0)

    @property
    def waits_for_transactions(self) -> bool:
        """Whether rows wait for open transactions, if the source knows them."""
        return not isinstance(self.settle, timedelta)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """``columns``."""
        return self.columns

    @property
    def looks_back(self) -> bool:
        """Whether a run reads anything below the stored watermark again."""
        return self.backward is not None and self.backward.reads_again

    @property
    def reads_again(self) -> bool:
        """Whether each run reads earlier rows again, by look-back or at an inclusive boundary."""
        return self.looks_back or self.boundary == "inclusive"

    @override
    def cautions(self, source: SourceDefinition) -> Iterator[str]:
        """Yield that rows of a lake table which come late are missed, unless a look-back reads them."""
        if source.lake_table is not None and not self.looks_back:
            yield (
                f"rows that table {source.lake_table} gets later with a value at or below the highest one read are never loaded. Read its commits"
                " (watermark: {type: offset}), or read earlier rows again (watermark.backward, with target.merge_keys)"
            )

    def identity(self) -> dict[str, Any]:
        """Return the parts that the state depends on (docs/reference/state.md)."""
        return {"columns": list(self.columns), "zone": self.timezone}
