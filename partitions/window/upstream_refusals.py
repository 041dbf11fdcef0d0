"""What windows with ``to: upstream`` can wait for (docs/how-to/chains.md, Wait for complete windows)."""

from __future__ import annotations

from collections.abc import Sequence

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.refusal import Refusal
from partitions.stream.definition import StreamWatermark
from partitions.window.definition import WindowWatermark

_TO, _COLUMN, _INCOMPLETE = (
    ("watermark", "definition"),
    ("source", "window_column"),
    ("watermark", "incomplete"),
)

WINDOW_START = "_window_start"
"""The column with the start of a row's window, in targets whose rows do not tell it."""


def upstream_refusal(reader: Dataflow, makers: Sequence[Dataflow]) -> Refusal | None:
    """Return why a dataflow has no upstream to wait for; None if nothing is wrong.

    Args:
        reader: the dataflow whose windows may wait.
        makers: the dataflows that write the table it reads.
    """
    if not reader.watermark.waits_for_upstream:
        return None
    table = reader.source.lake_table
    if table is None:
        return Refusal(
            _TO,
            f"to: upstream beside {reader.source.form}",
            "a source of type table, which another dataflow loads",
        )
    if not makers:
        return Refusal(
            _TO,
            f"to: upstream over {table}, which no dataflow of this project loads",
            "the table of a dataflow with a window or column watermark, or to: -",
        )
    if len({type(maker.watermark) for maker in makers}) > 1:
        return Refusal(
            _TO,
            f"to: upstream over {table}, which dataflows with different kinds of watermarks load",
            "a table that dataflows of one kind load, or to: -",
        )
    refusals = (_refusal(reader, maker) for maker in makers)
    return next(filter(None, refusals), None)


def refresh_refusal(reader: Dataflow, makers: Sequence[Dataflow]) -> Refusal | None:
    """Return why changed windows of a table cannot be loaded again; None if nothing is wrong.

    Args:
        reader: the dataflow that reads the table.
        makers: the dataflows that write it.
    """
    time = reader.source.row_columns.window
    if not isinstance(reader.watermark, WindowWatermark) or not reader.window.refreshes or time is None:
        return None
    refusals = (
        retention_refusal(("watermark", "refresh"), maker, time, "changed", "no such key") for maker in makers
    )
    return next(filter(None, refusals), None)


def _refusal(reader: Dataflow, maker: Dataflow) -> Refusal | None:
    match maker.watermark:
        case WindowWatermark():
            return _refusal_of_windows(reader, maker)
        case ColumnWatermark():
            return _refusal_of_column(reader, maker)
        case StreamWatermark():
            return Refusal(_TO, f"to: upstream over the stream {maker.name}", "to: watermark")
    return Refusal(
        _TO,
        f"to: upstream over {maker.table}, since nothing tells up to which time {maker.name} ({maker.kind} watermark) is complete",
        f"to: -, with a grace for rows that come later; or {maker.name} with a window watermark, such as a folder for each hour",
    )


def _refusal_of_windows(reader: Dataflow, maker: Dataflow) -> Refusal | None:
    return _refusal_of_maker(_TO, maker) or _refusal_of_time(
        _COLUMN, reader.source.row_columns.window, maker, _time_of(maker)
    )


def input_refusal(reader: Dataflow, name: str, makers: Sequence[Dataflow]) -> Refusal | None:
    """Return why windows cannot wait for an input; None if nothing is wrong.

    Args:
        reader: the dataflow whose windows may wait.
        name: the input's name.
        makers: the dataflows that write the input's table.
    """
    key = ("watermark", "wait_for", name)
    if not makers or not all(isinstance(maker.watermark, WindowWatermark) for maker in makers):
        table = reader.inputs[name]
        return Refusal(
            key,
            f"{table}, which no dataflow with a window watermark loads",
            "the input's name without wait_for (it is read as it is), or a table that such a dataflow loads",
        )
    refusals = (
        _refusal_of_maker(key, maker)
        or _refusal_of_time(key, reader.window.wait_for[name], maker, _time_of(maker))
        for maker in makers
    )
    return next(filter(None, refusals), None)


def _time_of(maker: Dataflow) -> str:
    """Return the column of a window dataflow's table with the time of its rows."""
    return maker.source.row_columns.window or WINDOW_START


def _refusal_of_maker(key: tuple[str, ...], maker: Dataflow) -> Refusal | None:
    if maker.window.time_entry is None:
        return Refusal(
            key, f"to: upstream over {maker.table}, since {maker.name} has no windows of time", "to: -"
        )
    time = _time_of(maker)
    return _refusal_of_load(key, maker, time) or retention_refusal(key, maker, time)


def retention_refusal(
    key: tuple[str, ...], maker: Dataflow, time: str, waits: str = "to: upstream", otherwise: str = "to: -"
) -> Refusal | None:
    """Return the refusal of a retention by another column: nothing tells which windows have lost rows.

    Args:
        key: the reader's key.
        maker: the dataflow that loads the table.
        time: the column with the time of its rows.
        waits: what the reader says.
        otherwise: what it may say instead.
    """
    retention = maker.target.retention
    if retention is None or retention.column.casefold() in {time.casefold(), WINDOW_START}:
        return None
    return Refusal(
        key,
        f"{waits} over {maker.table}, whose retention by {retention.column} deletes rows of any window",
        f"a retention by {time} in {maker.name}, or {otherwise}",
    )


def _refusal_of_load(key: tuple[str, ...], maker: Dataflow, time: str) -> Refusal | None:
    """Refuse loads that may move a row out of a window, or replace the table."""
    target = maker.target
    keeps_time = time.casefold() in {column.casefold() for column in target.merge_keys}
    if target.load in ("append", "merge_overwrite") and not target.merges:
        return None
    if target.load == "merge_upsert" and keeps_time:
        return None
    return Refusal(
        key,
        f"to: upstream over {maker.table}, which {maker.name} loads by {target.load}: a load may take rows out of windows",
        f"merge_overwrite with replace_by_watermark: true, or merge_upsert with {time} in merge_keys, in {maker.name}; or to: -",
    )


def _refusal_of_column(reader: Dataflow, maker: Dataflow) -> Refusal | None:
    columns = maker.column.columns
    if len(columns) > 1:
        return Refusal(
            _TO,
            f"to: upstream over {maker.table}, whose rows are new by any of {', '.join(columns)}",
            "a watermark of one column there, or to: -",
        )
    if reader.window.incomplete != "wait":
        return Refusal(
            _INCOMPLETE,
            f"another value than wait over {maker.table}, which is complete up to one time ({columns[0]} of {maker.name})",
            "wait, or no such key",
        )
    if reader.window.wait_for:
        return Refusal(
            ("watermark", "wait_for"),
            f"inputs beside {maker.table}, which is complete up to one time ({columns[0]} of {maker.name})",
            "no such key, or a source that a window dataflow loads",
        )
    return (
        retention_refusal(_TO, maker, columns[0])
        or _refusal_of_load(_TO, maker, columns[0])
        or _refusal_of_time(_COLUMN, reader.source.row_columns.window, maker, columns[0])
    )


def _refusal_of_time(key: tuple[str, ...], column: str | None, maker: Dataflow, time: str) -> Refusal | None:
    if column is not None and column.casefold() == time.casefold():
        return None
    return Refusal(key, column or "nothing", f"{time} ({maker.name} is complete by this time)")


def shared_names(reader: Dataflow, maker: Dataflow) -> dict[str, str]:
    """Return the names of unit values that both dataflows have as columns: the reader's, and the maker's."""
    own_columns = reader.source.row_columns.units
    names = {column.casefold(): name for name, column in maker.source.row_columns.units.items()}
    return {
        name: names[column.casefold()] for name, column in own_columns.items() if column.casefold() in names
    }
