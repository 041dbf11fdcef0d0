"""What the windows of a dataflow wait for, and its ledger, which depends on that.

A stream or a column watermark is complete up to one time; a window dataflow has a ledger of its own. See
docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.instants import milliseconds
from partitions.window.awaited_windows import AwaitedWindows
from partitions.window.definition import WindowWatermark
from partitions.window.ledger import Ledger, ledger
from partitions.window.state import WindowState
from partitions.window.upstream import Maker, Position, UpstreamTables
from partitions.window.upstream_refusals import shared_names
from resources.kinds.state_of_entry import state_of
from resources.kinds.window.column_completeness import find_column_bound
from resources.kinds.window.columns import WINDOW_START, WindowColumns
from resources.kinds.window.stream_completeness import Waits, find_waits, holds_loaded
from resources.kinds.window.unit_lookup import units_of
from resources.kinds.window.upstream_loads import loaded_since, position_of
from resources.platform.stores import Stores
from resources.tables.contract.commits import Version
from resources.watermarks.entry import Entry

_ZONED = "timestamp"
"""The type of a column whose values are instants, in Spark's words."""


def find_awaited(
    stores: Stores, dataflow: Dataflow, state: WindowState, now: datetime
) -> Waits | UpstreamTables | None:
    """Return what a dataflow's windows wait for; None if they wait for nothing. Starts no Spark.

    Args:
        stores: the resources of the project.
        dataflow: the dataflow whose windows may wait.
        state: its committed state, which says what it has seen of the upstream.
        now: the clock, aware.
    """
    if not dataflow.watermark.waits_for_upstream:
        return find_waits(dataflow, stores.lineage, stores.log, stores.table)
    of_source = _makers(stores, dataflow, dataflow.source.lake_table or "")
    if not any(isinstance(maker.watermark, WindowWatermark) for maker in of_source):
        return find_column_bound(dataflow, of_source, stores.log, stores.table, now)
    column = dataflow.source.row_columns.window or ""
    makers = []
    for maker in of_source:
        _check_zone(stores, dataflow, maker, column)
        makers.append(_maker(stores, maker, state, now, shared_names(dataflow, maker)))
    for name, column in dataflow.window.wait_for.items():
        for maker in _makers(stores, dataflow, dataflow.inputs[name]):
            _check_zone(stores, dataflow, maker, column)
            makers.append(_maker(stores, maker, state, now, {}))
    return UpstreamTables(tuple(makers), dataflow.zone)


def awaited_versions(stores: Stores, dataflow: Dataflow) -> Mapping[str, Version]:
    """Return the newest versions of the inputs that windows wait for, by name. Starts no Spark."""
    if not dataflow.watermark.awaited_inputs:
        return {}
    versions = stores.inputs(dataflow).newest_versions()
    return {name: versions[name] for name in dataflow.watermark.awaited_inputs}


def newest_entries(stores: Stores, upstream: UpstreamTables) -> Mapping[str, Position]:
    """Return number and id of the newest entry of each dataflow that makes the upstream's table."""
    return {maker.name: position_of(stores.log.newest(maker.name)) for maker in upstream.makers}


def windows_of(stores: Stores, dataflow: Dataflow, now: datetime) -> WindowWatermark:
    """Return the window watermark; if its windows wait for a dataflow, up to where that one goes."""
    awaited = find_awaited(stores, dataflow, WindowState(), now) if dataflow.watermark.follows else None
    return dataflow.window.up_to(awaited.reached) if awaited else dataflow.window


def ledger_of(stores: Stores, dataflow: Dataflow, state: WindowState, now: datetime) -> Ledger:
    """Return the loaded and missing windows of each unit at a state. Starts no Spark.

    A window whose upstream lacks a part of it, or has changed, does not count as loaded.
    """
    return _ledger(
        dataflow, find_awaited(stores, dataflow, state, now), state, units_of(stores, dataflow), now
    )


def _ledger(
    dataflow: Dataflow,
    awaited: Waits | UpstreamTables | None,
    state: WindowState,
    units: tuple[str, ...],
    now: datetime,
) -> Ledger:
    definition = dataflow.window.up_to(awaited.reached) if awaited else dataflow.window
    if not isinstance(awaited, UpstreamTables):
        return ledger(definition, state, units, now, dataflow=dataflow.name)
    windows = AwaitedWindows.of(awaited, definition, state, definition.windows(now), now)
    unnamed = ledger(definition, state, units, now, dataflow=dataflow.name, not_ready=windows.gaps)
    named_units = [
        replace(unit, gaps=[windows.with_names(unit.unit, gap) for gap in unit.gaps])
        for unit in unnamed.units
    ]
    return replace(unnamed, units=named_units)


def _makers(stores: Stores, reader: Dataflow, table: str) -> list[Dataflow]:
    """Return the dataflows whose own table it is.

    Raises:
        PlanError: code ``unknown_upstream``: the file of one of them has errors.
    """
    makers = []
    for maker in stores.lineage.makers(table):
        if maker.table != table:
            continue
        if not isinstance(maker, Dataflow):
            raise PlanError(
                f"dataflow {reader.name}: expected to know what {maker.name} has loaded into {table}, which windows wait for, found errors"
                " in its file: `strandline validate` lists them",
                code="unknown_upstream",
            )
        makers.append(maker)
    return makers


def _maker(
    stores: Stores, maker: Dataflow, state: WindowState, now: datetime, names: Mapping[str, str]
) -> Maker:
    """Return a dataflow that makes the table, as of its newest entry.

    The entry is read first: what is loaded later is not in its ledger, and counts as loaded since.
    """
    entry = stores.log.newest(maker.name)
    own_state = state_of(WindowState, maker, entry) if entry and entry.kind == "window" else WindowState()
    awaited = find_awaited(stores, maker, own_state, now) if maker.watermark.follows else None
    return Maker(
        maker.name,
        maker.table,
        maker.window.up_to(awaited.reached) if awaited else maker.window,
        _ledger(maker, awaited, own_state, units_of(stores, maker), now),
        position_of(entry),
        names,
        loaded_since(stores.log, maker, entry, state.upstream.get(maker.name)),
        _expired_before(maker, now),
        _problem(stores, maker, entry),
        maker.source.row_columns.window is None,
    )


def _problem(stores: Stores, maker: Dataflow, entry: Entry | None) -> str | None:
    """Return why nothing is known of the table of a dataflow; None if it is the one that its log records."""
    if entry is not None and not holds_loaded(stores.table(maker), entry):
        return f"it is older than the state of {maker.name}, or another table: `strandline run {maker.name}` shows what to do"
    if (entry is None or entry.table_version is None) and not stores.table(maker).exists():
        return f"{maker.name} has loaded nothing yet"
    return None


def _expired_before(maker: Dataflow, now: datetime) -> int | None:
    """Return the instant before which the retention deletes rows of windows; None if it deletes none."""
    retention, columns = maker.target.retention, WindowColumns.of(maker)
    of_windows = {(columns.time or WINDOW_START).casefold(), WINDOW_START}
    if retention is None or retention.column.casefold() not in of_windows:
        return None
    return milliseconds(retention.limit(now))


def _check_zone(stores: Stores, reader: Dataflow, maker: Dataflow, column: str) -> None:
    """Refuse another zone than the upstream's if the time of rows has none: it would mean other instants.

    Raises:
        PlanError: code ``other_zone``.
    """
    if maker.window.timezone == reader.window.timezone:
        return
    for name, data_type in _columns(stores, maker):
        if name.casefold() == column.casefold() and data_type != _ZONED:
            raise PlanError(
                f"dataflow {reader.name}: watermark.timezone: expected {maker.window.timezone}, as in {maker.name}, since the values of"
                f" {name} ({data_type}) in {maker.table} have no zone; found {reader.window.timezone}",
                code="other_zone",
            )


def _columns(stores: Stores, maker: Dataflow) -> Iterator[tuple[str, object]]:

    described = stores.table(maker).contents.schema()
    for field in json.loads(described[1])["fields"] if described else ():
        yield field["name"], field["type"]
