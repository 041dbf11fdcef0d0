"""The keys of ``incremental_asset`` (beside this module), for type checkers and editors.

They are those of a dataflow's YAML file whose source is a function, and the same models check them
(:mod:`partitions.dataflow`). A test compares the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    import pyarrow as pa

    from resources.sources.python.request import Request

Duration = str | timedelta
"""A ``timedelta``, or an ISO 8601 duration such as ``"PT5M"``."""

Zone = str | ZoneInfo
"""A zone, or its name."""

Grain = Literal["none", "hourly", "daily", "weekly", "monthly", "yearly"]

Param = str | int | float | bool
TimeRange = TypedDict("TimeRange", {"from": Required[str | date], "to": Required[str | date]})


class EnvReference(TypedDict):
    """A variable of the environment."""

    env: str


class FileReference(TypedDict):
    """A file with a text, as Docker and Kubernetes mount secrets."""

    file: str


class LookBackKeys(TypedDict, total=False):
    """How far below the stored value a run reads again."""

    days: int
    hours: int
    months: int
    years: int
    closing_day: int
    by: int


class RowCheckpointKeys(TypedDict, total=False):
    """The size of a slice."""

    interval_secs: int
    interval_rows: int


class ColumnKeys(TypedDict, total=False):
    """Rows above the highest value of columns: docs/reference/columns.md."""

    type: Required[Literal["column"]]
    columns: Required[Sequence[str]]
    timezone: Zone
    settle: Duration
    backward: LookBackKeys
    nulls: Literal["first", "read", "skip", "fail"]
    boundary: Literal["exclusive", "inclusive"]
    on_set_back: Literal["stop", "ignore"]
    checkpoint: RowCheckpointKeys
    max_slices: int


class DatetimeEntryKeys(TypedDict):
    """The range of time that windows cut."""

    name: str
    type: Literal["datetime"]
    range: TimeRange


class UnitEntryKeys(TypedDict):
    """The units that windows are loaded for."""

    name: str
    type: Literal["unit"]
    units: str | Sequence[str | int | float | Mapping[str, Any]]


class SecondaryInputKeys(TypedDict, total=False):
    """Where units come from."""

    table: str
    asset: str
    path: str
    query: str
    source: Mapping[str, Any]
    fields: Required[Sequence[str]]
    filters: Mapping[str, str]


class WindowCheckpointKeys(TypedDict, total=False):
    """The size of a slice."""

    interval_secs: int
    interval_windows: int


class LoadAfterKeys(TypedDict):
    """When an incomplete window is loaded."""

    load_after: Duration


class BucketsKeys(TypedDict):
    """The number of buckets that Dagster shows units in."""

    buckets: int


class WindowKeys(TypedDict, total=False):
    """Windows of time, for units: docs/reference/windows.md."""

    type: Required[Literal["window"]]
    definition: Required[Sequence[DatetimeEntryKeys | UnitEntryKeys]]
    window: Grain | Mapping[Grain, Sequence[str]]
    timezone: Zone
    partial: bool
    grace: Duration
    abstinent: Duration
    abstinent_skips: bool
    reread: Literal["rest", "whole"]
    refresh: Literal["none", "changed"]
    parallelism: int
    pacing: Duration
    incomplete: Literal["wait", "load"] | LoadAfterKeys
    wait_for: Mapping[str, str]
    min_units: int
    secondary_input: Sequence[SecondaryInputKeys]
    checkpoint: WindowCheckpointKeys
    dagster_units: Literal["auto", "partitions", "ledger"] | BucketsKeys
    max_slices: int


class RetentionKeys(TypedDict):
    """How long rows stay."""

    column: str
    keep: Duration


class HistoryNamesKeys(TypedDict, total=False):
    """The names of the columns that ``load: scd2`` adds."""

    valid_from: str
    valid_to: str
    is_current: str
    is_deleted: str


class TargetKeys(TypedDict, total=False):
    """The table, and how rows go into it: docs/reference/loads.md."""

    load: Literal["append", "overwrite", "merge_upsert", "merge_overwrite", "scd2"]
    merge_keys: Sequence[str]
    replace_by_watermark: bool
    effective_column: str
    track: Sequence[str]
    ignore: Sequence[str]
    names: HistoryNamesKeys
    open_end: str
    insert_only: bool
    missing_columns: Literal["keep", "null"]
    immutable: Sequence[str]
    table: str
    format: Literal["delta", "iceberg", "parquet"]
    partition_by: Sequence[str]
    cluster_by: Sequence[str]
    schema_mode: Literal["strict", "merge", "overwrite", "rescue"]
    origin_columns: bool
    shared: bool
    retention: RetentionKeys
    delete_when: str
    on_missing: Literal["delete", "retire", "keep"]
    max_deleted: str
    keep_tombstones: Duration


class FreshnessKeys(TypedDict, total=False):
    """How long the table may go without a load."""

    fail: Required[Duration]
    warn: Duration


class MaintenanceKeys(TypedDict, total=False):
    """How often the table is cared for."""

    optimize: Duration
    vacuum: Duration
    keep_for_downstream: Duration


class ReconcileKeys(TypedDict, total=False):
    """When the source is compared with the table, and what is repaired then."""

    schedule: Required[str]
    last: Duration
    repair: Literal["missing", "all"]
    rows: bool
    full_read: bool


class RetryKeys(TypedDict, total=False):
    """How often a failed load is tried again within its run."""

    max: Required[int]
    delay: Duration
    backoff: Literal["linear", "exponential"]
    jitter: Literal["full", "plus_minus"]


class OnCronKeys(TypedDict, total=False):
    """Materialise after each tick of a cron expression."""

    on_cron: Required[str]
    timezone: Zone


class CheckKeys(TypedDict, total=False):
    """What a failure of a check means."""

    blocking: bool
    severity: Literal["warn", "error"]


class RuleKeys(TypedDict, total=False):
    """What each row must meet: docs/how-to/rules-for-rows.md."""

    name: str
    expect: str
    not_null: Sequence[str]
    unique: Sequence[str]
    accepted: Mapping[str, Sequence[str | int | float | bool | date]]
    references: Mapping[str, str]
    on_fail: Literal["reject", "fail", "warn"]
    max: str | int


class SourceKeys(TypedDict, total=False):
    """The keys that a YAML file has below ``source``: docs/reference/python-functions.md.

    Attributes:
        schema: the columns: Spark DDL, a mapping of names to types in DDL, or an Arrow schema.
        highest: returns the highest existing value of a column, or None.
        params: ``request.params``.
        connection: the connection of platform.yaml whose settings are ``request.connection``.
        window_column: the column of the rows with their window.
        unit_columns: by the name of a unit's value, the column that holds it.
        complete: whether each call returns the whole, so that a key that it lacks is gone.
    """

    schema: str | Mapping[str, str] | pa.Schema
    highest: str | Callable[[Request, str], object]
    params: Mapping[str, Param | Sequence[Param] | EnvReference | FileReference]
    connection: str
    window_column: str
    unit_columns: Mapping[str, str]
    complete: bool


class IncrementalAssetKeys(SourceKeys, total=False):
    """All keys: docs/reference/project-files.md.

    Attributes:
        watermark: what is due; the only key that is required.
        name: the dataflow's name; by default the function's.
        description: by default the function's docstring.
    """

    watermark: Required[ColumnKeys | WindowKeys]
    name: str
    layer: str
    target: TargetKeys
    unknown_fields: Literal["check", "ignore"]
    transform: str | Callable[[Any, Any], Any]
    sql: str
    inputs: Mapping[str, str]
    run_after_upstream: bool
    description: str
    owners: Sequence[str]
    tags: Mapping[str, str]
    freshness: FreshnessKeys
    maintenance: MaintenanceKeys
    reconcile: ReconcileKeys
    schedule: str
    run_tags: Mapping[str, Any]
    op_tags: Mapping[str, Any]
    retry: RetryKeys
    automation_condition: Literal["eager", "on_missing"] | OnCronKeys
    empty_load: Literal["continue", "skip"]
    checks: Mapping[str, CheckKeys]
    rules: Sequence[RuleKeys]


SOURCE_KEYS = frozenset(SourceKeys.__annotations__)
ASSET_KEYS = tuple(IncrementalAssetKeys.__annotations__)
