"""Decisions that take a watermark no run has come to: an import, and what ``state set`` shares with it (docs/reference/state.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.path.quarantined_files import Quarantine
from partitions.plan import pluralize
from partitions.sentinels import deserialise
from resources.decisions.draft import Draft, DraftBuilder, draft_entry
from resources.decisions.files_in_table import freed_files
from resources.decisions.reasons import IMPORTED
from resources.kinds.contract.decisions import KnowsFiles, NeverGoesBack
from resources.loop.definition_guard import check_form
from resources.platform.opener import Opener
from resources.tables.contract.adopting import adopted_state
from resources.watermarks.entry import Entry, Why


def import_entries(reason: str, lines: Sequence[str]) -> DraftBuilder:
    """The watermark of the newest entry of an export; every file at or below it counts as ingested.

    Raises:
        ConfigurationError: if the text is no export of a dataflow of this kind.
        NeedsDecision: code ``no_rewind``: it is older than what is loaded, and the kind cannot go back.
    """

    def build_draft(platform: Opener, dataflow: Dataflow, last: Entry | None) -> Draft:
        newest = _newest_of(dataflow, lines)
        watermark = platform.rules(dataflow).parse_watermark(json.dumps(newest["watermark"]))
        app_id = str(newest["app_id"]) if last is None and newest.get("app_id") else None
        remark = (IMPORTED, "taken as ingested")
        return taken_over(platform, dataflow, last, "import", reason, watermark, remark, app_id)

    return build_draft


def taken_over(
    platform: Opener,
    dataflow: Dataflow,
    last: Entry | None,
    why: Why,
    reason: str,
    watermark: str,
    remark: tuple[str, str],
    app_id: str | None = None,
    *,
    takes_table: bool = True,
) -> Draft:
    """A watermark that no run has come to. What the source holds up to it is listed once, and counts as dealt with.

    Args:
        platform: the resources.
        dataflow: whose state it is.
        last: the newest entry.
        why: of the entry.
        reason: of the operator.
        watermark: sentinel JSON text.
        remark: what is noted of each of these files; and what is said of all of them.
        app_id: the dataflow's id in the table, if the table tells it.
        takes_table: whether the table as it is now belongs to the state from here on.
    """
    rules = platform.rules(dataflow)
    if isinstance(rules, NeverGoesBack):
        _check_not_behind(platform, dataflow, rules, last, watermark)
    files = rules.files_up_to(deserialise(watermark), above=last) if isinstance(rules, KnowsFiles) else ()
    changes: dict[str, Any] = {"app_id": app_id} if app_id else {}
    if why == "import":
        # The table's rows count now: a reset before must not empty it any more.
        changes["replace_table"] = False
    aside: Quarantine | None = None
    remarks: tuple[str, ...] = ()
    if why == "import" and isinstance(rules, KnowsFiles):
        aside, freed = rules.without_rows(last)
        remarks = (freed_files(freed),) if freed else ()
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
    rows = [(*file.row, remark[0]) for file in files]
    said = f"{remark[1]}, so neither loaded nor late: {pluralize(len(files), 'file')} of the source"
    return Draft(entry, rows, aside, dealt_with=said if files else "", remarks=remarks)


def _check_not_behind(
    platform: Opener, dataflow: Dataflow, rules: NeverGoesBack, last: Entry | None, watermark: str
) -> None:
    """Raise if a watermark lies below what the newest entry, or the newest commit of the table, says is loaded.

    Raises:
        NeedsDecision: code ``no_rewind``; ``definition_changed``: the definition is another one, which the state does not fit.
    """
    if last is not None:
        check_form(dataflow, last, platform.log)
    planning = platform.kind(dataflow).planning
    known = [last.watermark] if last is not None else []
    with suppress(NeedsDecision):  # the table's log tells no state
        adopted = adopted_state(platform.table(dataflow), last.app_id if last else None)
        known += [adopted.state] if adopted and adopted.state else []
    if not all(planning.covers(watermark, other) for other in known):
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
