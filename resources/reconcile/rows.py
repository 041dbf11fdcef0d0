"""Compare rows of a source with rows of the table: match the columns, then ask both sides."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError, TargetError
from partitions.predicate import EVERYTHING, Among, AnyOf, Between, Predicate, all_of
from partitions.reconcile.columns import ComparedColumn, MatchedColumns, match_columns
from partitions.reconcile.differences import Key
from partitions.reconcile.ranges import Ranges
from partitions.reconcile.result import ComparedPosition, Level, Reconciliation
from partitions.schema_merging import RESCUED_DATA
from partitions.sentinels import Watermark
from partitions.target import (
    COMMIT_COLUMN,
    DATAFLOW_COLUMN,
    ORIGIN_COLUMNS,
)
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.platform.stores import Stores
from resources.reconcile.comparing import Compared, SidePair
from resources.reconcile.expressions import HashedColumns
from resources.reconcile.kind import ReconcileKind
from resources.reconcile.repairable import find_repair
from resources.reconcile.side import ComparedSide
from resources.reconcile.spark_side import SparkSide
from resources.tables.contract.commits import Version
from resources.watermarks.deleted_rows import deletes_in_force

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWN_COLUMNS = (
    *ORIGIN_COLUMNS,
    DATAFLOW_COLUMN,
    COMMIT_COLUMN,
    RESCUED_DATA,
)
"""Columns that loading adds, which no source has."""


@dataclass(frozen=True)
class OpenedSource:
    """A source whose answers are of one moment.

    Attributes:
        side: the source, as a side.
        now: the source's clock at that moment; None: it has none.
        version: version of a lake table; None: it has none.
    """

    side: ComparedSide
    now: datetime | None = None
    version: Version | None = None


@dataclass(frozen=True)
class ReconcileRows(ReconcileKind):
    """The comparison of rows; a kind says which source it opens, and in which ranges rows are counted.

    Attributes:
        applies_deletes: whether deletes of the source are in the rows that are compared.
        no_repair: why rows of this kind are not repaired, for people; None: they are.
    """

    applies_deletes: ClassVar[bool] = False
    no_repair: ClassVar[str | None] = None

    @abstractmethod
    def opened(self) -> AbstractContextManager[OpenedSource]:
        """Return the source, to be closed by the caller.

        Raises:
            ConfigurationError: it can only be read as a whole, which nobody has asked for.
            SourceError: it refuses, or does not answer.
        """

    @abstractmethod
    def ranges(self, source: ComparedSide) -> Ranges:
        """Return the ranges to compare.

        Raises:
            ConfigurationError: the requested range does not fit the column.
        """

    def pinned_columns(self) -> str:
        """Return the columns with which runs read the source."""
        assert self.entry.pinned is not None, self.entry
        return self.stores.log.get_schema(self.entry.pinned)

    def reach(self, ranges: Ranges) -> Watermark:  # noqa: ARG002 - kinds without one value per column use it
        """Return how far all rows are compared, by column: by default the watermark."""
        return self.entry.state()

    @override
    def check(self) -> None:
        """Refuse a table that by definition holds other rows than its source, and keys that are not there."""
        self.options.level(self.dataflow)
        _refuse(self)
        _refuse_deletes(self)

    @override
    def compared(self, version: Version) -> Reconciliation:
        """Open the source, and compare it with a version of the table."""
        with self.opened() as source:
            return _compared(self, source, version)


def _refuse(kind: ReconcileRows) -> None:
    """Raise ConfigurationError for a table that by definition holds other rows than its source."""
    dataflow = kind.dataflow
    target, obstacle = dataflow.target, None
    if dataflow.has_step:
        obstacle = (
            f"a step ({'sql' if dataflow.sql else 'transform'}), after which the table holds other rows"
        )
    elif target.load == "overwrite":
        obstacle = "load: overwrite, with which the table holds the rows of the last run alone"
    elif target.insert_only:
        obstacle = "insert_only, with which the table keeps the first row of each key"
    elif any(rule.on_fail == "reject" for rule in dataflow.rules):
        obstacle = "rules that reject rows, which the table lacks then"
    elif target.may_delete or (dataflow.deletes_keys and not kind.applies_deletes):
        obstacle = "rows that delete their key, which only a load tells apart"
    if obstacle is not None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: reconcile expects a table that holds the source's rows, found {obstacle}"
        )


def _refuse_deletes(kind: ReconcileKind) -> None:
    deletes = deletes_in_force(kind.stores.log, kind.entry)
    if deletes:
        raise ConfigurationError(
            f"dataflow {kind.dataflow.name}: reconcile expects a table that holds the source's rows, found a delete in force"
            f" ({deletes[-1].predicate}), whose rows stay at the source"
        )


def _compared(kind: ReconcileRows, source: OpenedSource, version: Version) -> Reconciliation:
    dataflow, entry, options = kind.dataflow, kind.entry, kind.options
    level, table = options.level(dataflow), _table_side(kind.stores, dataflow, version)
    types = {name: type_ for name, type_ in source.side.columns().items() if type_ is not None}
    own_columns = (*_OWN_COLUMNS, *dataflow.target.names.all)
    matched = match_columns(types, table.columns(), own_columns, dataflow.target.immutable or ())
    ranges = replace(kind.ranges(source.side), also=_retained_rows(dataflow, matched, kind.now))
    pair = _pair(dataflow, source.side, table, matched, ranges, level)
    try:
        compared = pair.compare(options.kept_keys)
    except StrandlineError:
        raise
    except Exception as error:
        raise _explained(dataflow, error) from error
    position = ComparedPosition(entry.number, version, _in_utc(source.now), source.version)
    return Reconciliation(
        dataflow.name,
        level,
        kind.reach(ranges),
        position,
        compared.ranges,
        *_keys(compared, options.limit),
        not_compared=tuple(matched.others) if level == "rows" else (),
        is_whole=options.is_whole,
        repair=find_repair(dataflow, options, matched, ranges, compared, position.words, kind.no_repair),
    )


def _in_utc(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat(timespec="seconds") if moment else None


def _keys(compared: Compared, limit: int) -> tuple[Sequence[Key], Sequence[Key], Sequence[Key]]:
    """Return the first missing, extra and different keys."""
    differences = compared.differences
    if differences is None:
        return (), (), ()
    return (
        tuple(differences.missing[:limit]),
        tuple(differences.extra[:limit]),
        tuple(differences.different[:limit]),
    )


def _table_side(stores: Stores, dataflow: Dataflow, version: Version) -> SparkSide:
    """Return the table's rows that stand for rows of the source: current versions, and its own share."""
    contents, target = stores.table(dataflow).contents, dataflow.target
    spark = stores.engine(dataflow).session()
    own: list[Predicate] = []
    if target.load == "scd2":
        own.append(Among(target.names.is_current, (True,)))
    if target.shared:
        own.append(Among(DATAFLOW_COLUMN, (dataflow.name,)))
    condition = all_of(own)

    def read(rows: Predicate) -> DataFrame:
        frame = contents.read(spark, version, all_of([rows, condition]))
        return frame if condition == EVERYTHING else frame.where(predicate_sql(condition, SPARK))

    return SparkSide(read)


def _retained_rows(dataflow: Dataflow, matched: MatchedColumns, now: datetime) -> Predicate:
    """Return the rows that the table's retention keeps; the others go whatever the source has."""
    retention = dataflow.target.retention
    if retention is None:
        return EVERYTHING
    (column,) = matched.named([retention.column], dataflow.name, "target.retention.column")
    expired = retention.expired_rows(column.table_type.data_type, now)
    if expired is None:
        return EVERYTHING
    return AnyOf((Between(column.name, expired.upper, None), Among(column.name, (None,))))


def _pair(
    dataflow: Dataflow,
    source: ComparedSide,
    table: ComparedSide,
    matched: MatchedColumns,
    ranges: Ranges,
    level: Level,
) -> SidePair:
    """Return both sides with the columns that a level compares."""
    keys = matched.named(dataflow.target.merge_keys, dataflow.name, "target.merge_keys")
    marks = matched.named(ranges.watermark_columns, dataflow.name, "watermark columns")
    compared: Sequence[ComparedColumn] = ()
    if level == "rows":
        compared = matched.compared
    elif level == "keys":
        compared = tuple(dict.fromkeys((*keys, *marks)))
    (position,) = matched.named([ranges.column], dataflow.name, "watermark columns")

    def side(*, is_source: bool) -> HashedColumns:
        def named(columns: Sequence[ComparedColumn]) -> list[tuple[str, object]]:
            return [
                (column.source_name, column.source_type) if is_source else (column.name, column.table_type)
                for column in columns
            ]

        return HashedColumns(ranges, named(keys), named(compared), named([position])[0])  # type: ignore[arg-type]

    keeps_several = dataflow.target.load == "merge_overwrite"
    return SidePair(source, table, side(is_source=True), side(is_source=False), keeps_several)


def _explained(dataflow: Dataflow, error: Exception) -> Exception:
    """Return an error of Spark in words; any other error as it is."""
    from resources.spark.failures import root_cause

    if "pyspark" not in type(error).__module__ and "py4j" not in type(error).__module__:
        return error
    return TargetError(
        f"table {dataflow.table}: expected rows that Spark can read, found: {root_cause(error)}"
    )
