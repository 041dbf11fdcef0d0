"""Decisions that take a watermark from outside: ``state import``, and shared parts of ``state set``.

See docs/reference/state.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.path.quarantined_files import Quarantine
from partitions.plan import pluralize
from partitions.sentinels import deserialise
from resources.decisions.draft import Draft, DraftBuilder, draft_entry
from resources.decisions.files_in_table import released_note
from resources.decisions.reasons import IMPORTED
from resources.kinds.contract.decisions import KnowsFiles, NeverGoesBack
from resources.loop.definition_guard import check_watermark_form
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.watermarks.deleted_rows import DeleteInForce
from resources.watermarks.entry import Entry, Why


def import_entries(reason: str, lines: Sequence[str]) -> DraftBuilder:
    """Take the watermark of the newest entry of an export; every file at or below it counts as ingested.

    Raises:
        ConfigurationError: the text is no export of a dataflow of this kind.
        NeedsDecision: code ``no_rewind``: it is older than the loaded state, and the kind cannot go back.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        newest = _newest_of(dataflow, lines)
        watermark = platform.rules(dataflow).parse_watermark(json.dumps(newest["watermark"]))
        app_id = str(newest["app_id"]) if last is None and newest.get("app_id") else None
        labels = (IMPORTED, "taken as ingested")
        draft = taken_over(platform, dataflow, last, "import", reason, watermark, labels, app_id)
        return replace(draft, deletes=[DeleteInForce(**delete) for delete in newest.get("deletes") or ()])

    return build_draft


def taken_over(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry | None,
    why: Why,
    reason: str,
    watermark: str,
    labels: tuple[str, str],
    app_id: str | None = None,
    *,
    takes_table: bool = True,
) -> Draft:
    """Return the draft of a watermark from outside. The source's files up to it are listed as handled.

    Args:
        platform: the resources.
        dataflow: the dataflow whose state changes.
        last: the newest entry.
        why: the entry's ``why``.
        reason: the operator's reason.
        watermark: sentinel JSON text.
        labels: the reason that is stored with each of these files, and how people are told about all of
            them.
        app_id: the dataflow's id in the table, if the export has it.
        takes_table: whether the current table belongs to the state from now on.
    """
    rules = platform.rules(dataflow)
    if isinstance(rules, NeverGoesBack):
        _check_not_behind(platform, dataflow, rules, last, watermark)
    files = rules.files_up_to(deserialise(watermark), above=last) if isinstance(rules, KnowsFiles) else ()
    changes: dict[str, Any] = {"app_id": app_id} if app_id else {}
    quarantine: Quarantine | None = None
    notes: tuple[str, ...] = ()
    if why == "import":
        # The table's rows count now: a reset before must not empty it any more.
        changes["replace_table"] = False
        if isinstance(rules, KnowsFiles):
            quarantine, released = rules.quarantine_without_rows(last)
            notes = (released_note(released),) if released else ()
            changes["quarantine"] = None
    entry = draft_entry(
        platform,
        dataflow,
        last,
        why,
        reason,
        watermark=watermark,
        takes_table=takes_table,
        total_rows=platform.table(dataflow).contents.count_rows(),
        **changes,
    )
    rows = [(*file.row, labels[0]) for file in files]
    files_note = f"{labels[1]}, so neither loaded nor late: {pluralize(len(files), 'file')} of the source"
    return Draft(entry, rows, quarantine, files_note=files_note if files else "", notes=notes)


def _check_not_behind(
    platform: Opener, dataflow: Dataflow, rules: NeverGoesBack, last: Entry | None, watermark: str
) -> None:
    """Raise if a watermark lies below the newest entry's, or below the table's newest commit's.

    Raises:
        NeedsDecision: code ``no_rewind``; ``definition_changed``: the definition no longer fits the state.
    """
    if last is not None:
        check_watermark_form(dataflow, last, platform.log)
    planning = platform.kind(dataflow).planning
    watermarks = [last.watermark] if last is not None else []
    with suppress(NeedsDecision):  # the table's log tells no state
        adopted = adopted_state(platform.table(dataflow), last.app_id if last else None)
        watermarks += [adopted.state] if adopted and adopted.state else []
    if not all(planning.covers(watermark, known_watermark) for known_watermark in watermarks):
        rules.check_rewind()


def _newest_of(dataflow: Dataflow, lines: Sequence[str]) -> dict[str, Any]:
    try:
        entries = [json.loads(line) for line in lines if line.strip()]
        newest: dict[str, Any] = max(entries, key=lambda entry: int(entry["number"]))
        kind, _ = newest["kind"], newest["watermark"]
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected the lines of `strandline state export`, each an entry as JSON, found something else"
            f" ({type(error).__name__}: {error})"
        ) from error
    if kind != dataflow.kind:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected entries of kind {dataflow.kind}, found {kind}"
        )
    return newest
