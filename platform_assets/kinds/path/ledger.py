"""The ledger of files: the range that a path watermark covers, and what is missing below it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.plan import pluralize
from partitions.sentinels import deserialise, encode
from platform_assets.file_views import late_and_quarantined_files
from platform_assets.kinds.path.words import path_in_words, verified_in_words
from platform_assets.kinds.profile import LedgerPage
from resources.kinds.path.sweep import Sweep, unhandled
from resources.loop.definition_guard import check_definition
from resources.platform.platform import Platform


def file_ledger(platform: Platform, dataflow: Dataflow, now: datetime) -> dict[str, Any]:
    """Return what a path watermark covers and what is missing below it. Starts no Spark.

    Opens no source.

    Raises:
        NeedsDecision: as a run would.
    """
    log, name = platform.log, dataflow.name
    entry = log.newest(name)
    check_definition(dataflow, entry, log)
    sweep = Sweep.read(log, name, entry.era if entry else 0)
    return {
        "dataflow": name,
        "now": now.isoformat(),
        "complete_up_to": None,
        "units": None,
        "covered": {
            "after": encode(deserialise(entry.since)) if entry and entry.since else None,
            "up_to": encode(entry.state()) or None if entry else None,
            "files": entry.total_files if entry else 0,
            "rows": entry.total_rows if entry else 0,
        },
        **late_and_quarantined_files(log, entry, unhandled(log, dataflow, entry, now)),
        "verified_up_to": sweep.verified_path,
        "verified_at": sweep.verified_at,
    }


def file_ledger_page(
    dataflow: Dataflow, document: Mapping[str, Any], why_none_is_late: str | None
) -> LedgerPage:
    """Return the ledger of files for people.

    Args:
        dataflow: the definition.
        document: its ledger in the public JSON form.
        why_none_is_late: why no file of this dataflow can be late; None if a file can be late.
    """
    lines, commands = [], []
    if document["verified_at"]:
        lines = [f"  {verified_in_words(document['verified_up_to'], document['verified_at'])}"]
    elif why_none_is_late:
        lines = [f"  {why_none_is_late}"]
    else:
        lines = ["  not verified yet: the sweep has not finished a round. Advance it one step:"]
        commands = [f"strandline late {dataflow.name}"]
    files = [*_late_lines(document["late"]), *_quarantined_lines(document["quarantined"])]
    return LedgerPage(f"{dataflow.name}: {_covered(document['covered'])}", lines, commands, more_lines=files)


def _covered(covered: Mapping[str, Any]) -> str:
    start = path_in_words(covered["after"]) if covered["after"] else "the beginning"
    up_to = path_in_words(covered["up_to"]) if covered["up_to"] else None
    span = f"covered from {start} up to {up_to}" if up_to else "nothing is covered"
    return f"{span}: {pluralize(covered['files'], 'file')}, {pluralize(covered['rows'], 'row')}"


def _late_lines(late: Mapping[str, Any]) -> list[str]:
    lines = [f"  late: {path}" for path in late["paths"]]
    return lines + _hidden_line(late["count"] - len(lines), "late file")


def _quarantined_lines(quarantined: Mapping[str, Any]) -> list[str]:
    lines = [f"  quarantined: {file['path']}: {file['reason']}" for file in quarantined["files"]]
    return lines + _hidden_line(quarantined["count"] - len(lines), "quarantined file")


def _hidden_line(hidden: int, noun: str) -> list[str]:
    return [f"  … and {pluralize(hidden, f'more {noun}')}"] if hidden > 0 else []
