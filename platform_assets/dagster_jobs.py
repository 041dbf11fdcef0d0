"""Jobs that Dagster resolves with the location, each from its own assets and the checks on them.

See docs/explanation/adr/0050. Their base is not public in Dagster: like ``dagster_internals``, a test fails on a
version of Dagster that it was not tried with.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol
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
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster._core.definitions.assets.job.asset_job import get_asset_graph_for_job
from dagster._core.definitions.assets.job.asset_layer import AssetLayer
from dagster._core.definitions.dependency import BlockingAssetChecksDependencyDefinition, NodeHandle
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._utils.tags import normalize_tags

from partitions.errors import ConfigurationError
from platform_assets.dagster_internals import VALIDATES

_LOG = logging.getLogger(__name__)


Resources = Mapping[str, ResourceDefinition] | None
"""The resources of a location, by name."""


class JobParts(Protocol):
    """What a job of a location is made of."""

    @property
    def selection(self) -> AssetSelection:
        """The assets and checks that Dagster is told before the location is complete."""
        ...

    def resolve(
        self,
        job: UnresolvedAssetJobDefinition,
        asset_graph: AssetGraph,
        executor: ExecutorDefinition | None,
        resources: Resources,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        ...


class LocationJob(UnresolvedAssetJobDefinition):
    """A job that Dagster resolves when the location is complete, with the checks of a user's code.

    Dagster would look through all assets of the location for each job: 1,000 dataflows took 20 s. This one is made
    from its own parts alone.
    """

    parts: JobParts

    @classmethod
    def of(
        cls,
        name: str,
        parts: JobParts,
        *,
        description: str,
        executor: ExecutorDefinition,
        tags: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> LocationJob:
        """Return a job.

        Args:
            name: the name of the job.
            parts: what it is made of.
            description: for people.
            executor: the executor of its runs.
            tags: the tags of its runs; values that are no text are written as JSON.
            config: the config of its runs, unless they have another one.
        """
        job = cls(
            name=name,
            selection=parts.selection,
            tags=None if tags is None else normalize_tags(tags),
            config=config,
            description=description,
            executor_def=executor,
        )
        job.parts = parts
        return job

    def with_metadata(self, metadata: Mapping[str, Any]) -> LocationJob:
        """Return the same job with other metadata."""
        job = super().with_metadata(metadata)
        assert isinstance(job, LocationJob)
        job.parts = self.parts
        return job

    def resolve(
        self,
        asset_graph: AssetGraph,
        default_executor_def: ExecutorDefinition | None = None,
        resource_defs: Resources = None,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        return self.parts.resolve(self, asset_graph, default_executor_def, resource_defs)


@dataclass(frozen=True)
class OwnAssets:
    """A few assets and all checks on them in the code location, whoever defined the checks.

    The upstream assets are left out, so that a run without partitions can read a table that has partitions.

    Attributes:
        assets: the keys of the assets.
        without: a selection of the checks to leave out.
    """

    assets: Collection[AssetKey]
    without: AssetSelection

    @property
    def selection(self) -> AssetSelection:
        """The assets, with their checks."""
        return AssetSelection.assets(*self.assets) - self.without

    def resolve(
        self,
        job: UnresolvedAssetJobDefinition,
        asset_graph: AssetGraph,
        executor: ExecutorDefinition | None,
        resources: Resources,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        _check_zones(asset_graph)
        own_graph = _graph_of(self.assets, _checks_on(self.assets, asset_graph), asset_graph)
        return UnresolvedAssetJobDefinition.resolve(job, own_graph, executor, resources)


@dataclass(frozen=True)
class OneCheck:
    """A check whose step also loads its asset, and the checks of a user's code on it.

    The user's checks run after that step. The asset itself has another job.

    Attributes:
        step: the check that loads; its priority has it run first, by an executor that runs one step at a time.
        dataflow_checks: the names of the checks on the asset that a user's code does not define.
    """

    step: AssetChecksDefinition
    dataflow_checks: Collection[str]

    @property
    def selection(self) -> AssetSelection:
        """The check that loads."""
        return AssetSelection.checks(*self.step.check_keys)

    def resolve(
        self,
        job: UnresolvedAssetJobDefinition,
        asset_graph: AssetGraph,
        executor: ExecutorDefinition | None,
        resources: Resources,
    ) -> JobDefinition:
        """Return the job, once all assets and checks of the location are known."""
        (asset,) = {key.asset_key for key in self.step.check_keys}
        checks = _checks_on([asset], asset_graph, lambda key: key.name not in self.dataflow_checks)
        keys = [key for check in checks for key in check.check_keys]
        graph = _graph_of([], [self.step, *checks], asset_graph)
        whole = UnresolvedAssetJobDefinition(
            name=job.name,
            selection=AssetSelection.checks(*self.step.check_keys, *keys),
            description=job.description,
            tags=job.tags,
            metadata=job.metadata,
            executor_def=job.executor_def,
        )
        return whole.resolve(graph, executor, resources)


@dataclass(frozen=True)
class OneStep:
    """An op that changes rows of some assets, and the checks of a user's code on these assets.

    The op has an output for each group of assets with such checks, and yields the outputs of the groups that it has
    changed. Dagster skips the checks on the others.

    Attributes:
        make_step: returns the op with the outputs of these names, which have no value and are not required.
        assets: the assets that the step may change, by output.
        dataflow_checks: the checks on the assets that a user's code does not define.
    """

    make_step: Callable[[Collection[str]], OpDefinition]
    assets: Mapping[str, Collection[AssetKey]]
    dataflow_checks: AbstractSet[AssetCheckKey]

    @property
    def selection(self) -> AssetSelection:
        """Nothing: the op is no asset."""
        return AssetSelection.checks()

    def resolve(
        self,
        job: UnresolvedAssetJobDefinition,
        asset_graph: AssetGraph,
        executor: ExecutorDefinition | None,
        resources: Resources,
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
            job.name,
            node_defs=[step, *{check.node_def.name: check.node_def for check in all_checks}.values()],
            dependencies=dependencies,
            description=job.description,
        ).to_job(
            resource_defs={**(resources or {}), **own_resources},
            config=job.config,
            metadata=job.metadata,
            executor_def=job.executor_def or executor,
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
