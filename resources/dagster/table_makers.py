"""What makes a table that an asset reads: a dataflow, or an asset of the user's own.

Each knows the newest version that readers may see, and the rows of its partitions. See
docs/reference/dagster.md, Your own assets.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import SourceError, SourceMissing
from partitions.predicate import EVERYTHING, Among, Predicate, all_of
from partitions.target import DATAFLOW_COLUMN
from partitions.window.partition_rows import rows_of_partitions
from partitions.window.predicates import ExtentColumns
from partitions.window.state import WindowState
from resources.dagster.own_asset import OwnAsset
from resources.kinds.window.columns import UNIT, WINDOW_START
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.entries import recorded_commit
from resources.platform.platform import Platform
from resources.sources.schema import value_types_of
from resources.tables.contract.commits import Version
from resources.tables.contract.contents import TableContents


@dataclass(frozen=True)
class DataflowTable:
    """A table that a dataflow makes.

    Attributes:
        platform: the resources.
        dataflow: the dataflow.
        partitions: the partitions of its own table; None if it has none.
        now: the clock, aware.
        asset: the asset, ``<layer>/<name>``.
    """

    platform: Platform
    dataflow: Dataflow
    partitions: WindowAssetPartitions | None
    now: datetime
    asset: str

    @property
    def table(self) -> str:
        """The table, ``<layer>/<name>``."""
        return self.platform.lineage.table_of(self.asset)

    @property
    def has_partitions(self) -> bool:
        """Whether it is the dataflow's own table, and has partitions."""
        return self.partitions is not None and self._is_own_table

    def newest(self, contents: TableContents) -> Version:
        """Return the newest version; that of the newest entry while a load has committed without one.

        Commits of other writers and of maintenance count.
        """
        newest = contents.newest_version()
        entry = self.platform.log.newest(self.dataflow.name) if self._is_own_table else None
        if entry is None or entry.table_version is None or entry.table_version == newest:
            return newest
        head = self.platform.table(self.dataflow).head(recorded_commit(entry), entry.app_id)
        return entry.table_version if head.has_recorded and head.tagged_commits else newest

    def own_rows(self, contents: TableContents) -> Predicate:
        """Return the rows of the dataflow, if it shares the table."""
        shared = self.dataflow.target.shared and self._is_own_table and DATAFLOW_COLUMN in contents.columns()
        return Among(DATAFLOW_COLUMN, (self.dataflow.name,)) if shared else EVERYTHING

    def rows_of(
        self, keys: Sequence[str], contents: TableContents, version: Version, own: Predicate
    ) -> Predicate:
        """Return the rows of some partitions, by the columns of window and unit."""
        partitions, dataflow = self.partitions, self.dataflow
        assert partitions is not None
        source, watermark, tagged = dataflow.source.row_columns, dataflow.window, dataflow.tagged
        units: Mapping[str, str] = {} if tagged or partitions.units is None else source.units
        time = (WINDOW_START if tagged else source.window) if partitions.timed else None
        columns = ExtentColumns.checked(_value_types(contents), time, units, watermark.zone)

        def identities(rows: Predicate) -> Iterable[str]:
            return _texts(contents, version, all_of((own, rows))) if tagged else self._loaded_units()

        return rows_of_partitions(
            partitions,
            keys,
            watermark.windows(self.now) if watermark.time_entry else None,
            columns,
            unit_column=UNIT if tagged else None,
            identities=identities,
        )

    @property
    def _is_own_table(self) -> bool:
        """Whether the asset is the dataflow's own table, and none beside it."""
        return self.asset == self.dataflow.asset

    def _loaded_units(self) -> Iterable[str]:
        entry = self.platform.log.newest(self.dataflow.name)
        return WindowState.of(entry.state()).units if entry is not None else ()


@dataclass(frozen=True)
class OwnAssetTable:
    """A table that the table IO manager writes for an asset of the user's own.

    Attributes:
        definition: the asset.
    """

    definition: OwnAsset

    @property
    def asset(self) -> str:
        """The asset's key as text."""
        return self.definition.key.to_user_string()

    @property
    def table(self) -> str:
        """The table, ``<layer>/<name>``."""
        return self.definition.table

    @property
    def has_partitions(self) -> bool:
        """Whether the asset has partitions."""
        return self.definition.partitions is not None

    def newest(self, contents: TableContents) -> Version:
        """Return the newest version: each run of the asset makes one.

        Raises:
            SourceMissing: the asset has stored nothing yet.
        """
        try:
            return contents.newest_version()
        except SourceError as error:
            if not error.is_of_missing_source:
                raise
            raise SourceMissing(
                f"{self.definition.what}: expected the table {self.table} that it has stored, found none",
                "Materialize the asset first; or give the input the IO manager that stores the asset",
            ) from error

    def own_rows(self, contents: TableContents) -> Predicate:  # noqa: ARG002
        """Return all rows."""
        return EVERYTHING

    def rows_of(
        self,
        keys: Sequence[str],
        contents: TableContents,
        version: Version,  # noqa: ARG002
        own: Predicate,  # noqa: ARG002
    ) -> Predicate:
        """Return the rows of some partitions, by the columns that the asset's metadata names."""
        partitions = self.definition.partitions
        assert partitions is not None
        return partitions.rows_of(keys, _value_types(contents))


def _value_types(contents: TableContents) -> dict[str, Any]:
    described = contents.schema()
    return dict(value_types_of(json.loads(described[1]))) if described else {}


def _texts(contents: TableContents, version: Version, rows: Predicate) -> Iterator[str]:
    """Yield the distinct identities of the units of rows."""
    known_texts: set[str] = set()
    for batch in contents.arrow_rows(version, rows, [UNIT]):
        new = {text for text in batch.column(0).unique().to_pylist() if text is not None} - known_texts
        known_texts |= new
        yield from sorted(new)
