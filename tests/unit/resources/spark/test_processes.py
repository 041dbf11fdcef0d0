"""What was started ends with all that it has started in turn, and says how it ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from resources.spark.processes import describe_exit, last_lines, start_process, stop_processes

GRANDCHILD = """
import os, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time; {}; print('ready', flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def begun(folder: Path, does: str) -> tuple[list[int], Callable[[float], None]]:
    log = folder / "log"
    process = start_process([sys.executable, "-c", GRANDCHILD.format(does)], log, os.environ)
    until(lambda: log.read_text().endswith("\n"))
    return [process.pid, int(log.read_text())], lambda patience: stop_processes([process], patience)


def test_a_child_that_is_slower_than_its_parent_is_waited_for(tmp_path: Path) -> None:
    slow = "signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), exit()))"
    pids, finish = begun(tmp_path, slow)
    assert all(map(lives, pids))
    finish(20)
    assert not any(map(lives, pids))


def test_a_child_that_does_not_end_politely_is_killed_though_its_parent_is_gone(tmp_path: Path) -> None:
    pids, finish = begun(tmp_path, "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    finish(0.3)
    assert not any(map(lives, pids))


def test_an_end_is_told_with_its_signal_or_code_and_the_last_lines(tmp_path: Path) -> None:
    assert describe_exit(-9) == "was ended by SIGKILL (often because memory ran out)"
    assert (describe_exit(-15), describe_exit(2)) == ("was ended by SIGTERM", "ended with code 2")
    (tmp_path / "log").write_text("1\n2\n3\n4\n5\n")
    assert last_lines(tmp_path / "log") == "3 | 4 | 5"
    assert last_lines(tmp_path / "none") == ""
