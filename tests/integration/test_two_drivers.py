"""Two Spark drivers that commit to one Delta table on S3, the first behind a proxy that delays, loses and repeats requests (docs/explanation/adr/0020).

Each driver is a process of its own. Merges by keys are commits of Strandline's own where the table is plain, else Delta's.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from partitions.errors import WriteConflict
from partitions.loads import Append, OrderByColumn, Upsert
from platform_assets.installation import cache_folder
from resources.connections.places import Place
from resources.spark.connect_server import connect_server
from resources.spark.engine import SparkEngine
from resources.tables.contract.commits import Tag
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.table import DeltaLakeTable
from tests.support.engine import QUICK
from tests.support.http import serving
from tests.support.proxy import CountingProxy, Record
from tests.support.seaweed import Seaweed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.s3, pytest.mark.full, pytest.mark.timeout(900)]

FIRST = f"_delta_log/{1:020d}.json"
"""The version that the tests' drivers commit, after the one that has made the table."""

NOT_PLAIN = "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols"
"""A default of a session's that gives its new tables a property, so that Delta's own writer merges into them."""

Row = tuple[int, str]


@pytest.fixture(scope="module")
def servers(seaweed: Seaweed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ...]]:
    """The addresses of two engines, each with a driver of its own."""
    engine = SparkEngine(
        master="local[2]", conf=QUICK, cache=cache_folder(), places=(Place("s3://any", seaweed.connection),)
    )
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(
                connect_server(engine, tmp_path_factory.mktemp("s3") / "connect.log", patience=600)
            )
            for _ in range(2)
        )


@dataclass
class Drivers:
    """A table in a bucket, and two drivers that write to it, each through a proxy of its own.

    Attributes:
        place: of the table, without a proxy.
        places: of the table, as each driver reaches it.
        sessions: one on each driver.
        records: of each driver's proxy.
    """

    place: Place
    places: tuple[Place, ...]
    sessions: tuple[SparkSession, ...]
    records: tuple[Record, ...]

    @property
    def record(self) -> Record:
        """Of the first driver's proxy."""
        return self.records[0]

    def merge(self, driver: int, app: str, number: int, *rows: Row) -> None:
        """Merge rows by their ids, under a number of a dataflow."""
        self._write(driver, app, number, rows, Upsert(("id",), (OrderByColumn("value"),)), base=0)

    def make(self, *rows: Row) -> None:
        """Make the table, as version 0."""
        self._write(0, "maker", 1, rows, Append(), base=None)

    def _write(
        self,
        driver: int,
        app: str,
        number: int,
        rows: tuple[Row, ...],
        load: Append | Upsert,
        base: int | None,
    ) -> None:
        given = self.sessions[driver].createDataFrame(list(rows), "id long, value string")
        tag = Tag(app, number, f"owner {number} of {app}")
        DeltaLakeTable(self.places[driver]).write(given, load, tag, "{}", base=base)

    @contextmanager
    def late(self, app: str, *rows: Row) -> Iterator[Future[None]]:
        """The first driver merges rows under number 1; its commit waits between its look and the store, as often as it is sent, until this is over."""
        self.record.delay, self.record.delay_at = 1000, FIRST
        with ThreadPoolExecutor(1) as pool:
            merged = pool.submit(self.merge, 0, app, 1, *rows)
            assert self.record.delayed.wait(120)
            try:
                yield merged
            finally:
                self.record.released.set()

    @property
    def rows(self) -> list[Row]:
        """As a new reader sees them."""
        table = DeltaLog(self.place).table()
        assert table is not None
        return sorted((row["id"], row["value"]) for row in table.to_pyarrow_table().to_pylist())

    @property
    def apps(self) -> list[str | None]:
        """Whose tag each version has."""
        return [next(iter(commit.tags), None) for commit in DeltaLog(self.place).commits(None)]

    @property
    def unconditional(self) -> list[str]:
        """The commits that were put over whatever was there."""
        puts = [put for record in self.records for put in record.puts]
        return [path for path, conditional in puts if _is_commit(path) and not conditional]


def _is_commit(path: str) -> bool:
    return "/_delta_log/0" in path and path.split("?")[0].endswith(".json")


@pytest.fixture(params=["Strandline", "Delta"])
def merges_by(request: pytest.FixtureRequest) -> str:
    """Who commits the merges."""
    return str(request.param)


@pytest.fixture
def drivers(seaweed: Seaweed, servers: tuple[str, ...], merges_by: str) -> Iterator[Drivers]:
    with ExitStack() as stack:
        place = stack.enter_context(seaweed.bucket()).child("lake/t")
        proxies = [stack.enter_context(serving(CountingProxy(seaweed.port))) for _ in servers]
        places = tuple(replace(place, connection=seaweed.through(proxy.port)) for proxy in proxies)
        sessions = tuple(
            SparkEngine(remote=url, places=(reached,)).session()
            for url, reached in zip(servers, places, strict=True)
        )
        made = Drivers(place, places, sessions, tuple(proxy.record for proxy in proxies))
        if merges_by == "Delta":
            sessions[0].conf.set(NOT_PLAIN, "32")
        made.make((1, "a"), (2, "a"))
        yield made
        made.record.released.set()


def test_each_commit_is_a_conditional_put(drivers: Drivers) -> None:
    drivers.merge(0, "app", 1, (2, "b"), (3, "b"))
    table = f"delta.`{drivers.place.spark_url}`"
    drivers.sessions[0].sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('note' = 'x')").collect()
    assert drivers.rows == [(1, "a"), (2, "b"), (3, "b")]
    assert drivers.apps == ["maker", "app", None]
    assert drivers.unconditional == []


@pytest.mark.parametrize("fault", ["lose", "repeat"])
def test_a_commit_with_a_lost_answer_or_sent_twice_lands_once(drivers: Drivers, fault: str) -> None:
    setattr(drivers.record, fault, 1)
    setattr(drivers.record, f"{fault}_at", FIRST)
    drivers.merge(0, "app", 1, (2, "b"))
    assert getattr(drivers.record, fault) == 0
    assert (drivers.rows, drivers.apps) == ([(1, "a"), (2, "b")], ["maker", "app"])


@pytest.mark.parametrize("merges_by", ["Delta"], indirect=True)
def test_one_of_two_drivers_at_a_version_wins_and_the_other_conflicts(drivers: Drivers) -> None:
    with drivers.late("slow", (1, "slow")) as slow:
        drivers.merge(1, "fast", 1, (2, "fast"))
    with pytest.raises(WriteConflict, match=r"DELTA_CONCURRENT|Concurrent"):
        slow.result()
    assert (drivers.rows, drivers.apps) == ([(1, "a"), (2, "fast")], ["maker", "fast"])
    drivers.merge(0, "slow", 1, (1, "slow"))
    assert (drivers.rows, drivers.apps) == ([(1, "slow"), (2, "fast")], ["maker", "fast", "slow"])


@pytest.mark.parametrize("merges_by", ["Strandline"], indirect=True)
def test_the_loser_of_two_drivers_looks_again_and_both_land(drivers: Drivers) -> None:
    with drivers.late("slow", (1, "slow"), (2, "slow")) as slow:
        drivers.merge(1, "fast", 1, (2, "fast"), (3, "fast"))
    slow.result()
    assert (drivers.rows, drivers.apps) == (
        [(1, "slow"), (2, "slow"), (3, "fast")],
        ["maker", "fast", "slow"],
    )


def test_a_writer_that_was_believed_dead_cannot_overwrite_its_recovery(drivers: Drivers) -> None:
    with drivers.late("app", (3, "zombie")) as zombie:
        drivers.merge(1, "app", 1, (3, "recovery"))
    with suppress(Exception):  # the protocol looks whose commit holds the number, whatever a write raises
        zombie.result()
    assert (drivers.rows, drivers.apps) == ([(1, "a"), (2, "a"), (3, "recovery")], ["maker", "app"])


def test_a_writer_that_was_believed_dead_cannot_overwrite_the_fence_of_its_number(drivers: Drivers) -> None:
    with drivers.late("app", (3, "zombie")) as zombie:
        fence = Tag("app", 1, "fence", gives_up=True)
        DeltaLakeTable(drivers.places[1]).give_up(drivers.sessions[1], fence, "{}", None)
    with suppress(Exception):
        zombie.result()
    assert (drivers.rows, drivers.apps) == ([(1, "a"), (2, "a")], ["maker", "app"])
    commit = DeltaLakeTable(drivers.place).head(None, "app").find_tagged_commit(1)
    assert commit is not None
    assert (commit.owner, commit.gives_up) == ("fence", True)


def test_merges_of_two_drivers_at_once_all_land_once_they_are_tried_again(drivers: Drivers) -> None:
    def driver(which: int) -> None:
        for number in (1, 2, 3):
            while not _holds(drivers, f"app {which}", number):
                with suppress(Exception):
                    drivers.merge(which, f"app {which}", number, (10 * which + number, f"{which}"))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(driver, range(2)))
    assert drivers.rows == [(1, "0"), (2, "0"), (3, "0"), (11, "1"), (12, "1"), (13, "1")]
    assert sorted(map(str, drivers.apps)) == ["app 0"] * 3 + ["app 1"] * 3 + ["maker"]


def _holds(drivers: Drivers, app: str, number: int) -> bool:
    return DeltaLakeTable(drivers.place).tip(app).highest_tag >= number
