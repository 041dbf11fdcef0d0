"""Store what a user's own asset returned in its table (docs/reference/dagster.md, Your own assets)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dagster import OutputContext

from partitions.errors import ConfigurationError, StrandlineError
from partitions.plan import pluralize
from partitions.unit_values import ValueType
from resources.connections.places import Place
from resources.dagster.asset_rows import PartitionRows, open_rows
from resources.dagster.output_metadata import add_run_metadata, partition_keys_of
from resources.dagster.own_asset import OwnAsset
from resources.dagster.own_partitions import OwnPartitions
from resources.dagster.own_tables import OwnTable
from resources.dagster.table_inputs import pin_version
from resources.dialects.arrow import arrow_expression
from resources.platform.platform import Platform
from resources.sources.schema import value_types_of
from resources.staging import Staging
from resources.tables.contract.commits import TaggedCommit, Version
from resources.tables.contract.contents import TableContents

DescribeStored = Callable[[TableContents, TaggedCommit, Place], Mapping[str, Any]]
"""Metadata of a table's contents, of the commit that a run has made, and of the table's place."""

_PARTITION_ROWS = "dagster/partition_row_count"


@dataclass(frozen=True)
class OwnOutput:
    """One output of one step.

    Attributes:
        platform: the resources.
        asset: the asset.
        describe: returns the metadata of a commit.
        context: Dagster's context of the output.
    """

    platform: Platform
    asset: OwnAsset
    describe: DescribeStored
    context: OutputContext

    def store(self, value: object) -> None:
        """Store the value in one commit, and add the metadata of the output.

        Raises:
            StrandlineError: the table or the value is refused, or the write failed; nothing was stored.
        """
        asset, table = self.asset, OwnTable(self.platform, self.asset)
        if asset.partitions is not None and not self.context.has_asset_partitions:
            raise ConfigurationError(
                f"{asset.what}: expected a run over its partitions, found a run without any, which would replace "
                "all rows of the table. Nothing was stored. Choose partitions for the run"
            )
        table.check()
        staging = Staging.below(self.platform.lake, asset.table, asset.app_id)
        zone = asset.partitions.zone_name if asset.partitions is not None else "UTC"
        with open_rows(
            value,
            asset.what,
            table=table.columns(),
            declared=asset.schema,
            find_partitions=self._partitions,
            zone=zone,
            staging=staging,
            session=lambda: self.platform.engines.of_format(table.table_format).session(),
        ) as rows:
            commit = table.replace(rows)
        self._pin(commit.version)
        self.context.log.info(
            "stored %s in %s, version %s", pluralize(commit.rows, "row"), asset.table, commit.version
        )
        self._describe(table, commit)

    def _partitions(self, types: Mapping[str, ValueType]) -> PartitionRows | None:
        """Return the rows of the run's partitions; None if the asset has no partitions."""
        partitions, keys = self.asset.partitions, sorted(partition_keys_of(self.context))
        if partitions is None:
            return None
        text = (
            f"partition {keys[0]}"
            if len(keys) == 1
            else f"{pluralize(len(keys), 'partition')} from {keys[0]} to {keys[-1]}"
        )
        partitions.check_distinct(types, self.context.step_context.instance)
        return PartitionRows(partitions.rows_of(keys, types), partitions.columns, text)

    def _pin(self, version: Version) -> None:
        """Let the steps behind this one read what it has stored."""
        step = self.context.step_context
        pin_version(step.instance, step.run_id, self.asset.key.to_user_string(), version)

    def _describe(self, table: OwnTable, commit: TaggedCommit) -> None:
        contents = table.contents
        metadata = self.describe(contents, commit, table.place)
        keys, partitions = partition_keys_of(self.context), self.asset.partitions
        if partitions is None:
            self.context.add_output_metadata(metadata)
            return
        add_run_metadata(self.context, metadata, ("table_version",))
        # The rows are stored: a run does not fail because they cannot be counted.
        with suppress(StrandlineError):
            for key, count in _count_rows(partitions, keys, contents, commit).items():
                self.context.step_context.add_asset_metadata(
                    {"rows": count, _PARTITION_ROWS: count},
                    asset_key=self.asset.key,
                    partition_key=key,
                )


def _count_rows(
    partitions: OwnPartitions, keys: Sequence[str], contents: TableContents, commit: TaggedCommit
) -> dict[str, int]:
    """Return the rows of each partition that a commit has stored."""
    if len(keys) == 1:
        return {keys[0]: commit.rows}
    import pyarrow as pa

    described = contents.schema()
    types = value_types_of(json.loads(described[1])) if described is not None else {}
    columns = list(partitions.columns)
    rows = contents.arrow_rows(commit.version, partitions.rows_of(keys, types), columns)
    distinct = pa.TableGroupBy(rows.read_all(), columns).aggregate([([], "count_all")])
    counts = {}
    for key in keys:
        inside = arrow_expression(partitions.rows_of([key], types), distinct.schema)
        counts[key] = sum(distinct.filter(inside)["count_all"].to_pylist())
    return counts
