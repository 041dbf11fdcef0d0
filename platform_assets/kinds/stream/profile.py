"""Show stream watermarks, in epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import pluralize
from partitions.sentinels import Watermark, encode
from partitions.stream.ending import CLOSED, FLUSHED
from partitions.stream.side_table_names import BUFFER, CARRY
from partitions.stream.state import Split, StreamState
from partitions.stream.waiting_rows import time_in_words
from partitions.why_answer import Reason, WhyAnswer
from platform_assets.kinds.dead_servers import UnreachableServers
from platform_assets.kinds.profile import (
    KindProfile,
    LedgerPage,
    LedgerRequest,
    PlanRow,
    fingerprint_of_plan,
    ledger_of_one_range,
)
from platform_assets.kinds.stream.status import TellsStreamStatus
from platform_assets.kinds.stream.words import short_watermark, state_in_words, watermark_in_words
from resources.kinds.stream.explaining import explain_split
from resources.loop.guards.definition import check_definition
from resources.loop.missing_source import tells_of_emptied_source
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_MAX_SPLITS, _SLOWEST, _LINES = 1000, 100, 20


class StreamProfile(KindProfile, TellsStreamStatus):
    """The profile of stream watermarks."""

    slices_noun = "epoch"
    unknown_waiting: ClassVar[Mapping[str, Any]] = {"new_input": None}

    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return how far the global watermark is."""
        return watermark_in_words(watermark)

    def watermark_document(self, watermark: Watermark) -> Mapping[str, Any] | None:
        """Return epoch and global watermark."""
        return short_watermark(watermark)

    def entry_watermark(self, entry: Entry) -> str:
        """Return how far the global watermark is."""
        return state_in_words(StreamState.of(entry.state()))

    def rows_set_aside(self, entry: Entry) -> tuple[int, int]:
        """Return how many rows were late and how many were quarantined."""
        state = StreamState.of(entry.state())
        return state.late, state.quarantined

    def state_document(
        self, platform: Platform, dataflow: Dataflow, entry: Entry, *, full: bool
    ) -> Mapping[str, Any]:
        """Return the splits, totals and buffer."""
        state = StreamState.of(entry.state())
        if dataflow.streams_with_spark:
            return {**short_watermark(state.watermark()), "splits": None, "totals": None, "buffer": None}
        definition = dataflow.stream
        idle_splits = sum(1 for split in state.splits.values() if split.idle >= definition.idle_after)
        awaited = {name for name, split in state.splits.items() if split.watermark is None}
        awaited |= set(definition.splits) - set(state.splits)
        splits = {
            name: encode({"watermark": split.watermark, "idle": split.idle})
            for name, split in state.splits.items()
        }
        lowest = min((segment.lowest for segment in state.segments), default=None)
        return {
            **short_watermark(state.watermark()),
            "splits": splits if full or len(splits) <= _MAX_SPLITS else None,
            "totals": {"splits": len(splits), "idle": idle_splits, "waiting": len(awaited)},
            "buffer": {
                "rows": state.buffered,
                "bytes": _buffer_bytes(platform, dataflow),
                "segments": len(state.segments),
                **encode({"min": lowest}),
            },
        }

    def state_lines(self, dataflow: Dataflow, entry: Entry) -> Sequence[str]:
        """Return a line for each split: those that the global watermark waits for, then the slowest."""
        state = StreamState.of(entry.state())
        if dataflow.streams_with_spark:
            return ()
        definition = dataflow.stream
        idle_after = definition.idle_after

        def line(name: str, split: Split) -> str:
            reach = (
                "awaited: no row yet"
                if split.watermark is None
                else f"up to {time_in_words(split.watermark)}"
            )
            silent = f", no rows for {pluralize(split.idle, 'epoch')}" if split.idle else ""
            idle = f", idle ({definition.idle})" if split.idle >= idle_after else ""
            return f"split {name or '(all rows)'}: {reach}{silent}{idle}"

        declared = {name: Split() for name in definition.splits if name not in state.splits}
        splits = sorted(
            {**state.splits, **declared}.items(),
            key=lambda item: (item[1].watermark is not None, item[1].watermark or 0, item[0]),
        )
        hidden = len(splits) - _LINES
        more = [f"… and {pluralize(hidden, 'more split')} (--json --full shows all)"] if hidden > 0 else []
        return [*(line(name, split) for name, split in splits[:_LINES]), *more]

    def entry_amount(self, _: Entry) -> str:
        """Return "": the watermark's words say how many rows wait."""
        return ""

    def outcome_amount(self, _: Outcome) -> str:
        """Return "": rows and epochs are shown for every kind."""
        return ""

    def amount_set_aside(self, outcome: Outcome) -> str:
        """Return how many rows were late or quarantined, or how many Spark reports as dropped."""
        dropped = sum(batch.dropped_by_watermark for batch in outcome.batches or ())
        if dropped:
            return f"{pluralize(dropped, 'row')} dropped below Spark's watermark"
        parts = [f"{pluralize(outcome.late, 'late row')}"] if outcome.late else []
        parts += [f"{pluralize(outcome.quarantined, 'row')} put in quarantine"] if outcome.quarantined else []
        return ", ".join(parts)

    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return the epoch, the global watermark, the row counts, and the slowest splits."""
        state, statistics = StreamState.of(outcome.after), outcome.stream or {}
        reach = "undefined" if state.value is None else time_in_words(state.value)
        metadata: dict[str, Any] = {"epoch": state.epoch, "global_watermark": reach}
        if "batches" in statistics:
            return metadata | _batch_metadata(statistics["batches"])
        sums = {
            name: statistics[name]
            for name in ("rows_in", "emitted", "late", "quarantined")
            if name in statistics
        }
        slowest = {"splits": _slowest(state)} if state.splits else {}
        return metadata | sums | {"buffered": state.buffered} | slowest

    @override
    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return an epoch's input, under the number that its rows will have."""
        return f"epoch {described['epoch']}: {_input_in_words(described)}"

    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return an epoch's input."""
        return PlanRow(_input_in_words(described), 0, why)

    @override
    def waiting(
        self,
        platform: Platform,
        dataflow: Dataflow,
        entry: Entry | None,
        now: datetime,
        servers: UnreachableServers,
    ) -> dict[str, Any]:
        """Return whether the next run has an epoch to load: new input, or buffered rows that leave."""
        plan = platform.kind(dataflow).planning.plan(entry, now)
        return {"new_input": plan.due, "warnings": [*filter(tells_of_emptied_source, plan.warnings)]}

    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return whether there is new input; None if unknown."""
        if waiting["new_input"] is None:
            return None
        return "new input" if waiting["new_input"] else "nothing"

    def work_fingerprint(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> str:
        """Return a text that identifies the upper end of new input; "" if there is none."""
        return fingerprint_of_plan(platform, dataflow, entry, now)

    @override
    def explain(self, platform: Platform, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
        """Return what became of a split's rows."""
        return explain_split(platform, dataflow, subject)

    def unloaded(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> Sequence[Reason]:
        """Return what the buffered rows wait for."""
        status = self.stream_status(log, dataflow, entry, now) if entry else None
        rows = status and status["waiting_rows"]
        if not rows or not rows["rows"]:
            return ()
        waiting = f"wait for {rows['why']}"
        return (Reason(pluralize(rows["rows"], "buffered row"), waiting, since=rows["since"]),)

    def ledger(self, platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
        """Return up to where rows are sorted. Opens no source."""
        instead = f"A stream reads its input once; `strandline state reset {dataflow.name} --replace --reason TEXT` reads all of it again"
        request.refuse_options(dataflow, bounds=True, instead=instead)
        entry = platform.log.newest(dataflow.name)
        check_definition(dataflow, entry, platform.log)
        state = StreamState.of(entry.state() if entry else None)
        up_to = short_watermark(state.watermark()) if entry else None
        return ledger_of_one_range(
            dataflow, request, entry, up_to, late=state.late, quarantined=state.quarantined
        )

    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return up to where rows are sorted."""
        covered = document["covered"]
        up_to = watermark_in_words(covered["up_to"]) if covered["up_to"] else "nothing"
        return LedgerPage(f"{dataflow.name}: sorted {up_to}: {pluralize(covered['rows'], 'row')}")


def _buffer_bytes(platform: Platform, dataflow: Dataflow) -> int | None:
    """Return the bytes of the buffer's files; None if the tables do not tell.

    Files that the next epoch deletes count, too.
    """
    tables = [table for name, table in platform.side_tables(dataflow).items() if name in (BUFFER, CARRY)]
    with suppress(StrandlineError):
        sizes = [table.contents.count_bytes() for table in tables]
        return None if None in sizes else sum(filter(None, sizes))
    return None


def _batch_metadata(batches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return Spark's report on a run's batches: sums, and a table of the last hundred."""
    from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

    if not batches:
        return {}
    numbers = ("batch_id", "rows_in", "dropped_by_watermark", "state_rows")
    records = [
        TableRecord({**{name: batch[name] for name in numbers}, "watermark": batch["watermark"] or "none"})
        for batch in batches[-_SLOWEST:]
    ]
    columns = [*(TableColumn(name, "int") for name in numbers), TableColumn("watermark")]
    return {
        "rows_in": sum(batch["rows_in"] for batch in batches),
        "dropped_by_watermark": sum(batch["dropped_by_watermark"] for batch in batches),
        "state_rows": batches[-1]["state_rows"],
        "batches": MetadataValue.table(records, TableSchema(columns)),
    }


def _slowest(state: StreamState) -> Any:
    """Return the splits that are furthest behind, as a Dagster table."""
    from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

    awaited = [name for name, split in state.splits.items() if split.watermark is None]
    behind = sorted(
        (name for name, split in state.splits.items() if split.watermark is not None),
        key=lambda name: (state.splits[name].watermark, name),
    )
    records = [
        TableRecord(
            {
                "split": name,
                "watermark": "awaited" if (at := state.splits[name].watermark) is None else time_in_words(at),
                "epochs_without_rows": state.splits[name].idle,
            }
        )
        for name in [*awaited, *behind][:_SLOWEST]
    ]
    columns = [TableColumn("split"), TableColumn("watermark"), TableColumn("epochs_without_rows", "int")]
    return MetadataValue.table(records, TableSchema(columns))


def _input_in_words(described: Mapping[str, Any]) -> str:
    versions, files = described["versions"], described["files"]
    if files is not None:
        last = f", the last is {files[-1]}" if len(files) > 1 else f": {files[0]}"
        return f"{pluralize(len(files), 'file')}{last}"
    if described["reason"] in (FLUSHED, CLOSED):
        return "no input: buffered rows leave"
    if versions is None:  # only Spark knows what a batch reads
        return "new input" if described["reason"] == "new input" else "a batch of Spark's"
    first, last = versions["first"], versions["last"]
    return f"version {first}" if first == last else f"versions {first} to {last}"
