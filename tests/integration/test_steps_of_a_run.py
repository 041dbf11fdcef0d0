"""A run of several assets whose steps are processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable

ROOT = Path(__file__).parents[2]
NAMES = ("one", "two", "three")

MODULE = """
from dagster import AssetSelection, Definitions, asset, define_asset_job, multiprocess_executor
from platform_assets.build import build_definitions

@asset(deps=["bronze/one".split("/")])
def report(): ...

defs = Definitions.merge(
    build_definitions({folder!r}, executor=multiprocess_executor.configured({{"max_concurrent": 2}})),
    Definitions(
        assets=[report],
        jobs=[define_asset_job("all", AssetSelection.all() - AssetSelection.all_asset_checks())],
    ),
)

def everything():
    return defs.resolve_job_def("all")
"""

RUN = """
import json
from dagster import DagsterInstance, execute_job, reconstructable
from steps_of_a_run import everything

if __name__ == "__main__":
    with DagsterInstance.get() as instance:
        result = execute_job(reconstructable(everything), instance=instance)
        steps = [event.step_key for event in result.all_events if event.is_step_success]
    print(json.dumps([result.run_id, result.success, sorted(steps)]))
"""


def run(folder: Path) -> tuple[str, bool, list[str], set[psutil.Process]]:
    """Return the run's id, its success, its steps, and all Java processes that it had."""
    environment = {name: value for name, value in os.environ.items() if name != "STRANDLINE_SPARK_REMOTE"} | {
        "DAGSTER_HOME": str(folder / "home"),
        "PYTHONPATH": f"{folder}:{ROOT}",
        "TMPDIR": str(folder),
    }
    java = set[psutil.Process]()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(folder / "run.py")], env=environment, stdout=subprocess.PIPE, stderr=log
        )
        while process.poll() is None:
            java |= {item for item in psutil.process_iter() if is_java_of(item, folder)}
            time.sleep(0.2)
        assert process.stdout is not None
        run_id, success, steps = json.loads(process.stdout.read())
    return run_id, success, steps, java


def is_java_of(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process is a Spark below one that names the folder.

    Spark's launcher is a Java, too, which only writes a command line; and Java forks itself to run commands.
    """
    try:
        parents, command = process.parents(), process.cmdline()
        return (
            command[0].endswith("java")
            and "org.apache.spark.launcher.Main" not in command
            and any(argument.startswith("org.apache.spark.") for argument in command)
            and "java" not in parents[0].name()
            and any(str(folder) in " ".join(parent.cmdline()) for parent in parents)
        )
    except (psutil.Error, IndexError):
        return False


@pytest.mark.full
def test_three_dataflows_share_one_spark_that_ends_with_the_run(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "dataflows").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/dagster.yaml").write_text("telemetry: {enabled: false}\n")
    (tmp_path / "steps_of_a_run.py").write_text(MODULE.format(folder=str(project)))
    (tmp_path / "run.py").write_text(textwrap.dedent(RUN))
    for number, name in enumerate(NAMES):
        (project / "landing" / name).mkdir(parents=True)
        (project / "landing" / name / "1.ndjson").write_text(f'{{"id": {number}}}\n{{"id": {number + 10}}}\n')
        (project / f"dataflows/{name}.yaml").write_text(
            f"source: {{type: files, path: ./landing/{name}, format: ndjson, schema: 'id long'}}\n"
            "watermark: {type: path}\ntarget: {load: append}\n"
        )
    run_id, success, steps, java = run(tmp_path)
    assert (success, steps) == (True, sorted([*NAMES, "report"])), (tmp_path / "log").read_text()[-3000:]
    for number, name in enumerate(NAMES):
        table = DeltaTable(str(project / f".strandline/lake/bronze/{name}")).to_pyarrow_table()
        assert sorted(table["id"].to_pylist()) == [number, number + 10]
    assert len(java) == 1, f"expected one Java process, found {java}"
    _, alive = psutil.wait_procs(java, timeout=30)
    assert alive == []
    deadline = time.monotonic() + 30
    while (tmp_path / f"strandline-run-{run_id}").exists():  # right after
        assert time.monotonic() < deadline
        time.sleep(0.1)

    # Nothing is new: no step needs Spark, so none is started.
    _, success, steps, java = run(tmp_path)
    assert (success, steps, java) == (True, sorted([*NAMES, "report"]), set())
