"""Dataflow: a source, a watermark and a target, as a user declares it.

See docs/reference/project-files.md. ``platform_assets.project`` reads it from a YAML file.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta, tzinfo
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import Field, PrivateAttr, model_validator

from partitions.change_events import target_of_events
from partitions.checks import CheckSettings
from partitions.column.definition import ColumnWatermark
from partitions.dataflow_parts import DataflowParts
from partitions.errors import ConfigurationError
from partitions.inputs import Input, awaited_refusals, tables_read, unit_refusals, view_refusals
from partitions.kinds import AnyWatermark
from partitions.maintenance_periods import RETENTION, RETENTION_PERIOD, Maintenance, Task
from partitions.model import Duration, Flag, Model
from partitions.path.bad_files import OnBadFile
from partitions.path.definition import PathWatermark
from partitions.reconcile.settings import ReconcileSettings
from partitions.refusal import PartsDoNotFit
from partitions.rules.definition import Rule
from partitions.run_settings import AutomationCondition, EmptyLoad, Retry, Tags
from partitions.sources import FilesSource, FunctionName, Source, TableName
from partitions.sources.definition import rows_identify_work_unit
from partitions.stream.definition import StreamWatermark
from partitions.stream.operators import Operator
from partitions.supported import refusals
from partitions.target import Target
from partitions.watermark_definition import WatermarkDefinition
from partitions.window.definition import WindowWatermark, secondary_inputs

WatermarkT = TypeVar("WatermarkT", bound=WatermarkDefinition)


LatePolicy = Literal["ingest", "quarantine", "alert", "ignore"]

LATE_POLICIES: Mapping[LatePolicy, str] = {
    "ingest": "loaded by the next run",
    "quarantine": "quarantined by the next step, until released",
    "alert": "waiting for your decision; late_files: ingest loads late files, quarantine sets them aside",
    "ignore": "skipped",
}
"""What happens to late files, for people."""


class FilePosition(NamedTuple):
    """A place in a file of the project.

    Attributes:
        file: relative to the project's folder; absolute if it lies elsewhere, as of an installed package.
        line: counts from 1.
    """

    file: str
    line: int


class Freshness(Model):
    """How long the table may go without a successful load before it counts as stale."""

    fail: Duration
    warn: Duration | None = None


MAX_BAD_RECORDS = 100_000
"""The most records that a slice may set aside: this process holds them in memory."""


class Dataflow(Model):
    """A dataflow as its YAML file declares it.

    Attributes:
        name: the file's stem.
        layer: first part of the asset key.
        late_files: the policy for files that the sweep finds at or below the watermark and that were never
        loaded.
        unknown_fields: ``check``: a field that the pinned schema lacks makes a file bad; ``ignore``: such
        fields are dropped.
        show_bad_records: what messages quote, since it may be personal data: the value that does not fit
        (None), the whole record, too (True), or neither (False).
        max_bad_records: bad records that one slice may set aside.
        on_bad_file: whether a file that cannot be read stops the run, or goes into quarantine.
        max_bad_files: bad files that one slice may quarantine; None: half of its files, see
        ``partitions.path.bad_files``.
        operators: what a stream does to its rows, in their order.
        transform: ``package.module:function``, a function ``(DataFrame, Batch) -> DataFrame``.
        sql: a query over the view ``input``, instead of ``transform``.
        inputs: by view name, the tables of the lake that ``sql`` or ``transform`` reads beside the
        dataflow's own rows.
        run_after_upstream: whether Dagster requests a run when a table that it reads has changed.
        freshness: shown and checked by Dagster.
        maintenance: how often the table is optimized and vacuumed.
        reconcile: when Dagster compares the source with the table, and what is repaired then.
        schedule: cron in the watermark's time zone, for runs beside those of the sensor; not for path
        watermarks.
        run_tags: tags of the runs of its jobs, for Dagster's queue and launcher.
        op_tags: tags of the step that loads it, in every run: resources of a pod, for example.
        retry: how often a failed load is tried again within its run; None: Dagster's own rule.
        automation_condition: when Dagster's automation materialises the table; None: it does not.
        empty_load: whether assets downstream in the same run run after a load without anything new.
        checks: what a failure of a check means, by its name.
        rules: what each row must meet, after ``sql`` or ``transform``.
    """

    _position: FilePosition | None = PrivateAttr(None)
    name: str
    layer: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] = "bronze"
    source: Source
    watermark: AnyWatermark
    operators: tuple[Operator, ...] = ()
    target: Target = Target()
    late_files: LatePolicy = "ingest"
    on_bad_file: OnBadFile = "stop"
    max_bad_files: Annotated[int, Field(ge=1, strict=True)] | None = None
    unknown_fields: Literal["check", "ignore"] = "check"
    show_bad_records: Flag | None = None
    max_bad_records: Annotated[int, Field(ge=0, le=MAX_BAD_RECORDS, strict=True)] = 0
    transform: FunctionName | None = None
    sql: Annotated[str, Field(min_length=1)] | None = None
    inputs: dict[str, TableName] = Field(default_factory=dict)
    run_after_upstream: Flag = True
    description: str | None = None
    owners: tuple[str, ...] = ()
    tags: dict[str, str] = Field(default_factory=dict)
    freshness: Freshness | None = None
    maintenance: Maintenance | None = None
    reconcile: ReconcileSettings | None = None
    schedule: Annotated[str, Field(min_length=1)] | None = None
    run_tags: Tags = Field(default_factory=dict)
    op_tags: Tags = Field(default_factory=dict)
    retry: Retry | None = None
    automation_condition: AutomationCondition | None = None
    empty_load: EmptyLoad = "continue"
    checks: dict[str, CheckSettings] = Field(default_factory=dict)
    rules: tuple[Rule, ...] = ()

    @model_validator(mode="after")
    def _one_step(self) -> Dataflow:
        if self.transform and self.sql:
            raise ValueError("transform and sql both follow the read: expected only one of them")
        return self

    @model_validator(mode="after")
    def _inputs_fit(self) -> Dataflow:
        refused = [
            *view_refusals(self.inputs, has_step=self.has_step),
            *unit_refusals(self.source, secondary_inputs(self.watermark)),
            *awaited_refusals(self.watermark.awaited_inputs, self.inputs),
        ]
        if refused:
            raise PartsDoNotFit(refused)
        return self

    @model_validator(mode="after")
    def _imply(self) -> Dataflow:
        if self.source.sends_changes:
            target = target_of_events(self.target, has_step=self.has_step)
            object.__setattr__(self, "target", target)  # the model is frozen, and still being made
        return self

    @model_validator(mode="after")
    def _parts_fit(self) -> Dataflow:
        parts = DataflowParts(
            self.source,
            self.watermark,
            self.target,
            self.schedule,
            self.unknown_fields,
            self.on_bad_file,
            self.late_files,
            self.maintenance,
            self.max_bad_records,
            "sql" if self.sql else "transform" if self.transform else None,
            self.operators,
            self.max_bad_files,
            self.sql,
            self.checks,
            self.rules,
            self.reconcile,
        )
        if refused := list(refusals(parts)):
            raise PartsDoNotFit(refused)
        return self

    @property
    def position(self) -> FilePosition:
        """Where it is declared."""
        return self._position or FilePosition(f"dataflows/{self.name}.yaml", 1)

    def declared_at(self, position: FilePosition) -> Dataflow:
        """Return the same dataflow with the place where it is declared."""
        copy = self.model_copy()
        copy._position = position
        return copy

    @property
    def kind(self) -> str:
        """The kind of its watermark."""
        return self.watermark.type

    @property
    def has_step(self) -> bool:
        """Whether ``sql`` or ``transform`` changes the rows between source and table."""
        return bool(self.sql or self.transform)

    @property
    def deletes_keys(self) -> bool:
        """Whether rows of its source can delete their key."""
        return self.target.may_delete or self.watermark.carries_deletes(self.source, self.target)

    @property
    def streams_with_spark(self) -> bool:
        """Whether Spark's own engine reads its rows, with a checkpoint that belongs to one definition."""
        return self.watermark.streams_with_spark

    @property
    def keeps_table_in_reset(self) -> bool:
        """Whether a reset may keep the table.

        Not for a stream that appends: its rows do not record where they came from, so a second read would
        duplicate them. Nor for a table to which deletes are applied: it would keep rows that were deleted
        above before the second read.
        """
        if self.watermark.carries_deletes(self.source, self.target):
            return False
        return self.watermark.rows_name_origin or not self.target.only_adds

    @property
    def table(self) -> str:
        """The table's name in the lake, ``<layer>/<name>``."""
        return self.target.table or self.asset

    @property
    def tables_beside(self) -> Mapping[str, str]:
        """Tables that it writes beside its own and that others may read, by asset.

        A stream that diverts late rows has one.
        """
        diverts = self.watermark.diverts_late_rows
        return {f"{self.asset}__late": f"{self.table}__late"} if diverts else {}

    @property
    def asset(self) -> str:
        """The name of its table's asset, ``<layer>/<name>``."""
        return f"{self.layer}/{self.name}"

    @property
    def tables_read(self) -> tuple[Input, ...]:
        """The tables of the lake that it reads: as its source, for units, or as extra inputs."""
        return tables_read(self.source, secondary_inputs(self.watermark), self.inputs)

    @property
    def files(self) -> FilesSource:
        """Its source of files.

        Raises:
            ConfigurationError: the source has another type.
        """
        if isinstance(self.source, FilesSource):
            return self.source
        raise ConfigurationError(
            f"dataflow {self.name}: expected a source of type files, found {self.source.type}"
        )

    @property
    def zone(self) -> tzinfo:
        """The zone of times and days without one; UTC if the watermark has none."""
        return self.watermark.zone

    def root_of(self, source: FilesSource) -> str:
        """Return the folder or bucket that holds its files.

        For windows this is the path before the first placeholder.
        """
        return source.root if self.watermark.fills_placeholders else source.path

    def watermark_as(self, definition: type[WatermarkT]) -> WatermarkT:
        """Return its watermark of one class.

        Raises:
            ConfigurationError: it has another kind.
        """
        if isinstance(self.watermark, definition):
            return self.watermark
        raise ConfigurationError(
            f"dataflow {self.name}: expected a watermark of type {definition.kind()}, found {self.kind}"
        )

    @property
    def path(self) -> PathWatermark:
        """Its path watermark; a ConfigurationError if it has another kind."""
        return self.watermark_as(PathWatermark)

    @property
    def column(self) -> ColumnWatermark:
        """Its column watermark; a ConfigurationError if it has another kind."""
        return self.watermark_as(ColumnWatermark)

    @property
    def window(self) -> WindowWatermark:
        """Its window watermark; a ConfigurationError if it has another kind."""
        watermark = self.watermark_as(WindowWatermark)
        if not self.source.complete:
            return watermark
        # Each window is the whole source, so a slice has one.
        checkpoint = watermark.checkpoint.model_copy(update={"interval_windows": 1})
        return watermark.model_copy(update={"checkpoint": checkpoint})

    @property
    def stream(self) -> StreamWatermark:
        """Its stream watermark; a ConfigurationError if it has another kind."""
        return self.watermark_as(StreamWatermark)

    @property
    def tagged(self) -> bool:
        """Whether rows of windows need ``_window_start`` and ``_unit``.

        They do unless the source's columns give both the time and the unit.
        """
        watermark = self.window
        timed = watermark.time_entry is not None
        return not rows_identify_work_unit(self.source, timed=timed, unit_fields=watermark.unit_fields)


def maintenance_periods(dataflow: Dataflow) -> Mapping[Task, timedelta]:
    """Return the maintenance tasks of a table with their periods, in the order in which they run."""
    expiry = {RETENTION: RETENTION_PERIOD} if dataflow.target.retention else {}
    return {**expiry, **(dataflow.maintenance.periods() if dataflow.maintenance else {})}
