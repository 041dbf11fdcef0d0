"""The ledger of files: the covered range, its partitions, and what is missing below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from partitions.dataflow import Dataflow
from partitions.instants import time_text
from partitions.ledger_bounds import LedgerBounds
from partitions.plan import pluralize
from partitions.sentinels import deserialise, encode
from platform_assets.file_views import late_and_quarantined_files
from platform_assets.kinds.path.words import path_in_words, verified_in_words
from platform_assets.kinds.profile import LedgerPage, LedgerRequest
from resources.kinds.path.partition_ledger import PartitionLedger, partition_ledger
from resources.kinds.path.sweep import Sweep, unhandled
from resources.loop.guards.definition import check_definition
from resources.platform.platform import Platform

_PARTITIONS, _MISSING = 50, 10
"""The most partitions, and missing ranges, of a page."""

ALWAYS_SHOWN = ("files", "rows", "late", "quarantined")
IF_ANY = ("skipped", "duplicates", "waiting", "gone", "changed")
"""Counts of the table; the second only if a partition has some."""


def file_ledger(platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
    """Return what a path watermark covers, by partition, and what is missing below it. Starts no Spark.

    Opens the source only to compare.

    Raises:
        NeedsDecision: as a run would.
    """
    log, name, now = platform.log, dataflow.name, request.now
    bounds = LedgerBounds.parse(request.start, request.end)
    entry = log.newest(name)
    check_definition(dataflow, entry, log)
    sweep = Sweep.read(log, name, entry.era if entry else 0)
    partitions = partition_ledger(platform, dataflow, entry, now, bounds, compare=request.compare)
    covered = partitions.ledger.counts_document(partitions.ledger.covered)
    total_rows = entry.total_rows if entry else 0
    return {
        "dataflow": name,
        "now": now.isoformat(),
        "state_number": entry.number if entry else 0,
        "complete_up_to": None,
        "units": None,
        "covered": {
            "after": encode(deserialise(entry.since)) if entry and entry.since else None,
            "up_to": encode(entry.state()) or None if entry else None,
            "files": covered["files"],
            "rows": total_rows if covered["rows"] is None else covered["rows"],
            "withheld": entry.total_withheld if entry else 0,
        },
        **late_and_quarantined_files(log, entry, unhandled(log, dataflow, entry, now)),
        "verified_up_to": sweep.verified_path,
        "verified_at": sweep.verified_at,
        "expected": dataflow.path.expected,
        **partitions.ledger.as_json(),
        **_origin(partitions),
    }


def _origin(partitions: PartitionLedger) -> dict[str, Any]:
    comparison = partitions.comparison
    return {
        "compared_at": partitions.compared_at,
        "gone": list(comparison.gone_files) if comparison else None,
        "changed": list(comparison.changed) if comparison else None,
        "rows_unknown": partitions.rows_unknown,
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
    partitions = document["partitions"]
    counts = [*ALWAYS_SHOWN, *(name for name in IF_ANY if document["totals"][name])]
    return LedgerPage(
        f"{dataflow.name}: {_covered(document['covered'])}",
        lines,
        commands,
        ("partition", *counts) if partitions else (),
        [
            _row(partition["partition"] or "unknown day", counts, partition)
            for partition in partitions[-_PARTITIONS:]
        ]
        + ([_row("in all", counts, document["totals"])] if len(partitions) > 1 else []),
        [
            *_lines_of_partitions(document),
            *_late_lines(document["late"]),
            *_quarantined_lines(document["quarantined"]),
        ],
        _hidden_partitions(len(partitions)),
    )


def _hidden_partitions(count: int) -> str:
    hidden = count - _PARTITIONS
    if hidden <= 0:
        return ""
    return f"  the last {_PARTITIONS} partitions; {hidden:,} before them (--format csv shows all)"


def _row(name: str, counts: Sequence[str], values: Mapping[str, Any]) -> tuple[str, ...]:
    return name, *("-" if values[count] is None else f"{values[count]:,}" for count in counts)


def _lines_of_partitions(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines about missing partitions, unknown rows, and the comparison with the source."""
    for missing in document["missing"][:_MISSING]:
        yield f"  missing: {_missing_in_words(missing)}"
    yield from _hidden_line(len(document["missing"]) - _MISSING, "missing range")
    if document["rows_unknown"]:
        yield f"  rows are not counted: {document['rows_unknown']}"
    if not document["compared_at"]:
        yield "  not compared with the source (--compare lists it, and shows gone and changed files)"
        return
    yield f"  compared with the source at {time_text(document['compared_at'])}"
    for key in ("gone", "changed"):
        for path in document[key]:
            yield f"  {key}: {path}"
        yield from _hidden_line((document["totals"][key] or 0) - len(document[key]), f"{key} file")


def _missing_in_words(missing: Mapping[str, Any]) -> str:
    group = f"{missing['group']}: " if missing["group"] else ""
    return f"{group}from {missing['start']} to before {missing['end']} ({pluralize(missing['periods'], 'period')})"


def _covered(covered: Mapping[str, Any]) -> str:
    start = path_in_words(covered["after"]) if covered["after"] else "the beginning"
    up_to = path_in_words(covered["up_to"]) if covered["up_to"] else None
    span = f"covered from {start} up to {up_to}" if up_to else "nothing is covered"
    return f"{span}: {pluralize(covered['files'], 'file')}, {pluralize(covered['rows'], 'row')}"


def _late_lines(late: Mapping[str, Any]) -> list[str]:
    lines = [f"  late: {path}" for path in late["paths"]]
    return [*lines, *_hidden_line(late["count"] - len(lines), "late file")]


def _quarantined_lines(quarantined: Mapping[str, Any]) -> list[str]:
    lines = [f"  quarantined: {file['path']}: {file['reason']}" for file in quarantined["files"]]
    return [*lines, *_hidden_line(quarantined["count"] - len(lines), "quarantined file")]


def _hidden_line(hidden: int, noun: str) -> Iterator[str]:
    if hidden > 0:
        yield f"  … and {pluralize(hidden, f'more {noun}')}"
