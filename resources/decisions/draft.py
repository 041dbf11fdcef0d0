"""What all decisions share: the draft of an entry, and what it needs of the newest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.fingerprint import fingerprint
from partitions.path.quarantined_files import Quarantine
from partitions.watermark import is_empty
from resources.loop.definition_guard import check_definition
from resources.loop.entries import in_table, lost_files
from resources.loop.loop import clock
from resources.loop.table_guard import expiring
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.tables.contract.commits import TableCommit
from resources.tables.registry import refuse_other_formats
from resources.watermarks.entry import Entry, Why, new_id, next_entry


@dataclass(frozen=True)
class Draft:
    """An entry that is not appended yet, and the lists that go with it.

    Attributes:
        entry: names no list yet.
        files: what it deals with, as rows of path, size, version, modification time and reason.
        quarantine: all files in quarantine after it; None leaves them as they are.
        dealt_with: what becomes of files that no run loads any more, for people; "" if a run may.
        remarks: what else there is to know before it is decided, for people.
        takes_table: whether it takes the table as it is, although it builds on the state: there is nothing else to take.
    """

    entry: Entry
    files: Sequence[Sequence[Any]] = ()
    quarantine: Quarantine | None = None
    dealt_with: str = ""
    remarks: Sequence[str] = ()
    takes_table: bool = False


_TAKES_SOURCE: frozenset[Why] = frozenset({"accept", "set", "reset", "rewind"})
"""Decisions about what is read next: whoever makes them takes the source as it is."""

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
    """The entry after ``last``, under the definition as it is now.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        last: the newest entry.
        why: of the entry.
        reason: of the operator.
        takes_table: whether the table as it is now belongs to the state from here on.
        changes: other fields of the entry.

    Raises:
        ConfigurationError: if there is no reason; code ``other_format``: there is no table, but one of another format, which no decision changes.
        NeedsDecision: code ``tags_expire``.
    """
    if not reason.strip():
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a reason, which stays in the log, found none"
        )
    app_id = changes.get("app_id") or app_id_of(platform, dataflow, last)
    table, aside = platform.table(dataflow), platform.bad_records(dataflow)
    beside = [*([aside] if aside else []), *platform.side_tables(dataflow).values()]
    tip = table.tip(app_id)
    if tip.newest is None:
        refuse_other_formats(dataflow.target.format, table.place)
    if tip.tags_expire:
        raise expiring(dataflow, tip)
    decided: dict[str, Any] = {
        "kind": dataflow.kind,
        "app_id": app_id or new_id(),
        # Above the last tags of the tables, too: an idempotent writer would skip the next write in silence.
        "number": max(
            last.number if last else 0, tip.highest_tag, *(table.tip(app_id).highest_tag for table in beside)
        )
        + 1,
        "why": why,
        "reason": reason,
        "fingerprint": fingerprint(dataflow),
    }
    if why in _TAKES_SOURCE:
        decided["source"] = None
    if takes_table:
        missing = table.head(tip.newest, app_id).missing_files if tip.newest else ()
        decided |= {
            **in_table(dataflow, tip.newest or TableCommit(None)),
            "new_columns": False,
            "lost_files": lost_files(missing),
            "keyed_by": "",
        }
    entry = next_entry(last, **{**decided, **changes})
    before = None if tip.newest is None else _in_table(platform, dataflow, last, entry)
    watermark = platform.rules(dataflow).migrate_watermark(entry.watermark, clock(), before)
    return entry.model_copy(update={"watermark": watermark})


def _in_table(platform: Opener, dataflow: Dataflow, last: Entry | None, entry: Entry) -> Entry | None:
    """The newest entry that says which windows the table holds after a decision; None if only the decision itself says it.

    A reset that is to empty the table, and has not yet, says nothing of the rows that are there if the decision keeps them. A state that is
    adopted says it itself, unless no commit has told it.
    """
    if last is None or entry.replace_table or (entry.why == "adopt" and not is_empty(entry.state())):
        return None
    entries = chain([last], platform.log.history(dataflow.name))
    telling = next((past for past in entries if not past.replace_table), None)
    if telling is None or telling.table != dataflow.table:
        return None
    return _with_given_up_rows(platform, dataflow, telling)


def _with_given_up_rows(platform: Opener, dataflow: Dataflow, entry: Entry) -> Entry:
    """The entry, with the state after a slice that was given up although its rows are in the table: others had changed the table beneath it."""
    intent = platform.log.intent(dataflow.name, entry.number) if entry.why == "abandon" else None
    if intent is None or intent.is_decision:
        return entry
    head = platform.table(dataflow).head(None, intent.app_id)
    commit = head.find_tagged_commit(intent.number)
    is_fence = commit is not None and commit.owner != intent.id
    if head.highest_tag < intent.number or is_fence:
        return entry
    return entry.model_copy(update={"watermark": intent.watermark})


def app_id_of(platform: Opener, dataflow: Dataflow, last: Entry | None) -> str | None:
    """The dataflow's id in the table. If no entry knows the table, the table tells: a run that died may still write under the id there."""
    if last is None or last.table is None:
        with suppress(NeedsDecision):  # only its watermark is lost
            adopted = adopted_state(platform.table(dataflow))
            if adopted and adopted.app_id:
                return adopted.app_id
    return last.app_id if last else None


def require_entry(dataflow: Dataflow, last: Entry | None) -> Entry:
    """The newest entry.

    Raises:
        ConfigurationError: if there is none.
    """
    if last is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: there is no state yet, so run `strandline run {dataflow.name}` first"
        )
    return last


def require_current_definition(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Entry:
    """The newest entry, made with the definition as it is now: only such a one may be built on without a word about it.

    Raises:
        ConfigurationError: if there is none.
        NeedsDecision: code ``definition_changed``.
    """
    last = require_entry(dataflow, last)
    check_definition(dataflow, last, platform.log)
    return last
