"""Jobs that Dagster resolves with the location, each from its own assets and the checks on them.

See docs/explanation/adr/0050. Their base is not public in Dagster: like ``dagster_internals``, a test fails on a
version of Dagster that it was not tried with.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any
from weakref import WeakSet

from dagster import (
    AssetCheckKey,
    AssetChecksDefinition,
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    DependencyDefinition,
    ExecutorDefinition,
    GraphDefinition,
    JobDefinition,
    NodeInvocation,
    OpDefinition,
    ResourceDefinition,
    TimeWindowPartitionMapping,
    TimeWindowPartitionsDefinition,
)
from dagster._core.definitions.asset_selection import KeysAssetSelection, SubtractAssetSelection
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster._core.definitions.assets.job.asset_job import get_asset_graph_for_job
from dagster._core.definitions.assets.job.asset_layer import AssetLayer
from dagster._core.definitions.dependency import BlockingAssetChecksDependencyDefinition, NodeHandle
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._utils.tags import normalize_tags

from partitions.errors import ConfigurationError
from platform_assets.dagster_internals import VALIDATES

_LOG = logging.getLogger(__name__)


class JobOfOwnAssets(UnresolvedAssetJobDefinition):
    """A job of a few assets and of all checks on them in the code location, whoever defined the checks.

    Dagster resolves it when the location is complete. It would look through all assets of the location for each
    job: 1,000 dataflows took 20 s. This one is made from its own assets and their checks alone. It leaves out the
    upstream assets, so that a run without partitions can read a table that has partitions.
    """

    @classmethod
    def of(
        cls,
        name: str,
        assets: Collection[AssetKey],
        without: AssetSelection,
        *,
        tags: Mapping[str, Any],
        description: str,
        executor: ExecutorDefinition,
    ) -> JobOfOwnAssets:
        """Return the job of some assets.

        Args:
            name: the name of the job.
            assets: the keys of the assets.
            without: a selection of the checks to leave out.
            tags: the tags of its runs; values that are no text are written as JSON.
            description: for people.
            executor: the executor of its runs.
        """
        return cls(
            name=name,
            selection=AssetSelection.assets(*assets) - without,
            tags=normalize_tags(tags),
            description=description,
            executor_def=executor,
        )

    def resolve(
        self,
        asset_graph: AssetGraph,
        default_executor_def: ExecutorDefinition | None = None,
        resource_defs: Mapping[str, ResourceDefinition] | None = None,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        _check_zones(asset_graph)
        checks = _checks_on(self._keys, asset_graph)
        own_graph = _graph_of(self._keys, checks, asset_graph)
        return super().resolve(own_graph, default_executor_def, resource_defs)

    @property
    def _keys(self) -> Sequence[AssetKey]:
        assert isinstance(self.selection, SubtractAssetSelection)
        assert isinstance(self.selection.left, KeysAssetSelection)
        return self.selection.left.selected_keys


class JobOfOneCheck(UnresolvedAssetJobDefinition):
    """A job of a check whose step also loads its asset, and of the checks of a user's code on it.

    The user's checks run after that step. The asset itself has another job. Dagster resolves it as :class:`JobOfOwnAssets`.
    """

    step: AssetChecksDefinition
    dataflow_checks: Collection[str]

    @classmethod
    def of(
        cls,
        name: str,
        step: AssetChecksDefinition,
        dataflow_checks: Collection[str],
        *,
        tags: Mapping[str, Any],
        description: str,
        executor: ExecutorDefinition,
    ) -> JobOfOneCheck:
        """Return the job of a step.

        Args:
            name: the name of the job.
            step: the check that loads; its priority has it run first.
            dataflow_checks: the names of the checks on the asset that a user's code does not define.
            tags: the tags of its runs; values that are no text are written as JSON.
            description: for people.
            executor: the executor of its runs, which runs one step at a time.
        """
        selection = AssetSelection.checks(*step.check_keys)
        job = cls(
            name=name,
            selection=selection,
            tags=normalize_tags(tags),
            description=description,
            executor_def=executor,
        )
        job.step, job.dataflow_checks = step, dataflow_checks
        return job

    def with_metadata(self, metadata: Mapping[str, Any]) -> JobOfOneCheck:
        """Return the same job with other metadata."""
        job = super().with_metadata(metadata)
        assert isinstance(job, JobOfOneCheck)
        job.step, job.dataflow_checks = self.step, self.dataflow_checks
        return job

    def resolve(
        self,
        asset_graph: AssetGraph,
        default_executor_def: ExecutorDefinition | None = None,
        resource_defs: Mapping[str, ResourceDefinition] | None = None,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        (asset,) = {key.asset_key for key in self.step.check_keys}
        checks = _checks_on([asset], asset_graph, lambda key: key.name not in self.dataflow_checks)
        keys = [key for check in checks for key in check.check_keys]
        graph = _graph_of([], [self.step, *checks], asset_graph)
        job = UnresolvedAssetJobDefinition(
            name=self.name,
            selection=AssetSelection.checks(*self.step.check_keys, *keys),
            description=self.description,
            tags=self.tags,
            metadata=self.metadata,
            executor_def=self.executor_def,
        )
        return job.resolve(graph, default_executor_def, resource_defs)


class JobOfOneStep(UnresolvedAssetJobDefinition):
    """A job of an op that changes rows of some assets, and of the checks of a user's code on these assets.

    The op has an output for each group of assets with such checks, and yields the outputs of the groups that it has
    changed. Dagster skips the checks on the others. It resolves the job as :class:`JobOfOwnAssets`.
    """

    make_step: Callable[[Collection[str]], OpDefinition]
    assets: Mapping[str, Collection[AssetKey]]
    dataflow_checks: AbstractSet[AssetCheckKey]

    @classmethod
    def of(
        cls,
        name: str,
        make_step: Callable[[Collection[str]], OpDefinition],
        assets: Mapping[str, Collection[AssetKey]],
        dataflow_checks: AbstractSet[AssetCheckKey],
        *,
        config: Mapping[str, Any],
        description: str,
        executor: ExecutorDefinition,
    ) -> JobOfOneStep:
        """Return the job of a step.

        Args:
            name: the name of the job.
            make_step: returns the op with the outputs of these names, which have no value and are not required.
            assets: the assets that the step may change, by output.
            dataflow_checks: the checks on the assets that a user's code does not define.
            config: the config of its runs, unless they have another one.
            description: for people.
            executor: the executor of its runs.
        """
        selection = AssetSelection.checks()
        job = cls(
            name=name, selection=selection, config=config, description=description, executor_def=executor
        )
        job.make_step, job.assets, job.dataflow_checks = make_step, assets, dataflow_checks
        return job

    def with_metadata(self, metadata: Mapping[str, Any]) -> JobOfOneStep:
        """Return the same job with other metadata."""
        job = super().with_metadata(metadata)
        assert isinstance(job, JobOfOneStep)
        job.make_step, job.assets, job.dataflow_checks = self.make_step, self.assets, self.dataflow_checks
        return job

    def resolve(
        self,
        asset_graph: AssetGraph,
        default_executor_def: ExecutorDefinition | None = None,
        resource_defs: Mapping[str, ResourceDefinition] | None = None,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        checks = {
            output: _checks_on(keys, asset_graph, lambda key: key not in self.dataflow_checks)
            for output, keys in self.assets.items()
        }
        all_checks = [check for of_output in checks.values() for check in of_output]
        step = self.make_step([output for output, of_output in checks.items() if of_output])
        own_graph = _graph_of([], all_checks, asset_graph)
        check_keys = [key for check in all_checks for key in check.check_keys]
        job_graph = get_asset_graph_for_job(own_graph, AssetSelection.checks(*check_keys))
        dependencies: dict[NodeInvocation, dict[str, Any]] = {NodeInvocation(step.name): {}}
        checks_by_node = dict[NodeHandle, AssetsDefinition]()
        for output, of_output in checks.items():
            after_step = BlockingAssetChecksDependencyDefinition(
                [DependencyDefinition(step.name, output)], None
            )
            for check in of_output:
                alias, inputs = f"{output}__{check.node_def.name}", check.node_keys_by_input_name
                checks_by_node[NodeHandle(alias, None)] = check
                dependencies[NodeInvocation(check.node_def.name, alias)] = {
                    name: after_step for name, key in inputs.items() if key in self.assets[output]
                }
        own_resources = {key: of for check in all_checks for key, of in check.resource_defs.items()}
        return GraphDefinition(
            self.name,
            node_defs=[step, *{check.node_def.name: check.node_def for check in all_checks}.values()],
            dependencies=dependencies,
            description=self.description,
        ).to_job(
            resource_defs={**(resource_defs or {}), **own_resources},
            config=self.config,
            metadata=self.metadata,
            executor_def=self.executor_def or default_executor_def,
            asset_layer=AssetLayer.from_mapping(checks_by_node, job_graph),
        )


_checked_graphs: WeakSet[AssetGraph] = WeakSet()


def _check_zones(asset_graph: AssetGraph) -> None:
    """Warn of assets whose windows have another zone than those of a Strandline table that they read.

    Runs of such an asset fail before the table's IO manager is asked, with Dagster's own error.

    Raises:
        ConfigurationError: there is one, and Dagster validates the definitions.
    """
    if asset_graph in _checked_graphs:
        return
    _checked_graphs.add(asset_graph)
    for text in _zone_conflicts(asset_graph):
        if os.environ.get(VALIDATES):
            raise ConfigurationError(text)
        _LOG.warning(text)


def _zone_conflicts(asset_graph: AssetGraph) -> Iterator[str]:
    for node in asset_graph.asset_nodes:
        windows = node.partitions_def
        if not isinstance(windows, TimeWindowPartitionsDefinition):
            continue
        for table in asset_graph.get_parents(node):
            above = table.partitions_def
            if not isinstance(above, TimeWindowPartitionsDefinition) or above.timezone == windows.timezone:
                continue
            is_table = table.is_materializable and table.io_manager_key.startswith("strandline_")
            mapping = asset_graph.get_partition_mapping(node.key, table.key)
            if is_table and isinstance(mapping, TimeWindowPartitionMapping):
                yield (
                    f"asset {node.key.to_user_string()}: expected time windows in the zone {above.timezone}, as"
                    f" {table.key.to_user_string()} has them, found {windows.timezone}: Dagster maps windows of one zone"
                    f' only, so its runs fail. Give its partitions timezone="{above.timezone}"; or read the whole table by'
                    " AssetIn(partition_mapping=AllPartitionMapping())"
                )


def _checks_on(
    keys: Collection[AssetKey],
    asset_graph: AssetGraph,
    is_selected: Callable[[AssetCheckKey], bool] = lambda _: True,
) -> Sequence[AssetsDefinition]:
    """Return the definitions of checks on some assets, without those on other assets.

    A step that evaluates checks of other assets, too, and cannot leave these out, is not among them.
    """
    existing = (asset_graph.get(key).check_keys for key in keys if asset_graph.has(key))
    selected_keys = {key for of_asset in existing for key in of_asset if is_selected(key)}
    checks = []
    for definition in {asset_graph.assets_def_for_key(key) for key in selected_keys}:
        if definition.keys:
            continue
        if definition.check_keys <= selected_keys:
            checks.append(definition)
        elif definition.can_subset:
            checks.append(definition.subset_for(set(), definition.check_keys & selected_keys))
    return sorted(checks, key=lambda definition: definition.node_def.name)


def _graph_of(
    keys: Collection[AssetKey], checks: Collection[AssetsDefinition], asset_graph: AssetGraph
) -> AssetGraph:
    """Return the graph of assets, checks and what these read, with the nodes of a larger graph.

    Dagster would make all nodes anew from their definitions, which takes as long as the rest of the job.
    """
    inputs = (key for check in checks for key in check.node_keys_by_input_name.values())
    nodes = {key: asset_graph.get(key) for key in (*keys, *inputs) if asset_graph.has(key)}
    definitions = {*(node.assets_def for node in nodes.values()), *checks}
    return AssetGraph(nodes, {key: definition for definition in definitions for key in definition.check_keys})
