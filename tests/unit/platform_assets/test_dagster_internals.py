"""What is not Dagster's public API may change with any version: two modules have it, tried with one version."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import dagster
import pytest

from platform_assets import dagster_internals

ROOT = Path(__file__).parents[3]
MODULES = [
    path for name in ("partitions", "resources", "platform_assets") for path in (ROOT / name).rglob("*.py")
]


def test_this_version_of_dagster_was_tried_with_what_is_not_public() -> None:
    assert dagster.__version__.startswith(dagster_internals.TRIED), (
        f"try each name of {dagster_internals.__name__} with Dagster {dagster.__version__}, then change TRIED"
    )


def test_no_other_module_takes_what_is_not_public() -> None:
    private = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        for text in _names(ast.parse(path.read_text()))
        if text.startswith("dagster") and any(part.startswith("_") for part in text.split("."))
    }
    assert private == {"platform_assets/dagster_internals.py", "platform_assets/dagster_jobs.py"}


def _names(tree: ast.AST) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " not in node.value:
            names.append(node.value)
    return names


def test_the_daemon_is_where_its_command_starts_it() -> None:
    assert find_spec(f"{dagster_internals.DAEMON_MODULE}.__main__") is not None


def test_an_instance_without_output_opens_and_records_runs(tmp_path: Path) -> None:
    @dagster.job
    def nothing() -> None: ...

    with dagster_internals.open_without_output(str(tmp_path)) as instance:
        run = nothing.execute_in_process(instance=instance)
        assert [record.run_id for record in instance.get_runs()] == [run.run_id]
        assert not (tmp_path / "storage" / run.run_id / "compute_logs").exists()


@pytest.mark.parametrize("turned_on", [True, False])
def test_a_sensor_is_off_after_somebody_has_turned_it_off(turned_on: bool) -> None:
    from dagster._core.remote_origin import (
        InProcessCodeLocationOrigin,
        RemoteInstigatorOrigin,
        RemoteRepositoryOrigin,
    )
    from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, InstigatorType
    from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

    location = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name="m"), location_name="m")
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "r"), "orders_new_files")
    status = InstigatorStatus.RUNNING if turned_on else InstigatorStatus.STOPPED
    state = InstigatorState(origin, InstigatorType.SENSOR, status)
    assert dagster_internals.is_turned_off(state) is not turned_on


def test_a_text_is_stored_in_an_instance_until_another_one_replaces_it(tmp_path: Path) -> None:
    with dagster.DagsterInstance.local_temp(str(tmp_path)) as instance:
        found = [dagster_internals.stored_text(instance, "key")]
        for text in ("first", "second"):
            dagster_internals.store_text(instance, "key", text)
            found.append(dagster_internals.stored_text(instance, "key"))
    assert found == [None, "first", "second"]
