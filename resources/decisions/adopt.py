"""The decision that takes the watermark which the table tells (docs/reference/state.md)."""

from __future__ import annotations

from typing import Any

from partitions.column.words import describe_stored_watermark
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision
from partitions.sentinels import deserialise
from partitions.watermark import is_empty
from resources.decisions.draft import Draft, DraftBuilder, app_id_of, draft_entry
from resources.decisions.files_in_table import held_rows
from resources.kinds.contract.decisions import KnowsBounds, KnowsFiles, NeverGoesBack, StateRules
from resources.loop.definition_guard import check_form
from resources.loop.entries import in_table
from resources.loop.table_guard import check_table
from resources.platform.opener import Opener
from resources.tables.contract.adopting import AdoptableState, adopted_state
from resources.tables.contract.commits import TableCommit
from resources.watermarks.entry import Entry

_OF_A_STATE = ("since", "replace_until", "replace_table", "modified", "total_files", "pinned")
"""What an entry says beside its watermark of how the next slice is made."""


def adopt(reason: str) -> DraftBuilder:
    """The watermark that the table tells: its newest commit of Strandline, else the largest path that a row came from.

    The files that count as ingested are those of the commit's own entry, if the log still has it; else those at or below the watermark
    that a row came from, and all at or below it if rows do not tell their file. The others are late.

    Raises:
        NeedsDecision: code ``nothing_to_adopt``: the table tells neither; ``state_object_missing``: the watermark of its newest commit
            lies beside the table, and is gone; ``definition_changed``: a stream's definition is another one, which the state does not fit.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        target = platform.table(dataflow)
        # Before it is asked for anything: whatever happens to it meanwhile, the next run must see.
        seen = target.tip(app_id_of(platform, dataflow, last)).newest or TableCommit(None)
        adopted = _adopted(platform, dataflow, last)
        base = _base(platform, dataflow, adopted)
        text = _table_watermark(platform, dataflow, last, adopted)
        rules = platform.rules(dataflow)
        if last is not None and not is_empty(last.state()):
            check_form(dataflow, last, platform.log)
        if text is None:
            raise _nothing_to_adopt(dataflow, rules)
        _check_form_of(dataflow, rules, text)
        rows = held_rows(rules, last, base, text, beyond=adopted is not None and adopted.beyond)
        kept = _kept(base, adopted, rows.files.replace_until)
        pinned = base.pinned if base else last.pinned if last else None
        kept["pinned"] = pinned if _reads(platform, pinned) else None
        entry = draft_entry(
            platform,
            dataflow,
            last,
            "adopt",
            reason,
            watermark=text,
            takes_table=True,
            total_rows=target.contents.count_rows(),
            **in_table(dataflow, seen),
            **kept,
        )
        return rows.draft(entry)

    return build_draft


def _nothing_to_adopt(dataflow: Dataflow, rules: StateRules) -> NeedsDecision:
    can_set = not dataflow.streams_with_spark
    column = f", or a column {rules.column}," if isinstance(rules, KnowsFiles) else ""
    return NeedsDecision(
        f"dataflow {dataflow.name}: expected a commit of Strandline in table {dataflow.table}{column} to tell how far it is"
        f" loaded; found none. Run {'`state set` to say it yourself, or ' if can_set else ''}`state reset`",
        code="nothing_to_adopt",
        choices=(
            *((f"strandline state set {dataflow.name} JSON --reason TEXT",) if can_set else ()),
            f"strandline state reset {dataflow.name} --reason TEXT",
        ),
    )


def _check_form_of(dataflow: Dataflow, rules: StateRules, text: str) -> None:
    """Raise unless a watermark has the form of the definition: a commit was made with the definition of its time.

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
            f"dataflow {name}: expected the watermark of a definition like this one in table {dataflow.table}, found {describe_stored_watermark(text)}:"
            f" its newest commit was made with another kind of watermark, or other columns. Put the old definition back; or run `state reset"
            f" --replace`, which empties the table first ({error.message})",
            code="definition_changed",
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        ) from error


def _kept(base: Entry | None, adopted: AdoptableState | None, replace_until: str | None) -> dict[str, Any]:
    """What an adopted state takes over from the entry of its commit, if the log still has that."""
    if base is not None:
        of_state = {name: getattr(base, name) for name in _OF_A_STATE}
        return of_state | ({"replace_until": replace_until} if replace_until else {})
    kept: dict[str, Any] = {"replace_table": False, "replace_until": replace_until}
    return kept | ({"app_id": adopted.app_id} if adopted and adopted.app_id else {})


def _reads(platform: Opener, pinned: str | None) -> bool:
    """Whether a pinned schema is still there; without it the next run pins one again."""
    try:
        return pinned is None or bool(platform.log.get_schema(pinned))
    except CorruptWatermark:
        return False


def _adopted(platform: Opener, dataflow: Dataflow, last: Entry | None) -> AdoptableState | None:
    name = dataflow.name
    try:
        return adopted_state(platform.table(dataflow), last.app_id if last and last.table else None)
    except NeedsDecision as error:
        raise NeedsDecision(
            f"dataflow {name}: {error.message} Run `state import`, `state set` or `state reset --replace`",
            code=error.code,
            choices=(
                f"strandline state import {name} FILE --reason TEXT",
                f"strandline state set {name} JSON --reason TEXT",
                f"strandline state reset {name} --replace --reason TEXT",
            ),
        ) from error


def _base(platform: Opener, dataflow: Dataflow, adopted: AdoptableState | None) -> Entry | None:
    """The entry of the commit that a table tells its state with, if the log still has it."""
    commit = platform.log.find(dataflow.name, adopted.number) if adopted and adopted.number else None
    return commit if commit and adopted and commit.id == adopted.owner else None


def _table_watermark(
    platform: Opener, dataflow: Dataflow, last: Entry | None, adopted: AdoptableState | None
) -> str | None:
    """The watermark of the entry of the table's newest commit, else what that commit tells, else the rows; where a first run began, if others have removed all.

    That is empty, unless a partition filter has narrowed it: by now the filter would pass over partitions that were loaded. If the
    table may hold rows that no watermark covers, there is a watermark only if the next load deletes those rows.
    """
    rules = platform.rules(dataflow)
    if adopted is None:
        return rules.watermark_from_rows()
    base = _base(platform, dataflow, adopted)
    beyond = adopted.beyond or (adopted.rewound and base is None)
    state = base.watermark if base is not None else adopted.state
    if state is not None and base is None and isinstance(rules, KnowsBounds):
        state = rules.watermark_from_bounds(state)
    if state is not None and not beyond:
        return state
    if not rules.replaces_reloaded_rows():
        return None
    since = last.since if last else None
    return state or rules.watermark_from_rows() or since or "{}"


def nothing_else_leads_on(platform: Opener, dataflow: Dataflow, last: Entry | None) -> bool:
    """Whether state and table do not belong together, and the table tells no watermark to adopt: the operator's word is all there is."""
    try:
        check_table(dataflow, last, platform.table(dataflow))
    except NeedsDecision:
        try:
            return _table_watermark(platform, dataflow, last, _adopted(platform, dataflow, last)) is None
        except NeedsDecision:
            return True
    return False
