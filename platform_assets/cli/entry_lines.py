"""Entries of a state, their intents and differences, as lines for people."""

from __future__ import annotations

from typing import Any

import click

from partitions.dataflow import Dataflow
from partitions.instants import time_text
from partitions.plan import pluralize
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import TellsReachOfEntry
from resources.loop.rows.withheld import withheld_in_words
from resources.watermarks.entry import DELETES, Entry


def print_entries(entries: list[Entry], full: bool = False, dataflow: Dataflow | None = None) -> None:
    """Print entries for people, a line each; the dataflow's definition may tell more of their watermarks."""
    if not entries:
        click.echo("no entry: nothing was loaded yet, or the state was lost (a run shows which)")
    for entry in entries:
        reason = f" ({entry.reason})" if entry.reason else ""
        watermark = entry.watermark if full else _watermark_in_words(entry, dataflow)
        click.echo(
            f"{entry.number:>6}  {time_text(entry.time)}  {entry.why}{reason}  {_amounts_in_words(entry)}"
            f"  {watermark}{_engine_in_words(entry)}"
        )


def _watermark_in_words(entry: Entry, dataflow: Dataflow | None) -> str:
    if entry.is_of_own_code:
        return entry.watermark
    profile = PROFILES[entry.kind]
    is_its_own = dataflow is not None and profile_of(dataflow) is profile
    if dataflow is not None and is_its_own and isinstance(profile, TellsReachOfEntry):
        return profile.watermark_of_entry(dataflow, entry)
    return profile.entry_watermark(entry)


def _amounts_in_words(entry: Entry) -> str:
    """Return how much an entry has loaded, deleted and withheld; "" of a watermark without rows."""
    if entry.is_of_own_code:
        return ""
    if entry.why in DELETES:
        return f"{pluralize(entry.deleted, 'row')} deleted where {entry.predicate}"
    if entry.why == "forget":
        return f"where {entry.predicate}"
    quarantined = f"{entry.quarantined} quarantined" if entry.quarantined else ""
    profile = PROFILES[entry.kind]
    parts = (
        pluralize(entry.rows, "row"),
        f"{entry.deleted:,} deleted" if entry.deleted else "",
        profile.entry_amount(entry),
        quarantined,
        withheld_in_words(entry.withheld),
        f"{entry.rejected:,} rejected" if entry.rejected else "",
    )
    return ", ".join(filter(None, parts))


def _engine_in_words(entry: Entry) -> str:
    """Return which engine made an entry's commit, and why; "" if Strandline did."""
    by_engine = entry.committed_by is not None and entry.committed_by.startswith("Spark")
    return f"  (by {entry.committed_by})" if by_engine else ""


def print_intents(documents: list[dict[str, Any]], entries: list[Entry], dataflow: Dataflow) -> None:
    """Print entries, each with its intent below it; an unfinished intent has no entry."""
    by_number = {entry.number: entry for entry in entries}
    for document in documents:
        if entry := by_number.get(document["number"]):
            print_entries([entry], dataflow=dataflow)
        else:
            click.echo(f"{document['number']:>6}  unfinished {document['why']}")
        if intent := document["intent"]:
            version = intent["table_version"]
            click.echo(
                f"        intended {time_text(intent['time'])} by process {intent['holder']['pid']} on {intent['holder']['host']}:"
                f" {pluralize(intent['files'], 'file')}, {'no table yet' if version is None else f'table version {version}'}"
            )


def print_diff(document: dict[str, Any], before: str, after: str) -> None:
    """Print each change; parts of a watermark that are not single values appear in words."""
    click.echo(f"entry {document['from']} -> entry {document['to']}")
    has_printed = False
    for name, change in document["changed"].items():
        if name.startswith("watermark.") and any(isinstance(value, list) for value in change.values()):
            if not has_printed:
                click.echo(f"  watermark: {before} -> {after}")
            has_printed = True
        else:
            click.echo(f"  {name}: {_in_words(change['before'])} -> {_in_words(change['after'])}")


def _in_words(value: Any) -> str:
    """Return a value for people: the value inside a sentinel, the items of a list."""
    match value:
        case _ if value is None or value in ([], {}):
            return "none"
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(_in_words, value))
        case dict() if len(value) == 1 and next(iter(value)).startswith("__"):
            return _in_words(next(iter(value.values())))
        case dict():
            return ", ".join(f"{name} {_in_words(inner)}" for name, inner in value.items())
        case "":
            return "an empty text"
    return str(value)
