"""What the windows of a dataflow wait for, and its ledger, which depends on that.

A stream or a column watermark is complete up to one time; a window dataflow has a ledger of its own. See
docs/how-to/chains.md, Wait for complete windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision, PlanError, SourceError, UpstreamNotLoaded
from partitions.plan import Plan, pluralize
from partitions.window.awaited_windows import AwaitedWindows
from partitions.window.awaited_words import AwaitedWords
from partitions.window.definition import WindowWatermark
from partitions.window.expired import ExpiredRows
from partitions.window.ledger import Ledger, ledger
from partitions.window.state import WindowState
from partitions.window.upstream import Maker, Position, UpstreamTables, with_changes
from partitions.window.upstream_refusals import shared_names
from resources.kinds.state_of_entry import state_of
from resources.kinds.window.column_completeness import find_column_bound
from resources.kinds.window.columns import WINDOW_START, WindowColumns
from resources.kinds.window.expired import find_expired
from resources.kinds.window.source_changes import find_source_changes
from resources.kinds.window.stream_completeness import (
    Waits,
    describe_change,
    describe_type,
    find_waits,
    has_changed,
    holds_loaded,
    lacks_zone,
)
from resources.kinds.window.unit_lookup import units_of
from resources.kinds.window.upstream_loads import loaded_since, position_of
from resources.platform.stores import Stores
from resources.tables.contract.commits import Version
from resources.watermarks.entry import Entry

_NAMED = 5
"""The most windows that an error names."""


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
        return find_waits(dataflow, stores.lineage, stores.log, stores.table, now)
    of_source = _makers(stores, dataflow, dataflow.source.lake_table or "")
    if not any(isinstance(maker.watermark, WindowWatermark) for maker in of_source):
        return find_column_bound(dataflow, of_source, stores.log, stores.table, now)
    column = dataflow.source.row_columns.window or ""
    makers = []
    for maker in of_source:
        _check_zone(stores, dataflow, maker, column)
        names, has_commits = shared_names(dataflow, maker), dataflow.window.refreshes
        makers.append(_maker(stores, maker, state, now, names, has_commits=has_commits))
    for name, column in dataflow.window.wait_for.items():
        for maker in _makers(stores, dataflow, dataflow.inputs[name]):
            _check_zone(stores, dataflow, maker, column)
            makers.append(_maker(stores, maker, state, now, {}))
    return UpstreamTables(tuple(makers), dataflow.zone)


def find_changes(
    stores: Stores, dataflow: Dataflow, state: WindowState, now: datetime
) -> UpstreamTables | None:
    """Return what commits of the table that a dataflow reads have changed; None if they do not matter.

    Starts no Spark. Windows whose rows a retention has deleted there stay as they were loaded.

    Raises:
        NeedsDecision: as :func:`find_source_changes`.
        SourceError: likewise.
    """
    changes = find_source_changes(stores, dataflow, state)
    if changes is None:
        return None
    expired = _expired(stores, dataflow, now)
    return UpstreamTables((), dataflow.zone, expired, changes, is_awaited=False)


def _expired(stores: Stores, dataflow: Dataflow, now: datetime) -> tuple[ExpiredRows, ...]:
    """Return the rows that retentions have taken out of the table that a dataflow reads."""
    columns = frozenset({(dataflow.source.row_columns.window or "").casefold(), WINDOW_START})
    expired = (
        find_expired(stores.log, maker, stores.log.newest(maker.name), now, columns, dataflow.zone)
        for maker in _makers(stores, dataflow, dataflow.source.lake_table or "")
    )
    return tuple(rows for rows in expired if rows is not None)


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

    A window whose upstream lacks a part of it does not count as loaded. One whose upstream has changed
    counts as loaded, and as out of date.
    """
    awaited, (changes, _) = (
        find_awaited(stores, dataflow, state, now),
        _known_changes(stores, dataflow, state, now),
    )
    return _ledger(dataflow, awaited, changes, state, units_of(stores, dataflow), now)


def _known_changes(
    stores: Stores, dataflow: Dataflow, state: WindowState, now: datetime
) -> tuple[UpstreamTables | None, str | None]:
    """Return what commits of the table that is read have changed; or None, and why nothing tells it."""
    try:
        return find_changes(stores, dataflow, state, now), None
    except (NeedsDecision, SourceError) as error:
        return None, error.message


def _ledger(
    dataflow: Dataflow,
    awaited: Waits | UpstreamTables | None,
    changes: UpstreamTables | None,
    state: WindowState,
    units: tuple[str, ...],
    now: datetime,
) -> Ledger:
    definition = dataflow.window.up_to(awaited.reached) if awaited else dataflow.window
    waited_for = awaited.tables(dataflow.zone) if isinstance(awaited, Waits) else awaited
    tables = with_changes(waited_for, changes)
    if tables is None:
        return ledger(definition, state, units, now, dataflow=dataflow.name)
    words = AwaitedWords(AwaitedWindows.of(tables, definition, state, definition.windows(now), now))
    unnamed = ledger(
        definition,
        state,
        units,
        now,
        dataflow=dataflow.name,
        not_ready=words.gaps,
        outdated=words.outdated,
    )
    named_units = [
        replace(unit, gaps=[words.with_names(unit.unit, gap) for gap in unit.gaps]) for unit in unnamed.units
    ]
    return replace(unnamed, units=named_units)


def waiting_error(stores: Stores, dataflow: Dataflow, plan: Plan[Any], then: str) -> UpstreamNotLoaded | None:
    """Return the error of requested windows that a plan leaves out since they wait; None if none wait.

    Args:
        stores: the resources of the project.
        dataflow: the dataflow.
        plan: the plan of the requested windows.
        then: what becomes of the windows, or what to do, as a sentence without a full stop.
    """
    waiting = [skip for skip in plan.skips if skip.waits_for_upstream]
    if not waiting:
        return None
    named = "; ".join(f"{skip.subject} {skip.why}" for skip in waiting[:_NAMED])
    more = f"; and {len(waiting) - _NAMED:,} more" if len(waiting) > _NAMED else ""
    wait, are = ("waits", "is") if len(waiting) == 1 else ("wait", "are")
    return UpstreamNotLoaded(
        f"dataflow {dataflow.name}: {pluralize(len(waiting), 'requested work unit')} {wait}, and {are} not loaded: {named}{more}. {then}",
        choices=[f"strandline run {name}" for name in stores.lineage.upstream_dataflows(dataflow.name)],
    )


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
    stores: Stores,
    maker: Dataflow,
    state: WindowState,
    now: datetime,
    names: Mapping[str, str],
    *,
    has_commits: bool = False,
) -> Maker:
    """Return a dataflow that makes the table, as of its newest entry.

    The entry is read first: what is loaded later is not in its ledger, and counts as loaded since. If the
    commits of its table tell what has changed, nothing does.
    """
    entry = stores.log.newest(maker.name)
    own_state = state_of(WindowState, maker, entry) if entry and entry.kind == "window" else WindowState()
    awaited = find_awaited(stores, maker, own_state, now) if maker.watermark.follows else None
    changes, problem = _known_changes(stores, maker, own_state, now)
    return Maker(
        maker.name,
        maker.table,
        maker.window.up_to(awaited.reached) if awaited else maker.window,
        _ledger(maker, awaited, changes, own_state, units_of(stores, maker), now),
        position_of(entry),
        names,
        () if has_commits else loaded_since(stores.log, maker, entry, state.upstream.get(maker.name)),
        find_expired(stores.log, maker, entry, now, _time_columns(maker), maker.window.zone),
        problem or _problem(stores, maker, entry),
        maker.source.row_columns.window is None,
        _has_fixed_end(maker, awaited),
    )


def _has_fixed_end(maker: Dataflow, awaited: Waits | UpstreamTables | None) -> bool:
    """Return whether a dataflow declares no later windows at any time."""
    if awaited is not None:
        return isinstance(awaited, UpstreamTables) and awaited.has_fixed_end
    return maker.window.time_range.to_floor is None


def _problem(stores: Stores, maker: Dataflow, entry: Entry | None) -> str | None:
    """Return why nothing is known of the table of a dataflow; None if it is the one that its log records."""
    if has_changed(maker, entry):
        return describe_change(maker)
    if entry is not None and not holds_loaded(stores.table(maker), entry):
        return f"it is older than the state of {maker.name}, or another table: `strandline run {maker.name}` shows what to do"
    if (entry is None or entry.table_version is None) and not stores.table(maker).exists():
        return f"{maker.name} has loaded nothing yet"
    return None


def _time_columns(maker: Dataflow) -> frozenset[str]:
    """Return the columns of a window dataflow's table that tell the window of a row, in lower case."""
    return frozenset({(WindowColumns.of(maker).time or WINDOW_START).casefold(), WINDOW_START})


def _check_zone(stores: Stores, reader: Dataflow, maker: Dataflow, column: str) -> None:
    """Refuse another zone than the upstream's if the time of rows has none: it would mean other instants.

    Raises:
        PlanError: code ``other_zone``.
    """
    if maker.window.timezone == reader.window.timezone:
        return
    table = stores.table(maker)
    if lacks_zone(table, column):
        raise PlanError(
            f"dataflow {reader.name}: watermark.timezone: expected {maker.window.timezone}, as in {maker.name}, since the values of"
            f" {describe_type(table, column)} in {maker.table} have no zone; found {reader.window.timezone}",
            code="other_zone",
        )
