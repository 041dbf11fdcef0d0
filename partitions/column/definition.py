"""What a user declares of a column watermark (docs/reference/columns.md)."""

from __future__ import annotations

from datetime import timedelta, tzinfo
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, field_validator, model_validator

from partitions.column.lookback import LookBack, as_nested
from partitions.column.state import EXCLUSIVE
from partitions.errors import ConfigurationError
from partitions.instants import zone_of
from partitions.model import LONGEST, Duration, Model
from partitions.sources.rows import ColumnName

TRANSACTIONS = "transactions"
"""Of ``settle``: rows wait for the transactions that may still write below them."""

_DURATION: TypeAdapter[timedelta] = TypeAdapter(Duration)


def _settle(given: object) -> object:
    if given is None or given == TRANSACTIONS or isinstance(given, timedelta):
        return given
    try:
        return _DURATION.validate_python(given)
    except ValidationError:
        raise ValueError(
            f"expected an ISO 8601 duration such as PT2S, PT5M or P30D, not negative and of at most {LONGEST.days:,} days, or {TRANSACTIONS}"
        ) from None


class RowCheckpoint(Model):
    """How large a slice may be: rows, where the source can count them by an index or statistics; seconds is an aim."""

    interval_rows: Annotated[int, Field(ge=1, strict=True)] = 1_000_000
    interval_secs: Annotated[int, Field(ge=1, strict=True)] = 60


class ColumnWatermark(Model):
    """Rows above the highest value that was read of one or several columns.

    Attributes:
        columns: a row is new if any of them is above its stored value.
        settle: rows younger than this, by the source's clock, wait for a later run; ``transactions``: rows wait for the transactions that may
            still write below them, as they do without it where the source tells those.
        backward: how far below the stored value a run reads again.
        nulls: rows with NULL in every column: ``first`` reads them in the first run only, ``read`` in every run, ``skip`` never,
            ``fail`` stops the run if there are any.
        boundary: ``inclusive`` reads the stored value itself again, for columns whose ties may be committed later.
        timezone: of columns without a zone, and of days.
        on_set_back: whether a run stops if the source is another one, or ends below what was read.
        checkpoint: how large a slice may be.
        max_slices: of one run.
    """

    type: Literal["column"]
    columns: Annotated[tuple[ColumnName, ...], Field(min_length=1)]
    settle: Annotated[timedelta | Literal["transactions"] | None, BeforeValidator(_settle)] = None
    backward: LookBack | None = None
    nulls: Literal["first", "read", "skip", "fail"] = "first"
    boundary: Literal["exclusive", "inclusive"] = "exclusive"
    timezone: str = "UTC"
    on_set_back: Literal["stop", "ignore"] = "stop"
    checkpoint: RowCheckpoint = RowCheckpoint()
    max_slices: Annotated[int, Field(ge=1, strict=True)] = 100

    @model_validator(mode="before")
    @classmethod
    def _flat_look_back(cls, given: Any) -> Any:
        return as_nested(given)

    @field_validator("columns")
    @classmethod
    def _each_once(cls, columns: tuple[str, ...]) -> tuple[str, ...]:
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"expected each column once, found {twice} twice")
        if EXCLUSIVE in columns:
            raise ValueError(
                f"expected another name of a column, found {EXCLUSIVE}, which the state uses itself"
            )
        return columns

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, text: str) -> str:
        try:
            zone_of(text)
        except ConfigurationError as error:
            raise ValueError(error.message) from error
        return text

    @property
    def settle_time(self) -> timedelta:
        """How young rows are that wait for a later run."""
        return self.settle if isinstance(self.settle, timedelta) else timedelta(0)

    @property
    def waits_for_transactions(self) -> bool:
        """Whether rows wait for transactions, if the source tells those."""
        return not isinstance(self.settle, timedelta)

    @cached_property
    def zone(self) -> tzinfo:
        """Of columns without a zone, and of days."""
        return zone_of(self.timezone)

    @property
    def looks_back(self) -> bool:
        """Whether a run reads anything below the stored watermark again."""
        return self.backward is not None and self.backward.reads_again

    @property
    def reads_again(self) -> bool:
        """Whether each run reads rows that an earlier one has read: by look-back, or at an inclusive boundary."""
        return self.looks_back or self.boundary == "inclusive"

    def identity(self) -> dict[str, Any]:
        """What the state depends on (docs/reference/state.md)."""
        return {"columns": list(self.columns), "zone": self.timezone}
