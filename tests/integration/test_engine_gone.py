"""A Connect server that is gone, as a process sees it that was connected to it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from resources.spark import SparkEngine
from tests.support.feed import CHECKOUT

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

from resources.spark import SparkEngine
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


def test_a_process_ends_without_waiting_for_the_engine_that_it_has_lost(
    way: tuple[subprocess.Popen[str], str],
) -> None:
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
