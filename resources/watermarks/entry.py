"""Records of the log: entries, and the intent of the next entry.

See docs/explanation/watermarks.md, The log; docs/explanation/protocol.md.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from partitions.errors import ConfigurationError, CorruptWatermark, NeedsDecision
from partitions.sentinels import Watermark, deserialise, encode
from partitions.state_of_kind import shorten_watermark

SCHEMA_VERSION = 1
"""The version of entries and intents. A reader refuses a higher one: it might overlook something."""

Why = Literal[
    "run", "replay", "rewind", "set", "reset", "import", "adopt", "accept", "late", "release", "unprocess", "abandon", "promote", "maintain", "splits", "flush", "delete", "forget", "expire", "reconcile"
]  # fmt: skip

LOADS: frozenset[Why] = frozenset({"run", "replay", "late", "release", "promote", "reconcile"})
"""Reasons of entries that loaded rows of the source into the table."""

DELETES: frozenset[Why] = frozenset({"delete", "expire"})
"""Reasons of entries that deleted rows on purpose; later loads do not bring them back."""

_DECISIONS: frozenset[Why] = frozenset(
    {
        "rewind", "set", "reset", "import", "adopt", "accept", "release", "unprocess", "splits", "flush", "delete", "forget",
    }
)  # fmt: skip
"""Reasons of entries that an operator has made; the loads of released files have the reason of their decision."""

NO_PROGRESS: frozenset[Why] = frozenset({"abandon", "maintain", "expire"})
"""Reasons of entries that made no progress with the waiting work."""

CUSTOM = "custom"
"""The kind of watermarks that a user's own code saves, apart from any rows."""

Replaces = Literal["own", "table"]
"""Rows that the commit deletes: those of the same files or windows, or the whole table."""


class StoredRecord(BaseModel):
    """Base of stored records: immutable, and unknown fields of the same schema version are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    schema_version: int = SCHEMA_VERSION

    def to_bytes(self) -> bytes:
        """Return the record as JSON in UTF-8."""
        return self.model_dump_json(exclude_none=True, by_alias=True).encode()


class Entry(StoredRecord):
    """An entry of the log: a number, what it committed, and the state of watermark and table after it.

    Attributes:
        id: random; distinguishes an entry of Strandline from another writer's of the same number.
        number: from 1, without gaps.
        watermark: sentinel JSON text; the state after this entry.
        lower: sentinel JSON text of the lower bound (exclusive); None on a first run.
        upper: sentinel JSON text of the upper bound (inclusive).
        total_rows: rows of this and all earlier entries since the last reset; likewise total_files.
        loaded_rows: rows that all loads have written so far, replays too; it never falls.
        lost_rows: rows that loads had written and the table lacked when a decision last took it as it is,
        which total_rows leaves out; "unknown" if nothing told how many.
        modified: modification time of the slice's newest file, epoch milliseconds by the source's clock.
        time: when it was appended, ISO in UTC. For people: no decision depends on it.
        app_id: the dataflow's random id in the target's tags, created with its first intent.
        table: name of the table that belongs to this state; None until an entry knows a table.
        table_version: the table's version with the rows of the newest slice, or the version that a
        decision took the state from; None if there was no table then.
        table_commit: identifies that commit: the id of its intent or give-up, or a hash of its text.
        table_number: the highest number under the dataflow's tag up to that commit; 0 if there is none.
        table_file: name of a data file that the commit added; None if it added none.
        committed_by: the writer of the commit, and why the engine wrote it if it did, for people; None if
        the format has one writer only, or nothing was committed.
        definition: hash of everything that the rows of the last slice depended on, beside its files.
        pinned: name of the object with the pinned schema.
        file_list: name of the object that lists the files of this entry.
        previous: number of the entry before; not one less if a decision has jumped over the table's tags.
        quarantined: number of files that this entry quarantined.
        work_units: number of work units that it loaded.
        failed_units: number of work units that it skipped because they could not be read.
        quarantine: name of the object that lists all files in quarantine; None if there is none.
        deletes: name of the object that lists the deletes in force; None if there are none. No later slice
        writes rows that they name.
        forgotten: name of the object that lists the conditions of forgotten deletes; None if there are none.
        predicate: the condition of a delete, in Spark's SQL; None for any other entry.
        deleted: number of rows that a delete, the retention, or rows that delete their key took out.
        expired: number of rows that the retention has deleted so far.
        expiry: JSON text of how far the retention has deleted rows, or held them back; None if it never did.
        withheld: number of rows of the slice that were not written because of a delete in force, by the
        number of the delete's entry, 0 for the retention; None if there are none, or nobody has counted them.
        total_withheld: such rows of this and all earlier entries.
        checked: number of rows of the slice that were compared with rules.
        rejected: number of them that went into the table of rejected rows instead.
        failed_rules: number of them that failed each rule, by its name; None without rules.
        inputs: versions of the tables that were read beside the dataflow's own rows, by the names in the
        definition.
        since: sentinel JSON text of the state where a filtered cold start began.
        era: files ingested by entries up to this number no longer count: the last reset, or before the
        last adopt.
        replace_until: sentinel JSON text: when files at or below this state are loaded again, their old
        rows are deleted.
        replace_table: whether the next slice empties the table in its commit.
        new_columns: whether the table holds only fences, which created it with columns that no commit has
        agreed to. Until then the next slice sets the columns.
        lost_files: identifies the table's data files that were missing when a decision accepted the table;
        None if there were none. The next slice removes them from the table.
        keyed_by: the load and merge keys of the newest slice, or those that an operator has accepted; ""
        if the table's are unknown; None in entries of older versions, whose intents contain it.
        source: a text, as JSON, that differs for another source of the same name; None: nothing tells them
        apart, or a decision accepts any.
        snapshot: for a long watermark: number of the entry that stores it as a whole, itself or an earlier
        one.
        changes: for a long watermark, as stored: changes since the snapshot (``partitions.difference``);
        ``watermark`` is then empty. The log returns entries with a whole watermark.
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
    loaded_rows: int = 0
    total_files: int = 0
    lost_rows: int | Literal["unknown"] = 0
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
    deletes: str | None = None
    forgotten: str | None = None
    predicate: str | None = None
    deleted: int = 0
    expired: int = 0
    expiry: str | None = None
    withheld: dict[int, int] | None = None
    total_withheld: int = 0
    checked: int = 0
    rejected: int = 0
    failed_rules: dict[str, int] | None = None
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

    @property
    def is_of_own_code(self) -> bool:
        """Whether the user's own code has saved it, apart from any rows."""
        return self.kind == CUSTOM

    @property
    def is_decision(self) -> bool:
        """Whether an operator has made the entry; a load of released files has an upper bound."""
        return self.why in _DECISIONS and self.upper is None

    def as_json(self, *, short: bool = False) -> dict[str, Any]:
        """Return the entry in the public JSON form (docs/reference/cli.md, JSON).

        With ``short``, a stream's watermark has its short form.
        """
        texts = {name: getattr(self, name) for name in ("watermark", "lower", "upper")}
        bounds = {name: text and json.loads(text) for name, text in texts.items()}
        if short:
            bounds["watermark"] = encode(shorten_watermark(self.kind, self.state()))
        withheld = {"withheld": {str(number): rows for number, rows in (self.withheld or {}).items()}}
        by_rule = {"failed_rules": self.failed_rules or {}}
        return {name: {**bounds, **withheld, **by_rule}.get(name, getattr(self, name)) for name in _PUBLIC}


_PUBLIC = (
    "number", "watermark", "lower", "upper", "why", "reason", "run_id", "job_id", "rows", "files", "quarantined", "work_units", "failed_units", "total_rows",
    "total_files", "predicate", "deleted", "withheld", "total_withheld", "checked", "rejected",
    "failed_rules", "inputs", "committed_by", "time", "schema_version", "fingerprint", "kind",
)  # fmt: skip

_OF_ONE_ENTRY: dict[str, Any] = {
    "lower": None, "upper": None, "reason": None, "run_id": None, "job_id": None, "rows": 0, "files": 0, "quarantined": 0,
    "work_units": 0, "failed_units": 0, "file_list": None, "inputs": None, "committed_by": None, "predicate": None, "deleted": 0, "withheld": None,
    "checked": 0, "rejected": 0, "failed_rules": None,
}  # fmt: skip
"""Fields of one entry alone; all others stay until an entry changes them."""


def next_entry(last: Entry | None, **changes: Any) -> Entry:
    """Return the entry after ``last``, whose state continues except for ``changes``.

    Args:
        last: the newest entry, or None for the first.
        changes: fields of :class:`Entry`; ``why`` and ``fingerprint`` always, ``kind`` and ``app_id`` for
        the first.
    """
    number = last.number if last else 0
    carried_fields = last.model_dump() if last else {"watermark": "{}"}
    fresh = {"id": new_id(), "number": number + 1, "previous": number, "time": utc_now()}
    return Entry(**{**carried_fields, **_OF_ONE_ENTRY, **fresh, **changes})


class Holder(StoredRecord):
    """The process that works on an intent. Safety never depends on whether it lives.

    Attributes:
        host: host name, boot and process namespace.
        pid: process id there.
        started: the process's start time in clock ticks since boot, which identifies a reused pid.
        run_id: Dagster's.
    """

    host: str
    pid: int
    started: int
    run_id: str | None = None


class Intent(StoredRecord):
    """The plan of the next number: written before the table, and never changed.

    See docs/explanation/protocol.md, The intent. A decision writes one, too, so that no run can start the
    same number; it names no list and no schema.

    Attributes:
        id: random; the target's commit carries it.
        watermark: sentinel JSON text of the state after it.
        definition: everything that the write depends on, resolved and without secrets.
        table_version: the target's version when it was planned; None if there was no table.
        inputs: versions of the tables that it reads beside the dataflow's own rows.
        replaces: rows that the same commit deletes.
        predicate: the condition of a delete, in Spark's SQL; None for any other intent.
        deletes: name of the object that lists the deletes in force after a delete; None for any other
        intent.
        first_loads: for a slice that reads files again: how many it adds to the loaded ones, below 0 if it
        deletes the rows of more missing files; None for any other slice.
        reason: the operator's reason to promote or repair, or the replay's; None for any other slice.
        rules: the rules of rows that its slice meets, and the versions of the tables that they refer to.
        released: the rule whose rejected rows are loaded, and the version of their table; else None.
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
    predicate: str | None = None
    deletes: str | None = None
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
    rules: dict[str, Any] | None = None
    released: dict[str, Any] | None = None

    def for_entry(self) -> dict[str, Any]:
        """Return the fields that the slice's entry takes over unchanged."""
        return {name: getattr(self, name) for name in _OF_A_SLICE}

    @property
    def is_decision(self) -> bool:
        """Whether the intent is a decision's, under which no table is written."""
        return not self.file_list and not self.writes_apart

    @property
    def writes_apart(self) -> bool:
        """Whether it deletes rows or releases rejected ones: no plan has its work."""
        return self.predicate is not None or self.released is not None

    @property
    def loads_slice(self) -> bool:
        """Whether rows of the source are written under the intent, as no decision and no delete does."""
        return bool(self.file_list)


_OF_A_SLICE = (
    "id", "number", "kind", "app_id", "why", "reason", "watermark", "lower", "upper", "run_id", "fingerprint", "files", "quarantined", "work_units",
    "failed_units", "quarantine", "pinned", "file_list", "inputs", "source",
)  # fmt: skip
"""Fields that an entry takes over from its intent."""

RecordT = TypeVar("RecordT", bound=StoredRecord)


def read_record(kind: type[RecordT], data: bytes, where: str) -> RecordT:
    """Parse a stored record.

    Raises:
        NeedsDecision: code ``newer_state``: a newer version of the product wrote it.
        CorruptWatermark: it does not read for any other reason.
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
    """Return the error for a record that does not read, with what to do."""
    return CorruptWatermark(
        f"{where}: expected a record of the watermark log, found text that does not parse ({fault}). It "
        "does not count as an empty state, which would load everything again. Restore the object from a "
        "backup; or remove it, and an older entry becomes the newest"
    )


def check_reason(dataflow: str, reason: str) -> None:
    """Raise ConfigurationError if an operator gives no reason for a decision about a dataflow."""
    if not reason.strip():
        raise ConfigurationError(
            f"dataflow {dataflow}: expected a reason, which stays in the log, found none"
        )


def new_id() -> str:
    """Return a random id."""
    return uuid4().hex


def utc_now() -> str:
    """Return the wall clock as text, for people."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
