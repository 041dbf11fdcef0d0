"""A Connect server that is gone, as a process sees it that was connected to it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from resources.outcome import Step
from resources.spark.connect_server import free_port
from resources.spark.engine import SparkEngine
from resources.spark.errors import EngineLost, SparkUnavailable
from tests.support.feed import CHECKOUT, Feed

WAY = """
import sys
from tests.support.wire import Wire
way = Wire(int(sys.argv[1]))
print(way.port, flush=True)
way.serve_forever()
"""

CONNECTED = """
import atexit, json, sys
tries = []
atexit.register(lambda: print(json.dumps(tries), flush=True))  # what is registered first comes last

from resources.spark.engine import SparkEngine
sessions = [SparkEngine(remote=sys.argv[1]).session() for _ in range(2)]

def noted(may_retry):
    def can_retry(error):
        again = may_retry(error)
        tries.append(again)
        return again
    return can_retry

for session in sessions:
    (policy,) = session.client.get_retry_policies()
    policy.max_backoff, policy.can_retry = 1, noted(policy.can_retry)
print("connected", flush=True)
sys.stdin.readline()
try:
    sessions[0].range(1).collect()
except Exception as error:
    print(type(error).__name__, flush=True)
"""


@pytest.fixture
def way(engine: SparkEngine) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A way to the server, in a process that can be killed as a server would be, and the address at its beginning."""
    port = urlsplit(engine.remote or "").port
    command = [sys.executable, "-c", WAY, str(port)]
    with subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process, f"sc://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


def test_a_process_ends_without_waiting_for_a_lost_engine(way: tuple[subprocess.Popen[str], str]) -> None:
    server, address = way
    command = [sys.executable, "-W", "ignore", "-c", CONNECTED, address]
    with subprocess.Popen(
        command, cwd=CHECKOUT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "connected\n"
        server.kill()
        server.wait()
        error, tried_again = process.communicate("\n")[0].splitlines()
    assert error == "SparkConnectGrpcException"
    tries = json.loads(tried_again)
    assert tries == sorted(tries, reverse=True), "after one call has given up none is tried again"
    assert set(tries) == {True, False}
    assert process.returncode == 0


@pytest.mark.full
def test_a_run_without_its_engine_ends_soon(way: tuple[subprocess.Popen[str], str], tmp_path: Path) -> None:
    server, address = way
    feed = Feed(tmp_path / "project", SparkEngine(remote=address))
    feed.put("1.ndjson", 1)
    killed: list[float] = []

    def meanwhile(step: Step, line: str) -> None:
        if step is Step.INTENT_PUT:
            server.kill()
            server.wait()
            killed.append(time.monotonic())

    outcome = feed.run(meanwhile)
    assert time.monotonic() - killed[0] < 30
    assert isinstance(outcome.error, EngineLost)
    again = time.monotonic()
    assert isinstance(feed.run().error, SparkUnavailable)
    assert time.monotonic() - again < 5, "this process has waited for the server already"


@pytest.mark.full
@pytest.mark.usefixtures("engine")  # a process that has no remote session yet may also run Spark itself
def test_a_run_ends_in_half_a_minute_whose_engine_was_never_there_or_says_nothing(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for port in (free_port(), silent.getsockname()[1]):
            feed = Feed(tmp_path / str(port), SparkEngine(remote=f"sc://127.0.0.1:{port}"))
            feed.put("1.ndjson", 1)
            began = time.monotonic()
            error = feed.run().error
            assert time.monotonic() - began < 30
            assert isinstance(error, SparkUnavailable)
            assert f"sc://127.0.0.1:{port}: expected an answer" in error.message
