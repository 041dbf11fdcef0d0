"""Checks that a state or intent was made with the current definition.

A changed definition needs an operator's decision.

See docs/explanation/watermarks.md, Fingerprint.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from partitions.fingerprint import fingerprint, identity
from partitions.fingerprint_changes import FORMS_OF_TABLE, DefinitionChange, changes
from partitions.watermark import is_empty
from resources.connections.places import Place
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.log import WatermarkLog

_SEARCHED_ENTRIES = 20
"""Entries that are looked through for the definition that the newest was made with."""


def check_definition(dataflow: Dataflow, entry: Entry | None, log: WatermarkLog) -> None:
    """Raise if the definition has changed since the entry: a load would read data again, or skip some.

    Raises:
        NeedsDecision: code ``definition_changed``.
    """
    if entry is None or not entry.fingerprint or entry.fingerprint == fingerprint(dataflow):
        return
    raise _refusal(dataflow, entry, changed_parts(dataflow, entry, log) or [])


def check_watermark_form(dataflow: Dataflow, entry: Entry, log: WatermarkLog, folder: Path) -> None:
    """Raise if the current definition cannot use the entry's watermark, or the paths of its loaded files.

    Args:
        dataflow: the dataflow.
        entry: the entry; an empty watermark fits every form, but its loaded files may have other paths.
        log: the log that has it.
        folder: the project's folder, where relative paths start.

    Raises:
        NeedsDecision: code ``definition_changed``.
    """
    changed = [_resolved(change, folder) for change in changed_parts(dataflow, entry, log) or []]
    if is_empty(entry.state()):
        changed = [change for change in changed if change.renames_files and entry.total_rows]
    if changed and not _can_be_taken_over(dataflow, changed):
        raise _refusal(dataflow, entry, changed)


def _resolved(change: DefinitionChange, folder: Path) -> DefinitionChange:
    """Return a change with absolute paths if only these show that one folder lies in the other."""
    is_path = change.name == "source.path" and change.of_files and change.before and change.now
    if not is_path or change.renames_files:
        return change
    roots = (Place.parse(str(path), folder).url for path in (change.before, change.now))
    whole_paths = change._replace(before=next(roots), now=next(roots))
    return whole_paths if whole_paths.renames_files else change


def _refusal(dataflow: Dataflow, entry: Entry, changed: Sequence[DefinitionChange]) -> NeedsDecision:
    difference = (
        f": {'; '.join(map(str, changed))}"
        if changed
        else f" (fingerprint {entry.fingerprint}, now {fingerprint(dataflow)})"
    )
    name = dataflow.name
    keeps = (
        "`state reset`, which keeps the table and loads everything into it again, or "
        if dataflow.keeps_table_in_reset
        else ""
    )
    names = {change.name for change in changed}
    if "target.format" in names and "target.table" not in names:
        # The table that is there takes no state of this definition: a reset goes on once another place is its own.
        reset = f"strandline state reset {name} {'' if keeps else '--replace '}--reason TEXT"
        remedy = (
            "Restore the old definition; or set another target.table, or move this table's folder away, and "
            "load again with `state reset`"
        )
        return _stop(dataflow, entry, difference, remedy, (reset,))
    if names & FORMS_OF_TABLE:
        remedy = (
            "Restore the old definition; or set another target.table; or run `state reset --replace`, "
            "which empties this table and loads all that the source still has"
        )
        return _stop(
            dataflow, entry, difference, remedy, (f"strandline state reset {name} --replace --reason TEXT",)
        )
    resets = f"{keeps}`state reset --replace`, which empties {'it' if keeps else 'the table'} first"
    accept = _can_be_taken_over(dataflow, changed)
    remedy = (
        f"If {'the change is intended' if is_empty(entry.state()) else 'the watermark is still valid'}, "
        f"run `state accept`; otherwise run {resets}"
        if accept
        else f"Restore the old definition; or run {resets}"
    )
    choices = (
        *((f"strandline state accept {name} --reason TEXT",) if accept else ()),
        *((f"strandline state reset {name} --reason TEXT",) if keeps else ()),
        f"strandline state reset {name} --replace --reason TEXT",
    )
    return _stop(dataflow, entry, difference, remedy, choices)


def _stop(
    dataflow: Dataflow, entry: Entry, difference: str, remedy: str, choices: tuple[str, ...]
) -> NeedsDecision:
    return NeedsDecision(
        f"dataflow {dataflow.name}: its definition has changed since entry {entry.number}{difference}. "
        f"{remedy}",
        code="definition_changed",
        choices=choices,
    )


def _can_be_taken_over(dataflow: Dataflow, changed: Sequence[DefinitionChange]) -> bool:
    """Return whether the current definition can use the state; never if Spark streams the dataflow."""
    if dataflow.streams_with_spark:
        return False
    return not any(change.changes_form for change in changed)


def changed_parts(dataflow: Dataflow, entry: Entry, log: WatermarkLog) -> list[DefinitionChange] | None:
    """Return the parts of the definition that changed since an entry; None if the log cannot tell."""
    numbers = (past.number for past in log.history(dataflow.name, _SEARCHED_ENTRIES))
    intents = (log.intent(dataflow.name, number) for number in numbers)
    intent_of_entry = next(
        (intent for intent in intents if intent and intent.fingerprint == entry.fingerprint), None
    )
    if intent_of_entry is None:
        return [] if entry.fingerprint == fingerprint(dataflow) else None
    changed, holds_nothing = (
        changes(intent_of_entry.definition, identity(dataflow), dataflow.target.load),
        is_empty(entry.state()),
    )
    return [change._replace(is_empty=holds_nothing) for change in changed]


def check_intent(dataflow: Dataflow, intent: Intent) -> None:
    """Raise if the definition has changed since an unfinished intent was stored.

    Raises:
        NeedsDecision: code ``intent_changed``.
    """
    now = definition_of(dataflow)
    changed = sorted(key for key in {*intent.definition, *now} if intent.definition.get(key) != now.get(key))
    if changed:
        raise _changed_intent(dataflow, intent, changed)
    check_rules_remain(dataflow, intent)


def check_rules_remain(dataflow: Dataflow, intent: Intent) -> None:
    """Raise if all rules are gone since an unfinished intent was stored.

    Then no table of rejected rows is known. Other changes of rules do not matter: the intent has its own.

    Raises:
        NeedsDecision: code ``intent_changed``.
    """
    if intent.rules and not dataflow.rules:
        raise _changed_intent(dataflow, intent, ["rules"])


def _changed_intent(dataflow: Dataflow, intent: Intent, changed: Sequence[str]) -> NeedsDecision:
    return NeedsDecision(
        f"dataflow {dataflow.name}: slice {intent.number} is unfinished, and the definition has changed "
        f"since it started ({', '.join(changed)}). To abandon the slice, run `state accept`: the next run "
        "plans its work under the new definition. To finish it, restore the old definition and run",
        code="intent_changed",
        choices=(f"strandline state accept {dataflow.name} --reason TEXT", f"strandline run {dataflow.name}"),
    )


def definition_of(dataflow: Dataflow) -> dict[str, object]:
    """Return the parts of a definition that a write depends on, without secrets."""
    target = dataflow.target
    return {
        **identity(dataflow),
        **dataflow.source.reading(),
        "load": target.load,
        "merge_keys": list(target.merge_keys),
        "effective_column": target.effective_column,
        **({"delete_when": target.delete_when} if target.delete_when else {}),
        **({"on_missing": target.on_missing} if target.on_missing else {}),
        **({"keep_tombstones": str(target.keep_tombstones)} if target.keep_tombstones else {}),
        **({"track": list(target.track)} if target.track else {}),
        **({"ignore": list(target.ignore)} if target.ignore else {}),
        **({"insert_only": True} if target.insert_only else {}),
        **({"missing_columns": "keep"} if target.keeps_missing_columns else {}),
        **({"immutable": list(target.immutable)} if target.immutable else {}),
        "replace_by_watermark": target.replace_by_watermark,
        "partition_by": list(target.partition_by),
        "origin_columns": target.origin_columns,
        "transform": dataflow.transform,
        "sql": dataflow.sql,
        "inputs": dict(dataflow.inputs),
    }
