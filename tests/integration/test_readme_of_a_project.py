"""The README that ``strandline init`` writes: its commands, run one after the other in the fresh project."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from resources.spark.connect_server import free_port
from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment

_BIN = Path(sys.executable).parent


class Shell:
    """A shell in a fresh project, with the commands of its README."""

    def __init__(self, project: Path, engine: SparkEngine) -> None:
        self.project = project
        self.environment = clean_environment() | {
            "PATH": f"{_BIN}{os.pathsep}{os.environ['PATH']}",
            "STRANDLINE_SPARK_REMOTE": str(engine.remote),
        }

    @property
    def commands(self) -> list[str]:
        blocks = re.findall(r"```sh\n(.*?)```", (self.project / "README.md").read_text(), re.DOTALL)
        return [line for block in blocks for line in block.splitlines() if line]

    def run(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def end_once_it_prints(self, line: str, text: str) -> str:
        """Run a command until it prints a text, end it as Ctrl-C does, and return what it has printed."""
        with subprocess.Popen(
            ["bash", "-c", f"exec {line}"],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            assert process.stdout is not None
            output = ""
            for printed in process.stdout:
                output += printed
                if text in printed:
                    process.send_signal(signal.SIGINT)
        assert process.returncode == 0, output
        return output


def init(folder: Path, *words: str) -> None:
    command = [str(_BIN / "strandline"), "init", str(folder), *words]
    subprocess.run(command, check=True, capture_output=True, env=clean_environment())


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--kind", "path"), "bronze/events: 1 row\n"),
        (("--kind", "stream"), "silver/events: 1 row\n"),
        (("--source", "python"), "bronze/events: 2 rows\n"),
    ],
    ids=["files", "stream", "python"],
)
def test_the_commands_of_the_readme_load_show_and_test_in_a_fresh_project(
    tmp_path: Path, engine: SparkEngine, words: tuple[str, ...], shown: str
) -> None:
    init(tmp_path / "shop", *words)
    shell = Shell(tmp_path / "shop", engine)
    answers = {line.split(" #")[0].rstrip(): "" for line in shell.commands}
    for line in shell.commands:
        if line.startswith("strandline dev"):
            continue
        answers[line.split(" #")[0].rstrip()] = shell.run(line)
    assert answers["strandline show events"].endswith(shown)
    assert answers["strandline test"].startswith("events/first: passed\n1 test: 1 passed, 0 failed")
    if "--kind" in words and "path" in words:
        port = free_port()
        output = shell.end_once_it_prints(f"strandline dev --paused --port {port}", "Ctrl-C stops")
        assert f"Dagster UI: http://127.0.0.1:{port}\n" in output
