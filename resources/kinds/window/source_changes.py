"""What the commits of a lake table have changed since the windows over it were read.

See docs/reference/windows.md, Windows that changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision, SourceError
from partitions.intervals import Interval, union
from partitions.log_position import LogPosition
from partitions.window.ledger import UNKNOWN
from partitions.window.source_changes import ChangedStretch, SourceChanges
from partitions.window.state import WindowState
from partitions.window.work_outcomes import OutdatedStretch
from partitions.window.work_unit import WorkUnit
from resources.kinds.registered import unreadable_source
from resources.platform.stores import Stores
from resources.sources.table import TableRows
from resources.sources.table_changes import ChangedTimes
from resources.tables.contract.commit_log import LoggedCommits, ReadPosition, log_position


def find_source_changes(stores: Stores, dataflow: Dataflow, state: WindowState) -> SourceChanges | None:
    """Return what has changed behind a state; None if the commits do not matter. Starts no Spark.

    Args:
        stores: the resources of the project.
        dataflow: the dataflow.
        state: its committed state.

    Raises:
        NeedsDecision: code ``versions_gone`` or ``source_replaced``: the log does not go on where the
            windows were read.
        SourceError: there is no table, or its log cannot be read.
    """
    if not dataflow.window.refreshes:
        return None
    rows = table_rows(stores, dataflow)
    table, newest = rows.commits.newest()
    columns = dataflow.source.row_columns
    position = log_position(rows.commits, table, newest)
    label, fields = dataflow.source.lake_table or "", dataflow.window.unit_fields
    units = {name: column for name, column in columns.units.items() if name in fields}
    names = tuple(units)
    if state.position is None and state.units:
        return SourceChanges(label, position, None, names, dataflow.zone)
    logged = _since(dataflow, rows, state.position, newest) if state.position else None
    stretches: list[ChangedStretch] = []
    if logged is not None and state.units:
        time, types = columns.window or "", rows.types_by_name()
        times = ChangedTimes(rows.commits, table, time, types, units, dataflow.zone)
        try:
            stretches = times.stretches(logged.commits, _loaded(state))
        except NeedsDecision as error:
            raise _log_error(dataflow, state.position, error.message, error.code) from error
    commits = len(logged.commits) if logged else 0
    return SourceChanges(label, position, tuple(stretches), names, dataflow.zone, commits)


def find_outdated(
    stores: Stores, dataflow: Dataflow, state: WindowState, works: Sequence[WorkUnit]
) -> tuple[OutdatedStretch, ...]:
    """Return the work units whose rows have changed in the table since a state's runs read them.

    All of them if nothing tells it; none if the commits do not matter.
    """
    if not dataflow.window.refreshes:
        return ()
    try:
        changes = find_source_changes(stores, dataflow, state)
    except (NeedsDecision, SourceError):
        changes = None
    read_at = state.position.words if state.position else UNKNOWN
    outdated = []
    for work in works:
        noted = [part for part in state.changed.get(work.unit, ()) if _meets(part[0], part[1], work)]
        changed = changes is None or any(
            _meets(start, end, work) for start, end in changes.changed(work.unit)
        )
        if noted or changed:
            words = noted[0][2] if noted and len(noted[0]) > 2 else read_at
            outdated.append(OutdatedStretch(work.unit, work.start or 0, work.end or 0, words))
    return tuple(outdated)


def _meets(start: int, end: int, work: WorkUnit) -> bool:
    return start < (work.end or 0) and (work.start or 0) < end


def table_rows(stores: Stores, dataflow: Dataflow) -> TableRows:
    """Return the lake table that a dataflow reads.

    Raises:
        ConfigurationError: it reads something else.
    """
    source = stores.source(dataflow)
    if not isinstance(source, TableRows):
        raise unreadable_source(dataflow)
    return source


def _since(dataflow: Dataflow, rows: TableRows, position: LogPosition, newest: ReadPosition) -> LoggedCommits:
    try:
        logged = rows.commits.since(ReadPosition.of(position), newest)
    except NeedsDecision as error:
        raise _log_error(dataflow, position, error.message, error.code) from error
    if (other := logged.other_table(position)) is None:
        return logged
    expected = f"expected table {dataflow.source.lake_table} as it was read, found {other}"
    raise _log_error(dataflow, position, expected, "source_replaced")


def _log_error(dataflow: Dataflow, position: LogPosition | None, message: str, code: str) -> NeedsDecision:
    """Return the error for a log that does not tell what has changed, with the commands that help."""
    name = dataflow.name
    read_at = f" (windows are read at {position.words})" if position else ""
    return NeedsDecision(
        f"dataflow {name}: {message}{read_at}. So nothing tells which windows have changed (refresh: changed), and nothing was read. Let the"
        " next runs load all loaded windows again with `state accept`, or empty the table and load it from the beginning with"
        " `state reset --replace`",
        code=code,
        choices=(
            f"strandline state accept {name} --reason TEXT",
            f"strandline state reset {name} --replace --reason TEXT",
        ),
    )


def _loaded(state: WindowState) -> list[Interval]:
    """Return the stretches that are loaded of any unit."""
    intervals = (interval for of_unit in state.units.values() for interval in of_unit)
    return union(sorted((interval[0], interval[1]) for interval in intervals))
