"""When Dagster compares a source with its table, as a user declares it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from partitions.model import Duration, Flag, Model
from partitions.refusal import Refusal
from partitions.watermark_definition import WatermarkDefinition


class ReconcileSettings(Model):
    """When a source is compared with its table, and what is repaired then.

    Attributes:
        schedule: cron in the watermark's time zone.
        last: how far back rows are compared, by the first watermark column; None: all rows.
        repair: which differing rows are repaired; None: none.
        rows: whether all columns are compared, not only keys and watermark columns.
        full_read: whether a source that cannot count may be read as a whole.
    """

    schedule: Annotated[str, Field(min_length=1)]
    last: Duration | None = None
    repair: Literal["missing", "all"] | None = None
    rows: Flag = False
    full_read: Flag = False

    def start(self, now: datetime) -> str | None:
        """Return the start of the compared range as a date; None: all rows are compared."""
        return None if self.last is None else (now - self.last).date().isoformat()


def reconcile_refusals(
    settings: ReconcileSettings | None, watermark: WatermarkDefinition, load: str, step: str | None
) -> Iterator[Refusal]:
    """Yield why a dataflow cannot be compared with its source like that.

    Args:
        settings: the settings; None: nothing is compared.
        watermark: the watermark.
        load: load of the target.
        step: key of the user's step; None: there is none.
    """
    if settings is None:
        return
    key: tuple[Any, ...] = ("reconcile",)
    if not watermark.holds_source_rows:
        beside = f"reconcile beside a {watermark.type} watermark"
        yield Refusal(key, beside, "no such key: rows of its table need not be those of its source")
    elif watermark.remembers_files:
        for name in ("last", "repair", "rows"):
            if getattr(settings, name):
                expected = (
                    "no such key: files are compared by name, size and version, and all of them at once"
                )
                yield Refusal((*key, name), f"{name} beside a {watermark.type} watermark", expected)
    elif step is not None or load == "overwrite":
        beside = f"reconcile beside {step or 'load: overwrite'}"
        yield Refusal(key, beside, "no such key: the table holds other rows than its source")
