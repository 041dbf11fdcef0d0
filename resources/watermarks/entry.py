"""What the log holds: entries, and the intent of the next one (docs/explanation/watermarks.md, The log; docs/explanation/protocol.md)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from partitions.errors import CorruptWatermark, NeedsDecision
from partitions.sentinels import Watermark, deserialise, encode
from partitions.state_of_kind import shorten_watermark

SCHEMA_VERSION = 1
"""Of entries and intents. A reader refuses a higher one: it cannot know what it would overlook."""

Why = Literal[
    "run", "replay", "rewind", "set", "reset", "import", "adopt", "accept", "late", "release", "unprocess", "abandon", "promote", "maintain", "splits", "flush"
]  # fmt: skip

LOADS: frozenset[Why] = frozenset({"run", "replay", "late", "release", "promote"})
"""Why an entry is there that rows of the source came into the table with."""

NO_PROGRESS: frozenset[Why] = frozenset({"abandon", "maintain"})
"""Why an entry is there that made no progress with the work that waits."""

Replaces = Literal["own", "table"]
"""Rows that are deleted in the commit that writes others: those of the same files or windows, or the whole table."""


class StoredRecord(BaseModel):
    """Base of what is stored: unknown fields of the same schema version are refused, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: int = SCHEMA_VERSION

    def to_bytes(self) -> bytes:
        """As JSON."""
        return self.model_dump_json(exclude_none=True).encode()


class Entry(StoredRecord):
    """One committed number.

    Attributes:
        id: random; tells an entry of Strandline from another writer's of the same number.
        number: from 1, without gaps.
        watermark: sentinel JSON text; the state after this entry.
        lower: sentinel JSON text of the bound below (exclusive), None on a first run.
        upper: sentinel JSON text of the bound above (inclusive).
        total_rows: rows of this and all earlier entries since the last reset; so with total_files.
        modified: when the newest file of the slice was modified, epoch milliseconds by the source's clock.
        time: when it was appended, ISO in UTC. For people: nothing is decided by it.
        app_id: the dataflow's random id in the target's tags, made with its first intent.
        table: name of the table that is known to belong to this state; None as long as no entry knew a table.
        table_version: the table's version that holds the rows of the newest slice, or that a decision took the state from; None if there
            was no table then.
        table_commit: what tells that commit from any other: the id of the intent or give-up that made it, or a hash of its text.
        table_number: the highest number under the dataflow's tag up to that commit; 0 if there is none.
        table_file: name of a data file that the commit added; None if it added none.
        committed_by: which writer made the commit, and why the engine did if it did, for people; None if the format has one writer only, or nothing
            was committed.
        definition: hash of all that the rows of the last slice depended on, beside its files.
        pinned: name of the object that holds the pinned schema.
        file_list: name of the object that lists the files of this entry.
        previous: the number of the entry before; not one less if an operator's decision has jumped over the table's tags.
        quarantined: how many files this entry has passed over.
        work_units: how many windows of units it has loaded.
        failed_units: how many it has passed over, since they could not be read.
        quarantine: name of the object that lists all files in quarantine; None if there is none.
        inputs: the versions of the tables that were read beside the dataflow's own rows, by the names that the definition gives them.
        since: sentinel JSON text of the state below which a filtered cold start looked at nothing.
        era: what was ingested by entries up to this number does not count any more: of the last reset, or before the last adopt.
        replace_until: sentinel JSON text: rows of files at or below this state are deleted when the files are loaded again.
        replace_table: whether the next slice empties the table in its commit.
        new_columns: whether the table holds nothing but fences, which have made it with columns that no commit has agreed to: as long as
            that is so, the next slice gives it its own.
        lost_files: what tells the files that are part of the table and were gone when a decision took it as it was, from any others; None if
            there were none. The next slice takes them out of the table.
        keyed_by: by which load and merge keys the newest slice found its rows, or which an operator has accepted; "" if nothing is known of the
            table; None of older versions, whose intents tell it.
        source: what tells the source that was read from another one of its name, as JSON; None: nothing does, or a decision takes any.
        snapshot: if the watermark is long: number of the entry that it is stored whole in, itself or one before.
        changes: as stored, if the watermark is long: what differs from that of the snapshot (``partitions.difference``).
            ``watermark`` is empty then; the log hands out entries whose watermark is whole.
    """

    id: str
    number: int
    watermark: str
    lower: str | None = None
    upper: str | None = None
    why: Why
    reason: str | None = None
    run_id: str | None = None
    job_id: str | None = None
    rows: int = 0
    files: int = 0
    total_rows: int = 0
    total_files: int = 0
    modified: int | None = None
    time: str
    fingerprint: str
    kind: str
    app_id: str
    table: str | None = None
    table_version: int | str | None = None
    table_commit: str | None = None
    table_number: int = 0
    table_file: str | None = None
    committed_by: str | None = None
    definition: str | None = None
    pinned: str | None = None
    file_list: str | None = None
    previous: int = 0
    quarantined: int = 0
    work_units: int = 0
    failed_units: int = 0
    quarantine: str | None = None
    inputs: dict[str, int | str] | None = None
    since: str | None = None
    era: int = 0
    replace_until: str | None = None
    replace_table: bool = False
    new_columns: bool = False
    lost_files: str | None = None
    keyed_by: str | None = None
    source: str | None = None
    snapshot: int | None = None
    changes: dict[str, list[Any]] | None = None

    def state(self) -> Watermark:
        """Return the watermark as values; raise CorruptWatermark if its text does not read."""
        return deserialise(self.watermark)

    def as_json(self, *, short: bool = False) -> dict[str, Any]:
        """The entry in the public JSON form (docs/reference/cli.md, JSON); ``short``: with the short form of a watermark that has one."""
        texts = {name: getattr(self, name) for name in ("watermark", "lower", "upper")}
        bounds = {name: text and json.loads(text) for name, text in texts.items()}
        if short:
            bounds["watermark"] = encode(shorten_watermark(self.kind, self.state()))
        return {name: bounds.get(name, getattr(self, name)) for name in _PUBLIC}


_PUBLIC = (
    "number", "watermark", "lower", "upper", "why", "reason", "run_id", "job_id", "rows", "files", "quarantined", "work_units", "failed_units", "total_rows",
    "total_files", "inputs", "committed_by", "time", "schema_version", "fingerprint", "kind",
)  # fmt: skip

_OF_ONE_ENTRY: dict[str, Any] = {
    "lower": None, "upper": None, "reason": None, "run_id": None, "job_id": None, "rows": 0, "files": 0, "quarantined": 0,
    "work_units": 0, "failed_units": 0, "file_list": None, "inputs": None, "committed_by": None,
}  # fmt: skip
"""What says something of one entry alone; all else stays as it is until an entry changes it."""


def next_entry(last: Entry | None, **changes: Any) -> Entry:
    """The entry after ``last``: its state continues wherever ``changes`` says nothing else.

    Args:
        last: the newest entry, or None for the first.
        changes: fields of :class:`Entry`; ``why`` and ``fingerprint`` always, ``kind`` and ``app_id`` for the first.
    """
    number = last.number if last else 0
    carried_fields = last.model_dump() if last else {"watermark": "{}"}
    fresh = {"id": new_id(), "number": number + 1, "previous": number, "time": utc_now()}
    return Entry(**{**carried_fields, **_OF_ONE_ENTRY, **fresh, **changes})


class Holder(StoredRecord):
    """Who works on an intent. Only for politeness: safety never depends on who is thought to live.

    Attributes:
        host: host name, boot and process namespace.
        pid: process id there.
        started: the process's start time in clock ticks since boot, which tells a reused pid.
        run_id: Dagster's.
    """

    host: str
    pid: int
    started: int
    run_id: str | None = None


class Intent(StoredRecord):
    """What the next number will be; put before the write, never changed (docs/explanation/protocol.md, The intent).

    An operator's decision puts one, too, so that no run can begin the same number; it names no list and no schema then.

    Attributes:
        id: random, stands in the target's commit.
        watermark: sentinel JSON text of the state after it.
        definition: what the write depends on, resolved and without secrets.
        table_version: the target's version when it was made; None if there was no table.
        inputs: the versions of the tables that it reads beside the dataflow's own rows.
        replaces: which rows are deleted in the same commit.
        first_loads: of a slice that reads again what was loaded: how many of its files were not; None of any other slice.
        reason: of the operator who promotes, or what a replay was asked for; None of any other slice.
    """

    id: str
    number: int
    dataflow: str
    kind: str
    app_id: str
    why: Why = "run"
    before: str
    watermark: str
    lower: str | None = None
    upper: str | None = None
    definition: dict[str, Any]
    fingerprint: str
    pinned: str
    file_list: str
    reason: str | None = None
    files: int = 0
    quarantined: int = 0
    work_units: int = 0
    failed_units: int = 0
    quarantine: str | None = None
    inputs: dict[str, int | str] | None = None
    since: str | None = None
    replaces: Replaces | None = None
    first_loads: int | None = None
    modified: int | None = None
    source: str | None = None
    holder: Holder
    run_id: str | None = None
    time: str
    table_version: int | str | None = None

    def for_entry(self) -> dict[str, Any]:
        """Return what the entry of the slice takes over as it is."""
        return {name: getattr(self, name) for name in _OF_A_SLICE}

    @property
    def is_decision(self) -> bool:
        """Whether nothing is written to a table under it."""
        return not self.file_list


_OF_A_SLICE = (
    "id", "number", "kind", "app_id", "why", "reason", "watermark", "lower", "upper", "run_id", "fingerprint", "files", "quarantined", "work_units",
    "failed_units", "quarantine", "pinned", "file_list", "inputs", "source",
)  # fmt: skip
"""What an intent fixes and its entry says, too."""

RecordT = TypeVar("RecordT", bound=StoredRecord)


def read_record(kind: type[RecordT], data: bytes, where: str) -> RecordT:
    """Read a stored record.

    Raises:
        NeedsDecision: code ``newer_state``: written by a newer version of the product.
        CorruptWatermark: for everything else that does not read.
    """
    try:
        raw = _object(data)
    except (ValueError, RecursionError) as error:
        raise corrupt_record_error(where, f"{error}") from error
    version = raw.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise NeedsDecision(
            f"{where}: expected schema version {SCHEMA_VERSION} or lower, found {version}: it was written by a newer Strandline."
            " Upgrade this installation; nothing was read or changed",
            code="newer_state",
            choices=("pip install --upgrade strandline",),
        )
    try:
        return kind.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        raise corrupt_record_error(where, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _object(data: bytes) -> dict[str, Any]:
    raw = json.loads(data)
    if not isinstance(raw, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - caught with what json raises
    return raw


def corrupt_record_error(where: str, fault: str) -> CorruptWatermark:
    """The error for a record that does not read, with what to do."""
    return CorruptWatermark(
        f"{where}: expected a record of the watermark log, found text that does not read as one ({fault})."
        " It is not treated as an empty state, which would load everything again. Restore the object from a backup,"
        " or remove it if an older entry shall count"
    )


def new_id() -> str:
    """A random id."""
    return uuid4().hex


def utc_now() -> str:
    """The wall clock as text, for people."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
