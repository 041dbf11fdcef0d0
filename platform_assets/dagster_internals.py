"""All that Strandline takes from Dagster beside its public API.

A test fails on a version of Dagster that these were not tried with.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from dagster import (
    AssetChecksDefinition,
    AssetKey,
    AssetsDefinition,
    AssetSelection,
    DagsterInstance,
    ExecutorDefinition,
    JobDefinition,
    ResourceDefinition,
    TimeWindowPartitionMapping,
    TimeWindowPartitionsDefinition,
)
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.asset_selection import KeysAssetSelection, SubtractAssetSelection
from dagster._core.definitions.assets.graph.asset_graph import AssetGraph
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION
from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition
from dagster._core.executor.child_process_executor import ChildProcessCommand
from dagster._core.instance import InstanceRef
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus
from dagster._utils.tags import normalize_tags

from partitions.errors import ConfigurationError

_LOG = logging.getLogger(__name__)

CheckedEvent = AssetCheckEvaluationTargetMaterializationData
"""The event of an asset that a result of a check is about."""

WITHOUT_EVENT = {SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION: True}
"""The metadata of an output for which Dagster stores no event of its asset. Steps downstream run.

Dagster skips each step downstream of an output that a step leaves out.
"""

VALIDATES = "DAGSTER_IS_DEFS_VALIDATION_CLI"
"""The variable that ``dg check defs`` and ``dagster definitions validate`` set while they load definitions."""

TRIED = "1.13."
"""The versions that these names and their behaviour were tried with."""

DAEMON_MODULE = "dagster._daemon"
"""The module of ``dagster-daemon``. A virtual environment that is not active has the command on no path."""


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
        own_graph = AssetGraph.from_assets(_assets_and_checks(self._keys, asset_graph))
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
        existing = asset_graph.get(asset).check_keys if asset_graph.has(asset) else ()
        keys = [key for key in existing if key.name not in self.dataflow_checks]
        checks = {asset_graph.assets_def_for_key(key) for key in keys}
        graph = AssetGraph.from_assets([self.step, *checks, *_inputs_of(checks, asset_graph)])
        job = UnresolvedAssetJobDefinition(
            name=self.name,
            selection=AssetSelection.checks(*self.step.check_keys, *keys),
            description=self.description,
            tags=self.tags,
            metadata=self.metadata,
            executor_def=self.executor_def,
        )
        return job.resolve(graph, default_executor_def, resource_defs)


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


def _assets_and_checks(keys: Sequence[AssetKey], asset_graph: AssetGraph) -> Sequence[AssetsDefinition]:
    """Return the definitions of some assets, of all checks on them, and of what else these checks read."""
    nodes = [asset_graph.get(key) for key in keys if asset_graph.has(key)]
    own = {node.assets_def for node in nodes}
    checks = {asset_graph.assets_def_for_key(key) for node in nodes for key in node.check_keys} - own
    return [*own, *checks, *_inputs_of(checks, asset_graph, {node.key for node in nodes})]


def _inputs_of(
    checks: Iterable[AssetsDefinition], asset_graph: AssetGraph, own_keys: AbstractSet[AssetKey] = frozenset()
) -> Sequence[AssetsDefinition]:
    """Return the definitions of what checks read, without own ones."""
    inputs = {key for check in checks for key in check.node_keys_by_input_name.values()} - own_keys
    return asset_graph.assets_defs_for_keys(key for key in inputs if asset_graph.has(key))


_NO_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}


def open_without_output(home: str) -> DagsterInstance:
    """Return the instance of a folder, which captures no output of runs.

    Args:
        home: the folder, absolute, with ``dagster.yaml``.
    """
    instance = DagsterInstance.from_ref(InstanceRef.from_dir(home, overrides={"compute_logs": _NO_LOGS}))
    # For each run Dagster configures Python's logging, which deadlocks with handlers of runs that wait for that configuration.
    handlers = instance.get_yaml_python_handlers()
    vars(instance)["get_yaml_python_handlers"] = lambda: handlers
    return instance


@dataclass(frozen=True)
class StepProcess:
    """A process of one step, such as those of the multiprocess executor.

    Attributes:
        run_id: the run.
        run_process: the process that starts the run's steps.
    """

    run_id: str
    run_process: int


def step_process() -> StepProcess | None:
    """Return what this process is the step of; None if it is no process of a single step."""
    process, parent = multiprocessing.current_process(), multiprocessing.parent_process()
    arguments = getattr(process, "_args", ())
    run = next(
        (getattr(item, "dagster_run", None) for item in arguments if isinstance(item, ChildProcessCommand)),
        None,
    )
    if parent is None or parent.pid is None or run is None:
        return None
    return StepProcess(run.run_id, parent.pid)


def is_turned_off(state: InstigatorState) -> bool:
    """Return whether somebody has turned a sensor or schedule off."""
    return state.status == InstigatorStatus.STOPPED


def storage_id(instance: DagsterInstance) -> str:
    """Return what tells the storage of an instance from all others; "" if it does not say."""
    read_id = getattr(instance.run_storage, "get_run_storage_id", None)
    return read_id() if read_id is not None else ""


def stored_text(instance: DagsterInstance, key: str) -> str | None:
    """Return a text that is stored under a key in an instance; None if there is none."""
    return instance.daemon_cursor_storage.get_cursor_values({key}).get(key)


def store_text(instance: DagsterInstance, key: str, text: str) -> None:
    """Store a text under a key in an instance, in place of an older one."""
    instance.daemon_cursor_storage.set_cursor_values({key: text})
