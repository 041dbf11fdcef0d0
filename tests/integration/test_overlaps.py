"""Two runs of one dataflow at the same time, in every order of their steps: rows once, and the loser says so in a line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from partitions.errors import Conflict, DataflowHeld
from resources.decisions import deciding
from resources.kinds import all_decisions as decisions
from resources.outcome import Observer, Outcome, Step
from resources.spark.engine import SparkEngine
from resources.tables.delta.table import DeltaLakeTable
from resources.watermarks import entry as entries
from resources.watermarks import holder
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed, answer_of
from tests.support.gates import Gate, gate
from tests.support.proxy import CountingProxy
from tests.support.seaweed import Seaweed

pytestmark = pytest.mark.without_jvm

AFTER_INTENT = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED)


@pytest.fixture
def at(tmp_path: Path, engine: SparkEngine) -> Iterator[Gate]:
    with gate(tmp_path / "gate", engine) as made:
        yield made


@pytest.fixture
def gated(make_feed: MakeFeed, at: Gate) -> Feed:
    """A dataflow whose write waits at the gate with the row of id 1."""
    return make_feed(sql=at.sql)


@pytest.fixture
def beside() -> Iterator[Callable[..., Future[Outcome]]]:
    """Runs in other threads."""
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


@contextmanager
def all_others_seem_dead() -> Iterator[None]:
    """Who begins a run in here takes every other one for dead, and is wrong."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, "is_alive", lambda *asked: False)
        yield


def _at(step: Step, act: Callable[[], Any], times: int = 1) -> Observer:
    """Do something when a step is done for the ``times``-th time."""
    seen: list[Step] = []

    def observer(done: Step, line: str) -> None:
        seen.append(done)
        if done is step and seen.count(step) == times:
            act()

    return observer


def _once(feed: Feed, *ids: int) -> None:
    """The table has each row once, and the log no gap."""
    assert feed.ids == sorted(ids)
    entries = feed.entries
    assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
    assert entries[-1].total_rows == len(ids)
    assert feed.open_intent is None


@pytest.mark.needs_spark
class TestTwoProcesses:
    def test_the_second_exits_3_while_the_first_lives_and_does_nothing(self, gated: Feed, at: Gate) -> None:
        gated.put("a.ndjson", 1, 2)
        first = gated.start("run", NAME)
        at.wait()
        second = answer_of(gated.start("run", NAME))
        assert (second.code, second.error["code"]) == (3, "held")
        assert f"process {first.pid}" in second.error["message"]
        assert "Traceback" not in second.err
        assert (gated.newest, gated.commits) == (None, [])
        at.open()
        answer = answer_of(first)
        assert (answer.code, answer.json[0]["status"], answer.json[0]["rows"]) == (0, "committed", 2)
        _once(gated, 1, 2)

    @pytest.mark.full
    @pytest.mark.needs_spark
    def test_a_race_of_two_has_a_winner_and_loads_everything_once(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
        for number in range(4):
            feed.put(f"{number}.ndjson", number)
        answers = [answer_of(process) for process in [feed.start("run", NAME) for _ in range(2)]]
        assert sorted(answer.code for answer in answers) in ([0, 0], [0, 3])
        for answer in answers:
            if answer.code == 3:
                assert answer.error["code"] in ("held", "conflict")
        assert feed.load().status == "nothing"
        _once(feed, 0, 1, 2, 3)


class TestInterleaved:
    """A whole run between two steps of another one."""

    @pytest.mark.parametrize("step", [Step.PLANNED, Step.LIST_KEPT])
    def test_before_its_intent_the_other_wins_and_a_conflict_ends_it(self, feed: Feed, step: Step) -> None:
        feed.put("a.ndjson", 1)
        outcome = feed.run(_at(step, feed.load))
        assert isinstance(outcome.error, Conflict)
        assert (outcome.status, outcome.error.exit_code, outcome.rows) == ("held", 3, 0)
        assert "\n" not in outcome.error.message
        _once(feed, 1)

    @pytest.mark.parametrize("step", AFTER_INTENT)
    def test_from_its_intent_on_it_holds_the_dataflow(self, feed: Feed, step: Step) -> None:
        feed.put("a.ndjson", 1)
        others: list[Outcome] = []
        outcome = feed.run(_at(step, lambda: others.append(feed.run())))
        assert isinstance(others[0].error, DataflowHeld)
        assert (others[0].status, others[0].error.exit_code) == ("held", 3)
        assert outcome.error is None
        _once(feed, 1)

    @pytest.mark.parametrize("times", [1, 2], ids=["first slice", "second slice"])
    @pytest.mark.parametrize("step", AFTER_INTENT)
    def test_a_run_thought_dead_is_finished_once(self, make_feed: MakeFeed, step: Step, times: int) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", 2)
        others: list[Outcome] = []

        def recover() -> None:
            with all_others_seem_dead():
                others.append(feed.run())

        outcome = feed.run(_at(step, recover, times))
        assert (others[0].status, others[0].error) == ("recovered", None)
        assert outcome.error is None or isinstance(outcome.error, Conflict)
        assert feed.load().status == "nothing"
        _once(feed, 1, 2)

    @pytest.mark.needs_spark
    def test_one_that_waits_goes_on_when_the_other_is_done(
        self, gated: Feed, at: Gate, beside: Callable[..., Future[Outcome]]
    ) -> None:
        gated.put("a.ndjson", 1)
        first = beside(gated.run)
        at.wait()

        def wait(seconds: float) -> None:
            gated.put("b.ndjson", 2)
            at.leave_open()
            at.open()
            first.result(120)

        second = gated.run(hold_wait=timedelta(minutes=2), wait=wait)
        assert (first.result().error, second.error) == (None, None)
        assert first.result().rows + second.rows == 2
        _once(gated, 1, 2)


class TestDecisions:
    """An operator decides while a run is on its way."""

    def test_before_an_intent_the_decision_wins_and_the_run_conflicts(self, feed: Feed) -> None:
        feed.put("0.ndjson", 10)
        feed.load()
        feed.put("a.ndjson", 1)
        outcome = feed.run(_at(Step.LIST_KEPT, lambda: _decide(feed)))
        assert isinstance(outcome.error, Conflict)
        assert [entry.why for entry in feed.entries] == ["run", "accept"]
        feed.load()
        _once(feed, 1, 10)

    @pytest.mark.parametrize("step", AFTER_INTENT)
    def test_from_its_intent_on_the_run_holds_and_decisions_wait(self, feed: Feed, step: Step) -> None:
        feed.put("a.ndjson", 1)
        refused: list[type[Exception]] = []

        def decide() -> None:
            try:
                _decide(feed)
            except DataflowHeld as error:
                refused.append(type(error))

        assert feed.run(_at(step, decide)).error is None
        assert refused == [DataflowHeld]
        _once(feed, 1)

    def test_a_run_that_begins_in_a_decision_wins(self, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
        """As when both looked before either had put its intent."""
        feed.put("0.ndjson", 10)
        feed.load()
        feed.put("a.ndjson", 1)
        real = entries.next_entry

        def following(*arguments: Any, **named: Any) -> Any:
            made = real(*arguments, **named)
            feed.load()
            return made

        monkeypatch.setattr("resources.decisions.draft.next_entry", following)
        with pytest.raises(Conflict, match=r"another run .*took number"):
            _decide(feed)
        assert [entry.why for entry in feed.entries] == ["run", "run"]
        _once(feed, 1, 10)

    def test_one_that_died_early_is_abandoned(self, feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
        feed.put("0.ndjson", 10)
        feed.load()
        feed.put("a.ndjson", 1)
        with monkeypatch.context() as patch:
            patch.setattr(deciding, "put_lists", lambda *asked: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                _decide(feed)
        feed.load()
        assert [entry.why for entry in feed.entries] == ["run", "abandon", "run"]
        _once(feed, 1, 10)


def _decide(feed: Feed) -> None:
    decisions.decide(feed.platform, feed.dataflow, decisions.accept("because"), "because")


class TestStillWriting:
    """A run is taken for dead while its write goes on at the server."""

    @pytest.mark.parametrize("earlier", [False, True], ids=["the table is made", "the table is there"])
    @pytest.mark.needs_spark
    def test_its_rows_land_once_whoever_is_first(
        self, gated: Feed, at: Gate, beside: Callable[..., Future[Outcome]], earlier: bool
    ) -> None:
        if earlier:
            gated.put("0.ndjson", 10)
            gated.load()
        gated.put("a.ndjson", 1, 2)
        first = beside(gated.run)
        at.wait()
        at.leave_open()
        with all_others_seem_dead():
            second = gated.run()
        assert (second.status, second.error) == ("recovered", None)
        commits = len(gated.commits)
        at.open()
        assert first.result(120).error is None, "it finds its own slice in the table"
        assert len(gated.commits) == commits, "and has written nothing"
        _once(gated, 1, 2, *([10] if earlier else []))

    @pytest.mark.needs_spark
    def test_a_slice_that_was_given_up_cannot_land_any_more(
        self, gated: Feed, at: Gate, beside: Callable[..., Future[Outcome]]
    ) -> None:
        gated.put("0.ndjson", 10)
        gated.put("a.ndjson", 1)
        gated.put("b.ndjson", 2)
        first = beside(gated.run)
        at.wait()
        at.leave_open()
        gated.put("a.ndjson", 3)
        with all_others_seem_dead():
            second = gated.run()
        assert (second.error, gated.path) == (None, "b.ndjson")
        assert (
            "slice 1 of a run that died was abandoned, and its work is planned again: a.ndjson"
            in second.warnings[0]
        )
        at.open()
        late = first.result(120)
        assert isinstance(late.error, Conflict)
        assert [entry.why for entry in gated.entries] == ["abandon", "run"]
        _once(gated, 2, 3, 10)

    @pytest.mark.needs_spark
    def test_a_slice_that_lands_while_it_is_given_up_is_finished(
        self,
        gated: Feed,
        at: Gate,
        beside: Callable[..., Future[Outcome]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        gated.put("a.ndjson", 1)
        gated.put("b.ndjson", 2)
        first = beside(gated.run)
        at.wait()
        at.leave_open()
        os.utime(gated.landing / "b.ndjson", ns=(1, 1))
        real = DeltaLakeTable.give_up

        def give_up(table: DeltaLakeTable, *given: Any) -> None:
            at.open()
            first.result(120)
            real(table, *given)

        monkeypatch.setattr(DeltaLakeTable, "give_up", give_up)
        with all_others_seem_dead():
            second = gated.run()
        assert (second.status, second.error) == ("nothing", None)  # the first run counts the slice
        assert [entry.why for entry in gated.entries] == ["run"]
        _once(gated, 1, 2)


@pytest.mark.s3
class TestLostAnswers:
    """The state lies on an object store whose answers get lost after it has done what it was asked for."""

    @pytest.fixture
    def far(
        self, tmp_path: Path, engine: SparkEngine, seaweed: Seaweed, proxy: CountingProxy
    ) -> Iterator[Feed]:
        keys = {"K": seaweed.access_key_id, "S": seaweed.secret_access_key}
        land = {
            "type": "s3",
            "endpoint": f"http://127.0.0.1:{proxy.port}",
            "region": "us-east-1",
            "access_key_id": {"env": "K"},
            "secret_access_key": {"env": "S"},
        }
        with seaweed.bucket() as bucket:
            settings = {"state": {"path": bucket.url, "connection": "land"}, "connections": {"land": land}}
            yield Feed(tmp_path / "project", engine, {}, settings, keys)

    @pytest.mark.parametrize(("what", "again"), [("intents", "recovered"), ("entries", "nothing")])
    def test_a_run_that_lost_every_answer_fails_and_the_next_finds_what_was_done(
        self, far: Feed, proxy: CountingProxy, what: str, again: str
    ) -> None:
        far.put("a.ndjson", 1)
        proxy.record.lose, proxy.record.lose_at = 100, f"/{what}/"
        outcome = far.run()
        proxy.record.lose = 0
        assert outcome.error is not None
        assert (outcome.error.code, outcome.error.exit_code, outcome.error.transient) == ("provider", 1, True)
        assert (far.load().status, far.path) == (again, "a.ndjson")
        _once(far, 1)

    @pytest.mark.parametrize("what", ["files", "schemas", "intents", "entries"])
    def test_one_lost_answer_is_not_even_noticed(self, far: Feed, proxy: CountingProxy, what: str) -> None:
        far.put("a.ndjson", 1)
        proxy.record.lose, proxy.record.lose_at = 1, f"/{what}/"
        assert far.run().error is None
        assert proxy.record.lose == 0
        _once(far, 1)
