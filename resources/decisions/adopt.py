"""The decision that takes the watermark from the table (docs/reference/state.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from partitions.column.words import describe_stored_watermark
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision, name_dataflow
from partitions.path.source import SourceFile
from partitions.sentinels import deserialise
from partitions.watermark import is_empty
from resources.decisions.draft import Draft, DraftBuilder, app_id_of, draft_entry
from resources.decisions.files_in_table import HeldRows, held_rows
from resources.decisions.other_names import (
    check_unsure_names,
    other_names,
    with_maybe_renamed,
    with_other_names,
    without_other_names,
)
from resources.decisions.pending_reset import take_back_reset
from resources.decisions.returning_rows import ReturningRows, check_returning_rows, loaded_before
from resources.kinds.contract.decisions import KnowsBounds, KnowsFiles, NeverGoesBack, StateRules
from resources.kinds.contract.lost_rows import (
    DeletedRows,
    LostRows,
    fields_of_counts,
    lost_by_log,
    lost_since_created,
)
from resources.loop.entries import table_fields
from resources.loop.guards.definition import check_watermark_form
from resources.loop.guards.table import check_table
from resources.loop.rows.deletes_of_table import forgotten_conditions
from resources.platform.opener import Opener
from resources.tables.contract.adopting import AdoptableState, adopted_state
from resources.tables.contract.commits import TableCommit
from resources.watermarks.entry import Entry

_STATE_FIELDS = ("since", "replace_until", "modified", "pinned")
"""Fields of an entry, beside its watermark, that decide how the next slice is planned."""


_OF_MISSING_FILES = "deleted rows of files that are missing at the source now come back if their file does"


def adopt(reason: str, deleted: DeletedRows | None = None) -> DraftBuilder:
    """Take the watermark from the table: from its newest commit, else from its rows.

    Files count as ingested by the commit's own entry, if the log still has it. Else those at or below the
    watermark with rows in the table count; all of them if rows do not tell their file. The others are
    late.

    Args:
        reason: the operator's reason.
        deleted: if the log is lost, what becomes of rows that the table may hold no more because others
            deleted them.

    Raises:
        ConfigurationError: there is no reason, or ``deleted`` is ``skip`` for rows above a column; code
            ``other_format``.
        NeedsDecision: code ``nothing_to_adopt``: neither a commit nor rows show a watermark;
            ``state_object_missing``: the watermark of the newest commit lies beside the table, and is
            missing; ``definition_changed``: the watermark does not fit the definition; ``deleted_rows``:
            rows that others deleted may come back, and ``deleted`` does not say what becomes of them;
            ``other_files``: files may be loaded ones under other names, and ``deleted`` does not say so;
            ``tags_expire``.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        target = platform.table(dataflow)
        # Before it is asked for anything: whatever happens to it meanwhile, the next run must see.
        newest_commit = target.tip(app_id_of(platform, dataflow, last)).newest or TableCommit(None)
        adopted = _find_adopted_state(platform, dataflow, last)
        base = _base(platform, dataflow, adopted)
        text = _table_watermark(platform, dataflow, last, adopted)
        rules = platform.rules(dataflow)
        for entry_before in (last, base):
            if entry_before is not None:
                check_watermark_form(dataflow, entry_before, platform.log, platform.folder)
        if text is None:
            raise _nothing_to_adopt(dataflow, rules)
        _check_table_watermark(dataflow, rules, text)
        is_pending = base is not None and base.replace_table  # such as a delete after a reset
        beyond = is_pending or (adopted is not None and adopted.beyond)
        names = other_names(rules, last, text)
        rows = without_other_names(held_rows(rules, last, base, text, beyond=beyond), names)
        kept_rows = take_back_reset(platform, dataflow, base, text, rows.files)
        doubtful = _files_to_ask_about(platform, dataflow, last, adopted, rows)
        returning = _returning_rows(platform, dataflow, base, adopted, rows, doubtful, deleted)
        notes = _check_deleted(dataflow, rows, returning)
        check_unsure_names(dataflow, names, deleted)
        if not notes and (last is None or (adopted is not None and adopted.number > last.number)):
            names = with_maybe_renamed(dataflow, names, rows, deleted)
            rows = without_other_names(rows, names)
        inherited = _inherited_fields(base, adopted, rows.files.replace_until)
        pinned = base.pinned if base else last.pinned if last else None
        inherited["pinned"] = pinned if _has_schema(platform, pinned) else None
        entry = draft_entry(
            platform,
            dataflow,
            last,
            "adopt",
            reason,
            watermark=text,
            takes_table=True,
            **fields_of_counts(target, returning.lost_afterwards),
            **table_fields(dataflow, newest_commit),
            **{**inherited, "replace_table": False, **kept_rows.fields},
        )
        draft = rows.without(returning.skipped_files).draft(entry)
        notes = (*draft.notes, *kept_rows.notes, *notes)
        draft = replace(draft, files=[*draft.files, *returning.skipped], notes=notes)
        return with_other_names(draft, names, deleted)

    return build_draft


def _files_to_ask_about(
    platform: Opener, dataflow: Dataflow, last: Entry | None, adopted: AdoptableState | None, rows: HeldRows
) -> Sequence[SourceFile]:
    """Return files without a row that may have been loaded: others may have deleted their rows.

    What the log knows as never loaded is late, and nobody has to be asked. A log that is older than the table
    does not know that.
    """
    if rows.files.knows_loads or rows.counts is None:
        return ()
    missing = rows.files.missing
    if last is None or (adopted is not None and adopted.number > last.number) or not missing:
        return missing
    return loaded_before(platform.log, dataflow.name, platform.rules(dataflow), last, missing)


def _check_deleted(dataflow: Dataflow, rows: HeldRows, returning: ReturningRows) -> tuple[str, ...]:
    """Return notes on rows that others may have deleted; raise if the answer does not say their fate.

    Raises:
        ConfigurationError: rows above a column, or of files that nothing names, cannot be skipped.
        NeedsDecision: code ``deleted_rows``.
    """
    if returning.answer == "skip" and not returning.can_skip and not returning.lost_rows.are_none:
        why = (
            "nothing tells which files the rows are of"
            if rows.knows_files
            else "rows above a column have no record of their own"
        )
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected --deleted load, found skip: {why}. To count"
            " rows as loaded up to a value, adopt with load, and then set the value",
            choices=(
                f"strandline state adopt {dataflow.name} --deleted load --reason TEXT",
                f"strandline state set {dataflow.name} JSON --reason TEXT",
            ),
        )
    notes = check_returning_rows(dataflow.name, returning, f"strandline state adopt {dataflow.name}")
    return (*notes, _OF_MISSING_FILES) if notes and rows.knows_files else notes


def _returning_rows(
    platform: Opener,
    dataflow: Dataflow,
    base: Entry | None,
    adopted: AdoptableState | None,
    rows: HeldRows,
    doubtful: Sequence[SourceFile],
    deleted: DeletedRows | None,
) -> ReturningRows:
    """Return the rows that others may have deleted and that may come back.

    Deleted rows of files that the source lacks now come back with their file, which nothing names.
    """
    rules, table = platform.rules(dataflow), platform.table(dataflow)
    app_id = adopted.app_id if adopted else None
    in_all, lost_rows = lost_by_log(table, base, app_id), LostRows()
    if rows.counts is not None and not rows.files.knows_loads:
        lost_rows = in_all
        if base is None:
            newest = adopted.number if adopted else 0
            lost_rows = lost_since_created(table, app_id, sum(rows.counts.values()), newest)
        forgotten = forgotten_conditions(table, app_id) if doubtful else ()
        files = tuple(file.path for file in doubtful)
        lost_rows = replace(lost_rows, files=files, forgotten=forgotten)
        if lost_rows.rows is None and not doubtful:
            lost_rows = LostRows()
    elif base is None and isinstance(rules, KnowsBounds) and adopted is not None:
        lost_rows = in_all
    return ReturningRows(lost_rows, doubtful, in_all, deleted, can_skip=bool(doubtful))


def _nothing_to_adopt(dataflow: Dataflow, rules: StateRules) -> NeedsDecision:
    can_set = not dataflow.streams_with_spark
    column = f", or a column {rules.column}," if isinstance(rules, KnowsFiles) else ""
    return NeedsDecision(
        f"dataflow {dataflow.name}: expected a commit of Strandline in table {dataflow.table}{column} that shows how far the table is"
        f" loaded, found none. Run {'`state set` with a watermark of your own, or ' if can_set else ''}`state reset`",
        code="nothing_to_adopt",
        choices=(
            *((f"strandline state set {dataflow.name} JSON --reason TEXT",) if can_set else ()),
            f"strandline state reset {dataflow.name} --reason TEXT",
        ),
    )


def _check_table_watermark(dataflow: Dataflow, rules: StateRules, text: str) -> None:
    """Raise if the table's watermark is of another kind than the definition's, or has other columns.

    Raises:
        NeedsDecision: code ``definition_changed``.
    """
    if is_empty(deserialise(text)) or isinstance(rules, NeverGoesBack):
        return
    try:
        rules.parse_watermark(text)
    except ConfigurationError as error:
        name = dataflow.name
        raise NeedsDecision(
            f"dataflow {name}: expected a watermark of the current definition in table {dataflow.table}, found {describe_stored_watermark(text)}:"
            " its newest commit has another kind of watermark, or other columns. Restore the old definition; or run `state reset --replace`, which"
            f" empties the table first ({error.message})",
            code="definition_changed",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        ) from error


def _inherited_fields(
    base: Entry | None, adopted: AdoptableState | None, replace_until: str | None
) -> dict[str, Any]:
    """Return the fields that an adopted state takes from its commit's entry; without one, the defaults."""
    if base is not None:
        of_state = {name: getattr(base, name) for name in _STATE_FIELDS}
        return of_state | ({"replace_until": replace_until} if replace_until else {})
    fields: dict[str, Any] = {"replace_until": replace_until}
    return fields | ({"app_id": adopted.app_id} if adopted and adopted.app_id else {})


def _has_schema(platform: Opener, pinned: str | None) -> bool:
    """Return whether the log still has the pinned schema, or none is pinned; else the next run pins one."""
    try:
        return pinned is None or bool(platform.log.get_schema(pinned))
    except CorruptWatermark:
        return False


def _find_adopted_state(platform: Opener, dataflow: Dataflow, last: Entry | None) -> AdoptableState | None:
    name = dataflow.name
    try:
        return adopted_state(platform.table(dataflow), last.app_id if last and last.table else None)
    except NeedsDecision as error:
        raise NeedsDecision(
            f"{name_dataflow(name, error.message)} Run `state import`, `state set` or `state reset --replace`",
            code=error.code,
            choices=(
                f"strandline state import {name} FILE --reason TEXT",
                f"strandline state set {name} JSON --reason TEXT",
                f"strandline state reset {name} --replace --reason TEXT",
            ),
        ) from error


def _base(platform: Opener, dataflow: Dataflow, adopted: AdoptableState | None) -> Entry | None:
    """Return the entry of the commit that the table's state comes from, if the log still has it."""
    commit = platform.log.find(dataflow.name, adopted.number) if adopted and adopted.number else None
    return commit if commit and adopted and commit.id == adopted.owner else None


def _table_watermark(
    platform: Opener, dataflow: Dataflow, last: Entry | None, adopted: AdoptableState | None
) -> str | None:
    """Return the watermark from the table: its commit's entry, else the commit, else its rows.

    If others have removed all of these, it is where the first run began. That is empty, unless a partition
    filter narrowed it: by now the filter would skip partitions that were loaded. If the table may hold
    rows that no watermark covers, there is a watermark only if the next load deletes those rows; else
    None.
    """
    rules = platform.rules(dataflow)
    if adopted is None:
        return rules.watermark_from_rows()
    base = _base(platform, dataflow, adopted)
    beyond = adopted.beyond or (adopted.rewound and base is None)
    state = base.watermark if base is not None else adopted.state
    if state is not None and base is None and isinstance(rules, KnowsBounds):
        state = rules.watermark_from_bounds(state)
        if state is None:
            return None
    if state is not None and not beyond:
        return state
    if not rules.replaces_reloaded_rows():
        return None
    since = last.since if last else None
    return state or rules.watermark_from_rows() or since or "{}"


def only_operator_knows(platform: Opener, dataflow: Dataflow, last: Entry | None) -> bool:
    """Return whether state and table do not match, and the table shows no watermark to adopt."""
    try:
        check_table(dataflow, last, platform.table(dataflow))
    except NeedsDecision:
        try:
            return (
                _table_watermark(platform, dataflow, last, _find_adopted_state(platform, dataflow, last))
                is None
            )
        except NeedsDecision:
            return True
    return False
