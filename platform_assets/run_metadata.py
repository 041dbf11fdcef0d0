"""The metadata of a run's materialisation, with numbers that the run itself measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.commands import commands_with_environment, with_environment
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.path.quarantined_files import Quarantine
from partitions.stream.operators import EPOCH
from platform_assets.kinds import PROFILES, profile_of
from platform_assets.kinds.profile import CountsRowsSetAside, KindProfile, PlanRow
from platform_assets.schema_views import typed_columns
from platform_assets.words import in_words, of_outcome_in_words, stored_in_words
from resources.connections.places import Place
from resources.outcome import Outcome
from resources.tables.contract.commits import TaggedCommit
from resources.tables.contract.contents import TableContents
from resources.watermarks.entry import Entry

_SHOWN = 100

_COLUMN_DESCRIPTIONS = {
    "_source_file": "The file, or other source, that the row comes from.",
    "_ingested_at": "The start of the run that loaded the row.",
    "_run_id": "The run that loaded the row.",
    EPOCH: "The number of the epoch that emitted the row.",
}
"""Descriptions of the columns that Strandline adds to each row."""

_MAX_ROWS = 2**31
"""Dagster shows no larger row count."""


def table_metadata(
    dataflow: Dataflow,
    outcome: Outcome,
    place: Place,
    columns: Sequence[Mapping[str, str]] = (),
    size: int | None = None,
    *,
    env: str | None = None,
) -> dict[str, Any]:
    """Return the metadata of a run's table.

    Args:
        dataflow: the definition.
        outcome: the outcome of the run.
        place: the place of the table.
        columns: the table's columns with name and type; empty to show none.
        size: bytes of the table's data files; None if unknown.
        env: the environment, for commands.
    """
    profile = profile_of(dataflow)
    metadata: dict[str, Any] = {
        "status": outcome.status,
        "rows": outcome.rows,
        **profile.amounts(outcome),
        "slices": len(outcome.committed),
        "seconds": round(outcome.seconds, 3),
        **_watermarks(dataflow, outcome),
        "state_number": outcome.newest.number if outcome.newest else 0,
        "plan": _plan_table(outcome, profile),
        "table": MetadataValue.path(str(place)),
    }
    if outcome.deleted:
        metadata["rows_deleted"] = outcome.deleted
    if outcome.withheld:
        metadata["rows_withheld"] = outcome.withheld
    if outcome.rejected:
        metadata["rows_rejected"] = outcome.rejected
    if outcome.newest and outcome.newest.modified is not None:
        metadata["lag_seconds"] = lag_seconds(outcome.newest, datetime.now(UTC))
    if outcome.newest and outcome.newest.table_version is not None:
        metadata["table_version"] = outcome.newest.table_version
    if writers := dict.fromkeys(
        commit.entry.committed_by for commit in outcome.committed if commit.entry.committed_by
    ):
        metadata["committed_by"] = "; ".join(writers)
    if outcome.warnings:
        metadata["warnings"] = MetadataValue.md("\n".join(f"- {warning}" for warning in outcome.warnings))
    if outcome.error is not None:
        metadata |= error_metadata(outcome.error.message, outcome.error.choices, env)
    return metadata | _dagster_table_metadata(dataflow, outcome, columns, size)


def stored_metadata(contents: TableContents, commit: TaggedCommit, place: Place) -> dict[str, Any]:
    """Return the metadata of what an asset of the user's own has stored.

    Args:
        contents: the contents of its table.
        commit: the commit of the run.
        place: the place of the table.
    """
    metadata: dict[str, Any] = {
        "rows": commit.rows,
        "table": MetadataValue.path(str(place)),
        "table_version": commit.version,
    }
    if commit.committed_by is not None:
        metadata["committed_by"] = commit.committed_by
    # The rows are stored: a run does not fail because its table's facts cannot be read.
    with suppress(StrandlineError):
        columns, rows, size = typed_columns(contents.schema()), contents.rows_in_log(), contents.count_bytes()
        return metadata | _dagster_metadata(rows, columns, size)
    return metadata


def error_metadata(message: str, choices: Sequence[str], env: str | None) -> dict[str, Any]:
    """Return an error's message as metadata, and the commands that help; they name the environment."""
    lines = "\n".join(f"- `{with_environment(choice, env)}`" for choice in choices)
    return {"error": commands_with_environment(message, env)} | (
        {"what_to_do": MetadataValue.md(lines)} if lines else {}
    )


def _dagster_table_metadata(
    dataflow: Dataflow, outcome: Outcome, columns: Sequence[Mapping[str, str]], size: int | None
) -> dict[str, Any]:
    """Return rows, size and columns under Dagster's own keys; nothing if the run committed nothing."""
    if not outcome.committed or outcome.newest is None:
        return {}
    return {**_dagster_metadata(None, columns, size), **rows_metadata(dataflow, outcome.newest)}


def _dagster_metadata(
    rows: int | None, columns: Sequence[Mapping[str, str]], size: int | None
) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    if rows is not None and rows < _MAX_ROWS:
        metadata["dagster/row_count"] = rows
    if size is not None:
        metadata["dagster/size_bytes"] = size
    if columns:
        described = [
            TableColumn(name, column["type"], _COLUMN_DESCRIPTIONS.get(name))
            for column in columns
            if (name := column["name"])
        ]
        metadata["dagster/column_schema"] = TableSchema(described)
    return metadata


def rows_metadata(dataflow: Dataflow, entry: Entry) -> Mapping[str, Any]:
    """Return the rows of the table after an entry under Dagster's own key; nothing if they are not known."""
    # Others load rows of a shared table, too.
    return _dagster_metadata(None if dataflow.target.shared else entry.total_rows, (), None)


def _watermarks(dataflow: Dataflow, outcome: Outcome) -> dict[str, Any]:
    """Return the watermarks before, as read, and after the run: in words, and together as JSON."""
    profile = profile_of(dataflow)
    watermarks = {"before": outcome.before, "effective": outcome.effective, "after": outcome.after}
    metadata: dict[str, Any] = {
        f"watermark_{name}": of_outcome_in_words(dataflow.kind, outcome, watermark)
        for name, watermark in watermarks.items()
    }
    documents = {name: profile.watermark_document(watermark) for name, watermark in watermarks.items()}
    if None not in documents.values():
        metadata["watermark_values"] = MetadataValue.json(documents)
    return metadata


def chunks_metadata(reports: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metadata of a replay's chunks in their present state."""
    loaded_chunks = [report for report in reports if report["status"] not in ("pending", "failed")]
    return {
        "chunks": _chunk_table(reports),
        "chunks_done": len(loaded_chunks),
        "chunks_in_all": len(reports),
        "rows": sum(report["rows"] for report in reports),
    }


def _chunk_table(reports: Sequence[Mapping[str, Any]]) -> MetadataValue[Any]:
    """Return a replay's chunks as a table: the newest loaded ones, then those not loaded."""
    unloaded = [report for report in reports if report["status"] in ("failed", "pending")]
    loaded = [report for report in reports if report not in unloaded]
    visible_reports = [*loaded[-(_SHOWN // 2) :], *unloaded][:_SHOWN]
    records = [
        TableRecord(
            {
                "from": _bound(report["lower"]),
                "to": _bound(report["upper"]),
                "status": report["status"],
                "rows": report["rows"],
                "error": report["error"] or "",
            }
        )
        for report in visible_reports
    ]
    columns = [TableColumn(name, "int" if name == "rows" else "string") for name in ("from", "to", "status", "rows", "error")]  # fmt: skip
    return MetadataValue.table(records, TableSchema(columns))


def _bound(value: Any) -> str:
    return str(next(iter(value.values()))) if isinstance(value, dict) else str(value)


def watermark_metadata(entry: Entry | None, quarantine: Quarantine) -> dict[str, Any]:
    """Return the metadata of the watermark's output: an entry and its files in quarantine."""
    if entry is None:
        return {"state_number": 0, "watermark": in_words(None, None)}
    return {
        "state_number": entry.number,
        "watermark": stored_in_words(entry.kind, entry.watermark),
        **_document_of(entry),
        "why": entry.why,
        "appended": entry.time,
        "total_rows": entry.total_rows,
        "total_files": entry.total_files,
        **({"total_withheld": entry.total_withheld} if entry.total_withheld else {}),
        **_quarantine_counts(entry, quarantine),
        **({"quarantine": _quarantine_table(quarantine)} if quarantine.waiting else {}),
    }


def _quarantine_counts(entry: Entry, quarantine: Quarantine) -> dict[str, int]:
    """Return the number of files in quarantine; for a stream its late and quarantined rows.

    A stream has no files in quarantine. Its rows count from the start, and only counts above 0 are
    returned.
    """
    profile = PROFILES[entry.kind]
    if not isinstance(profile, CountsRowsSetAside):
        return {"in_quarantine": len(quarantine.waiting)}
    with suppress(StrandlineError):
        late, quarantined = profile.rows_set_aside(entry)
        counts = {"late_rows": late, "quarantined_rows": quarantined}
        return {name: rows for name, rows in counts.items() if rows}
    return {}


def _document_of(entry: Entry) -> dict[str, Any]:
    """Return an entry's watermark as JSON metadata; empty if its kind has no readable values.

    Also empty if the stored text cannot be read.
    """
    with suppress(StrandlineError):  # an operator must see such a state to decide about it
        document = PROFILES[entry.kind].watermark_document(entry.state())
        return {} if document is None else {"watermark_values": MetadataValue.json(document)}
    return {}


def lag_seconds(entry: Entry, now: datetime) -> float | None:
    """Return the age in seconds of the newest committed file; None if unknown.

    The file's time comes from the store's clock, ``now`` from this machine's.
    """
    return None if entry.modified is None else round(now.timestamp() - entry.modified / 1000, 3)


def _quarantine_table(quarantine: Quarantine) -> MetadataValue:
    """Return the first hundred files in quarantine, with the reasons."""
    records = [
        TableRecord({"file": file.file.path, "reason": file.reason}) for file in quarantine.waiting[:_SHOWN]
    ]
    return MetadataValue.table(records, TableSchema([TableColumn("file"), TableColumn("reason")]))


def _plan_table(outcome: Outcome, profile: KindProfile) -> MetadataValue:
    """Return the plan's slices and skips, the first hundred of each."""
    plan = outcome.plan
    rows = [("-", PlanRow("nothing", 0, plan.why if plan else "the run failed before it planned"))]
    if plan and (plan.slices or plan.skips):
        slices = (
            (str(number), profile.plan_row(described, plan.why))
            for number, slice_ in enumerate(plan.slices, 1)
            for described in slice_.describe()
        )
        skips = (("skip", PlanRow(skip.subject, 0, skip.why)) for skip in plan.skips[:_SHOWN])
        rows = [*islice(slices, _SHOWN), *skips]
    columns = [TableColumn("slice"), TableColumn("what"), TableColumn("files", "int"), TableColumn("why")]
    records = [
        TableRecord({"slice": name, "what": row.summary, "files": row.files, "why": row.why})
        for name, row in rows
    ]
    return MetadataValue.table(records=records, schema=TableSchema(columns=columns))
