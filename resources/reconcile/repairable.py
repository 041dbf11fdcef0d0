"""What a repair reads again after a comparison of rows, or why it cannot."""

from __future__ import annotations

from dataclasses import replace

from partitions.dataflow import Dataflow
from partitions.reconcile.columns import MatchedColumns
from partitions.reconcile.ranges import Ranges
from partitions.reconcile.repair import Repaired, RepairedRanges, keys_to_repair
from resources.reconcile.comparing import Compared
from resources.reconcile.options import ReconcileOptions

_TIMES = ("timestamp", "timestamp_ntz", "date")


def find_repair(
    dataflow: Dataflow,
    options: ReconcileOptions,
    matched: MatchedColumns,
    ranges: Ranges,
    compared: Compared,
    position: str,
    no_repair: str | None = None,
) -> Repaired | str | None:
    """Return what a repair reads again; why it cannot, for people; None: nothing is to be repaired.

    Args:
        dataflow: the definition.
        options: what is repaired.
        matched: columns of both sides.
        ranges: compared ranges.
        compared: what differs.
        position: what was compared, for people.
        no_repair: why rows of this kind of watermark are not repaired; None: they are.
    """
    sorts = options.repaired_sorts
    differing = [
        range_.range for range_ in compared.ranges if any(getattr(range_.counts, sort) for sort in sorts)
    ]
    if not differing:
        return None
    target = dataflow.target
    if refusal := no_repair or _refusal(dataflow):
        return refusal
    if not target.merge_keys or target.replace_by_watermark:
        if options.repairs == "missing":
            return "rows without keys are repaired by ranges, which takes extra rows out, too"
        return RepairedRanges(tuple(differing), ranges.state, ranges.watermark_columns, position)
    assert compared.differences is not None
    keys = keys_to_repair(
        matched.named(target.merge_keys, dataflow.name, "target.merge_keys"), compared.differences, sorts
    )
    if isinstance(keys, str):
        return keys
    if keys.lacked and target.load == "scd2" and not _ends_at_a_time(dataflow, matched):
        return f"a version can only end at a time or a date, and {target.effective_column} is neither"
    return replace(keys, compared=position)


def _refusal(dataflow: Dataflow) -> str | None:
    """Return why no repair can write what the table would have; None if one can."""
    target = dataflow.target
    if target.shared:
        return "other dataflows load the table, too (target.shared)"
    if dataflow.rules:
        return "the rules of its rows are counted by slices of runs"
    options = {
        "immutable": target.immutable,
        "missing_columns: keep": target.keeps_missing_columns,
    }
    option = next((name for name, value in options.items() if value), None)
    return f"with target.{option} the table keeps values that the source no longer has" if option else None


def _ends_at_a_time(dataflow: Dataflow, matched: MatchedColumns) -> bool:
    effective = (dataflow.target.effective_column or "").casefold()
    types = {column.name.casefold(): column.table_type.data_type for column in matched.compared}
    return types.get(effective) in _TIMES or effective == "_ingested_at"
