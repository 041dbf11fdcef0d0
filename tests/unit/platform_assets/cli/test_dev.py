"""`strandline dev` starts an engine that died again, and gives up on one that dies again and again; each project has its own runs."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from partitions.errors import StrandlineError
from platform_assets.cli import dev as module
from platform_assets.cli.dev import DevProcesses
from platform_assets.dagster_home import dagster_home, project_home
from platform_assets.installation import ROOT as CHECKOUT
from resources.spark import connect_server
from resources.spark.engine import SparkEngine

STARTS = ["sh", "-c", "echo Spark Connect server started at; exec sleep 600"]


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def dev(tmp_path: Path, time: Time, monkeypatch: pytest.MonkeyPatch) -> DevProcesses:
    """An engine that is a process of a few kilobytes."""
    monkeypatch.setattr(connect_server, "_command", lambda engine, port: STARTS)
    monkeypatch.setattr(connect_server, "_environment", lambda engine: dict(os.environ))
    made = DevProcesses(tmp_path, lambda: False, time)
    made.start_engine(SparkEngine())
    return made


def kill(dev: DevProcesses) -> None:
    assert dev._engine is not None
    assert dev._engine.process is not None
    os.kill(dev._engine.process.pid, signal.SIGKILL)
    dev._engine.process.wait()


def test_a_dead_engine_starts_again_there(
    dev: DevProcesses, time: Time, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev._engine is not None
    url = dev._engine.url
    for _ in range(10):
        time.now += 300
        kill(dev)
        dev.restart_engine()
        assert dev._engine.process is not None
        assert dev._engine.process.poll() is None
    said = capsys.readouterr().out
    assert said.count(f"starting another under the same address, {url} …") == 10
    dev.end()


def test_the_lines_to_export_bring_runs_of_a_second_terminal_to_this_engine_and_ui(
    dev: DevProcesses, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dev._engine is not None
    capsys.readouterr()
    dev._say_exports("dev")
    assert capsys.readouterr().out.splitlines() == [
        "runs in a second terminal use this Spark and show in the UI after:",
        f"  export STRANDLINE_SPARK_REMOTE={dev._engine.url}",
        f"  export DAGSTER_HOME={tmp_path}",
        "  export STRANDLINE_ENV=dev",
    ]
    dev.end()


def test_with_a_server_of_the_settings_only_the_folder_of_runs_is_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STRANDLINE_SPARK_REMOTE", raising=False)
    home = tmp_path / "my runs"
    DevProcesses(home, lambda: False)._say_exports(None)
    assert capsys.readouterr().out.splitlines() == [
        "runs in a second terminal show in the UI after:",
        f"  export DAGSTER_HOME='{home}'",
    ]


def test_an_engine_that_dies_again_and_again_is_an_error(dev: DevProcesses, time: Time) -> None:
    for _ in range(3):
        time.now += 60
        kill(dev)
        dev.restart_engine()
    time.now += 60
    kill(dev)
    with pytest.raises(StrandlineError, match="was ended by SIGKILL") as caught:
        dev.restart_engine()
    assert "it has died 4 times within 10 minutes" in caught.value.message
    assert "spark.driver.memory" in caught.value.message
    assert "Spark Connect server started at" in caught.value.message
    dev.end()


def test_an_engine_that_does_not_start_again_counts_as_dead(
    dev: DevProcesses, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connect_server, "_command", lambda engine, port: ["sh", "-c", "echo no room; exit 7"])
    kill(dev)
    for _ in range(3):
        dev.restart_engine()
    with pytest.raises(StrandlineError, match="ended with code 7; it has died 4 times"):
        dev.restart_engine()
    assert "Spark Connect server ended with code 7; its output: no room" in capsys.readouterr().out


def test_a_taken_port_is_said_before_anything_is_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StrandlineError, match=f"expected 127.0.0.1:{port} to be free") as caught:
            module._check_free("127.0.0.1", port)
    assert caught.value.choices == (f"strandline dev --port {port + 1}",)


def test_each_project_has_runs_of_its_own_and_a_home_that_the_user_has_set_wins(tmp_path: Path) -> None:
    home = dagster_home(tmp_path, {})
    assert home == tmp_path / ".strandline/dagster"
    assert (CHECKOUT / "dagster.yaml").read_text() in (home / "dagster.yaml").read_text()
    assert dagster_home(tmp_path, {"DAGSTER_HOME": "/elsewhere"}) == Path("/elsewhere")
    assert project_home(CHECKOUT / "platform_assets") == CHECKOUT / ".strandline/dagster"
