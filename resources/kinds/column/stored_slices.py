"""Slices above columns as the log stores them: bounds, and where the read is cut."""

from __future__ import annotations

from partitions.column.predicates import ColumnRange
from partitions.column.slices import ColumnSlice
from partitions.reconcile.repair import read_repaired
from partitions.sentinels import deserialise, serialise
from resources.kinds.contract.stored_slices import StoredSlices
from resources.watermarks.column_ranges import COLUMN_RANGES
from resources.watermarks.entry import Intent
from resources.watermarks.lists import ListKind, StoredList


class StoredColumnSlices(StoredSlices[ColumnSlice]):
    """Conversion of slices to lists of ranges."""

    @property
    def list_kind(self) -> ListKind:
        """The list of column ranges."""
        return COLUMN_RANGES

    def to_rows(self, slice_: ColumnSlice) -> StoredList:
        """Return the bounds, and where the read is cut."""
        rows = [
            [
                range_.column,
                serialise({"lower": range_.lower, "upper": range_.upper}),
                range_.lower_inclusive,
                range_.upper_inclusive,
            ]
            for range_ in slice_.ranges
        ]
        head = {
            "version": slice_.version,
            "reads_nulls": slice_.reads_nulls,
            "cuts": serialise({"cuts": list(slice_.cuts)}),
        }
        if slice_.repairs is not None:
            head["repairs"] = slice_.repairs.stored()
        return StoredList(COLUMN_RANGES, rows, head)

    def from_rows(self, intent: Intent, stored: StoredList) -> ColumnSlice:
        """Return the slice with the same bounds and version."""
        ranges = []
        for column, text, lower_inclusive, upper_inclusive in stored.rows:
            values = deserialise(text)
            ranges.append(
                ColumnRange(column, values["lower"], values["upper"], lower_inclusive, upper_inclusive)
            )
        return ColumnSlice(
            deserialise(intent.before),
            tuple(ranges),
            stored.head["reads_nulls"],
            replaces=intent.replaces == "own",
            why=intent.why if intent.why in ("replay", "reconcile") else "run",
            version=stored.head["version"],
            cuts=tuple(deserialise(stored.head["cuts"])["cuts"]),
            saves=intent.why != "reconcile",
            repairs=read_repaired(stored.head["repairs"]) if "repairs" in stored.head else None,
        )
