"""The draft of a decision's entry, and the checks that all decisions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol, runtime_checkable

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.fingerprint import fingerprint
from partitions.path.quarantined_files import Quarantine
from partitions.watermark import is_empty
from resources.loop.entries import hash_lost_files, table_fields
from resources.loop.guards.definition import check_definition
from resources.loop.guards.table import check_can_be_taken
from resources.loop.loop import clock
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.commits import TableCommit, TableHead
from resources.tables.contract.table import Table
from resources.tables.registry import refuse_other_formats
from resources.watermarks.deleted_rows import DeleteInForce
from resources.watermarks.entry import Entry, Why, check_reason, new_id, next_entry
from resources.watermarks.log import WatermarkLog


@dataclass(frozen=True)
class Draft:
    """An entry that is not appended yet, with the lists that belong to it.

    Attributes:
        entry: the entry; it names no list yet.
        files: the files that it handles, as rows of path, size, version, modification time and reason.
        quarantine: the whole quarantine after it; None if it stays as it is.
        files_note: what happens to files that no run loads any more, for people; "" if there are none.
        notes: more for people to know before they agree.
        takes_table: whether the decision accepts the table as it is, although it builds on the state,
            because the table shows no other state.
        deletes: all deletes in force after it; None if they stay as they are.
        checksums: checksums of its files by path that the log itself may not know.
    """

    entry: Entry
    files: Sequence[Sequence[Any]] = ()
    quarantine: Quarantine | None = None
    files_note: str = ""
    notes: Sequence[str] = ()
    takes_table: bool = False
    deletes: Sequence[DeleteInForce] | None = None
    checksums: Mapping[str, str] = field(default_factory=dict)


_ACCEPT_SOURCE: frozenset[Why] = frozenset({"accept", "set", "reset", "rewind"})
"""Decisions about what is read next: whoever makes them takes the source as it is."""


@runtime_checkable
class RestoresLog(Protocol):
    """A decision that restores a lost log before its own entry is built on the log."""

    def restore(self, log: WatermarkLog, dataflow: Dataflow) -> None:
        """Store the objects that the log has lost, unless the log has gone another way since."""
        ...


def as_restoring(build_draft: object) -> RestoresLog | None:
    """Return a decision as one that brings back the log; None if it does not."""
    return build_draft if isinstance(build_draft, RestoresLog) else None


DraftBuilder = Callable[[Opener, Dataflow, Entry | None], Draft]
"""Makes the draft on top of the newest entry. Raises what the decision's own function says."""


def draft_entry(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry | None,
    why: Why,
    reason: str,
    *,
    takes_table: bool = False,
    **changes: Any,
) -> Entry:
    """Return the entry after ``last``, under the current definition.

    Args:
        platform: the resources.
        dataflow: the dataflow whose state changes.
        last: the newest entry.
        why: the entry's ``why``.
        reason: the operator's reason.
        takes_table: whether the current table belongs to the state from now on.
        changes: other fields of the entry.

    Raises:
        ConfigurationError: there is no reason; code ``other_format``: the table's place holds a table of
            another format.
        NeedsDecision: code ``tags_expire``; code ``commit_column_missing``.
    """
    check_reason(dataflow.name, reason)
    app_id = changes.get("app_id") or app_id_of(platform, dataflow, last)
    table = platform.table(dataflow)
    tip = table.tip(app_id)
    if tip.newest is None:
        refuse_other_formats(dataflow.target.format, table.place)
    is_emptied = changes.get("replace_table", last is not None and last.replace_table)
    check_can_be_taken(dataflow, tip, needs_commit_column=takes_table and not is_emptied)
    fields: dict[str, Any] = {
        "kind": dataflow.kind,
        "app_id": app_id or new_id(),
        "number": _next_number(platform, dataflow, last, tip, app_id),
        "why": why,
        "reason": reason,
        "fingerprint": fingerprint(dataflow),
    }
    if why in _ACCEPT_SOURCE:
        fields["source"] = None
    if takes_table:
        fields |= _fields_of_table(dataflow, table, tip.newest, app_id)
    entry = next_entry(last, **{**fields, **changes})
    before = None if tip.newest is None else _entry_of_rows(platform, dataflow, last, entry)
    watermark = platform.rules(dataflow).migrate_watermark(entry.watermark, clock(), before)
    return entry.model_copy(update={"watermark": watermark})


def _next_number(
    platform: Opener, dataflow: Dataflow, last: Entry | None, tip: TableHead, app_id: str | None
) -> int:
    """Return a number above the newest entry's and above the highest tag of each of the dataflow's tables.

    An idempotent writer would skip a lower one in silence.
    """
    bad_records = platform.bad_records(dataflow)
    other_tables = [*([bad_records] if bad_records else []), *platform.side_tables(dataflow).values()]
    tags = (table.tip(app_id).highest_tag for table in other_tables)
    return max(last.number if last else 0, tip.highest_tag, *tags) + 1


def _fields_of_table(
    dataflow: Dataflow, table: Table, newest: TableCommit | None, app_id: str | None
) -> dict[str, Any]:
    """Return the fields of an entry that accepts the table as it is, with the files that it lacks."""
    missing = table.head(newest, app_id).missing_files if newest else ()
    return {
        **table_fields(dataflow, newest or TableCommit(None)),
        "new_columns": False,
        "lost_files": hash_lost_files(missing),
        "keyed_by": "",
    }


def _entry_of_rows(platform: Opener, dataflow: Dataflow, last: Entry | None, entry: Entry) -> Entry | None:
    """Return the newest entry that says which windows the table holds after a decision, else None.

    None if only the decision itself says it. A reset that still has to empty the table says nothing about
    rows that the decision keeps. An adopted state says it itself, unless it comes from no commit.
    """
    if last is None or entry.replace_table or (entry.why == "adopt" and not is_empty(entry.state())):
        return None
    entries = chain([last], platform.log.history(dataflow.name))
    describing = next((past for past in entries if not past.replace_table), None)
    if describing is None or describing.table != dataflow.table:
        return None
    return _with_abandoned_rows(platform, dataflow, describing)


def _with_abandoned_rows(platform: Opener, dataflow: Dataflow, entry: Entry) -> Entry:
    """Return the entry, with the state after its abandoned slice if the slice's rows are in the table.

    The rows are there if others have changed the table meanwhile.
    """
    intent = platform.log.intent(dataflow.name, entry.number) if entry.why == "abandon" else None
    if intent is None or not intent.loads_slice:
        return entry
    head = platform.table(dataflow).head(None, intent.app_id)
    commit = head.find_tagged_commit(intent.number)
    is_fence = commit is not None and commit.owner != intent.id
    if head.highest_tag < intent.number or is_fence:
        return entry
    return entry.model_copy(update={"watermark": intent.watermark})


def app_id_of(platform: Opener, dataflow: Dataflow, last: Entry | None) -> str | None:
    """Return the dataflow's id in the table's commits; None if neither log nor table has one.

    If no entry knows the table, the table's own id counts: a dead run may still write under it.
    """
    if last is None or last.table is None:
        with suppress(NeedsDecision):  # only its watermark is lost
            adopted = adopted_state(platform.table(dataflow))
            if adopted and adopted.app_id:
                return adopted.app_id
    return last.app_id if last else None


def require_entry(dataflow: Dataflow, last: Entry | None) -> Entry:
    """Return the newest entry; raise ConfigurationError if there is none."""
    if last is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a state, found none yet. Run `strandline run {dataflow.name}` first"
        )
    return last


def require_current_definition(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Entry:
    """Return the newest entry; raise if there is none, or it was made with another definition.

    Raises:
        ConfigurationError: there is no entry.
        NeedsDecision: code ``definition_changed``.
    """
    last = require_entry(dataflow, last)
    check_definition(dataflow, last, platform.log)
    return last
