"""All that Strandline takes from Dagster beside its public API.

A test fails on a version of Dagster that these were not tried with.
"""

from __future__ import annotations

import multiprocessing
from dataclasses import dataclass

from dagster import (
    DagsterInstance,
)
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.definitions.source_asset import SYSTEM_METADATA_KEY_SOURCE_ASSET_OBSERVATION
from dagster._core.executor.child_process_executor import ChildProcessCommand
from dagster._core.instance import InstanceRef
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus

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
