"""A command with an owner does not outlive it, whatever kills the owner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil

import resources.spark.owned_process as owned

SLEEP = "import time; time.sleep(600)"


def start(owner: psutil.Process, folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    arguments = [str(owner.pid), repr(owner.create_time()), str(folder), *command]
    return subprocess.Popen([sys.executable, "-P", owned.__file__, *arguments], start_new_session=True)


def test_the_command_ends_and_its_folder_goes_when_its_owner_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    waits = "import pathlib, sys, time; pathlib.Path(sys.argv[1]).touch(); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", SLEEP]) as owner:
        guard = start(
            psutil.Process(owner.pid), folder, [sys.executable, "-c", waits, str(tmp_path / "started")]
        )
        while not (tmp_path / "started").exists():
            assert guard.poll() is None
        (child,) = psutil.Process(guard.pid).children()
        owner.kill()
    guard.wait(30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    assert not folder.exists()


def test_a_number_that_passed_to_another_process_is_not_the_owner(tmp_path: Path) -> None:
    me = psutil.Process()
    arguments = [str(me.pid), repr(me.create_time() - 1), str(tmp_path / "run"), sys.executable, "-c", SLEEP]
    guard = subprocess.Popen([sys.executable, "-P", owned.__file__, *arguments], start_new_session=True)
    guard.wait(30)


def test_the_code_of_a_command_that_ends_by_itself_is_kept(tmp_path: Path) -> None:
    code = [sys.executable, "-c", "raise SystemExit(7)"]
    assert start(psutil.Process(), tmp_path / "run", code).wait(30) == 7
