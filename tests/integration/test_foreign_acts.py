"""Whatever others do to a table, and whenever: no row is lost or doubled, or a run stops with exit code 4 and each choice leads on (docs/state.md)."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from resources.late import late_step
from resources.loop.outcome import Observer, Step
from resources.spark import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NOW, Feed
from tests.support.foreign_acts import ACTS, FOREIGN_ID, Others

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPEND: dict[str, Any] = {"load": "append"}
UPSERT: dict[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"]}
TARGETS: dict[str, dict[str, Any]] = {
    "delta": {"format": "delta"} | APPEND,
    "delta by keys": {"format": "delta"} | UPSERT,
    "iceberg": {"format": "iceberg"} | APPEND,
    "iceberg by keys": {"format": "iceberg"} | UPSERT,
    "parquet": {"format": "parquet"} | APPEND,
}
MOMENTS = ("between runs", "before the write", "after the write", "before a recovery", "before its entry")
"""The second and third in a run that lives; the last two after a run that died with its intent put, and with its commit in the table."""

QUICK = {
    ("delta", "rollback", "after the write"),
    ("delta by keys", "compaction", "before a recovery"),
    ("iceberg", "expiry", "before its entry"),
    ("iceberg by keys", "rollback", "before the write"),
    ("parquet", "made again", "before the write"),
    ("parquet", "expiry", "before its entry"),
}
"""Cells of the matrix that every test run has."""


def _cells() -> list[Any]:
    """Those of every run, and of the whole matrix a third in which each two of target, act and moment meet."""
    numbered = itertools.product(enumerate(TARGETS), enumerate(ACTS), enumerate(MOMENTS))
    third = {
        tuple(name for _, name in cell) for cell in numbered if sum(number for number, _ in cell) % 3 == 0
    }
    return [
        pytest.param(*cell, id=" / ".join(cell), marks=[] if cell in QUICK else [pytest.mark.full])
        for cell in itertools.product(TARGETS, ACTS, MOMENTS)
        if cell in QUICK | third
    ]


class Died(BaseException):
    """Ends a run as SIGKILL does."""


@pytest.fixture(scope="module")
def spark(engine: SparkEngine) -> SparkSession:
    return engine.session()


def at(step: Step, others: Others, act: str, *, dies: bool) -> Observer:
    """Others act once, when a run has done this step; or it dies there first."""
    done: list[Step] = []

    def observer(found: Step, line: str) -> None:
        if found is step and not done:
            done.append(found)
            if dies:
                raise Died
            others.do(act)

    return observer


def with_act(feed: Feed, others: Others, act: str, moment: str) -> None:
    """Have others act at that moment of the load of the third file."""
    if moment == "between runs":
        others.do(act)
    feed.put("3.ndjson", 3)
    match moment:
        case "before the write" | "after the write":
            step = Step.INTENT_PUT if moment == "before the write" else Step.WRITTEN
            _checked(feed.run(at(step, others, act, dies=False)).error)
        case "before a recovery" | "before its entry":
            step = Step.INTENT_PUT if moment == "before a recovery" else Step.WRITTEN
            with pytest.raises(Died):
                feed.run(at(step, others, act, dies=True))
            others.do(act)


def _checked(error: Any) -> Any:
    """An error that a run may end with: a decision is needed, with choices, or the next run can go on."""
    if error is not None:
        assert error.code != "internal", error.message
        assert error.exit_code != 4 or error.choices, error.message
    return error


@pytest.mark.each_case
@pytest.mark.parametrize(("target", "act", "moment"), _cells())
def test_no_row_is_lost_or_doubled_or_a_command_leads_on(
    make_feed: MakeFeed, spark: SparkSession, tmp_path: Path, target: str, act: str, moment: str
) -> None:
    feed = make_feed(target=TARGETS[target])
    others = Others(feed, spark)
    for number in (1, 2):
        feed.put(f"{number}.ndjson", number)
        feed.load()
    with_act(feed, others, act, moment)
    feed.put("4.ndjson", 4)
    error = _checked(feed.run().error)
    if error is None:
        _settled(feed, others, act, emptied=False)
        return
    assert error.exit_code == 4, error.message
    ways = [choice for choice in error.choices if choice not in (_adds_all(feed), _imports(feed))]
    led_on = [
        _leads_on(feed.copy(tmp_path / choice.replace(" ", "_")), spark, choice, act)
        for choice in ways or error.choices
    ]
    assert any(led_on), error.choices


def _adds_all(feed: Feed) -> str:
    """A choice that says that it loads everything into what is there."""
    return f"strandline state reset {feed.name} --reason TEXT"


def _imports(feed: Feed) -> str:
    """A choice that needs an export."""
    return f"strandline state import {feed.name} FILE --reason TEXT"


def _leads_on(feed: Feed, spark: SparkSession, choice: str, act: str) -> bool:
    """Take a choice, and those of the runs after it; False: the table is another writer's, and tells no state."""
    emptied = False
    for _ in range(2):
        emptied = emptied or "--replace" in choice
        done = feed.cli(*choice.removeprefix("strandline ").replace("TEXT", "because").split(), "--yes")
        if done.code == 4 and done.error["code"] == "nothing_to_adopt":
            return False
        assert done.code == 0, (choice, done.out, done.err)
        error = _checked(feed.run().error)
        if error is None:
            break
        assert error.choices, error.message
        choice = error.choices[0]
    else:
        pytest.fail(f"{choice} does not lead on")
    _settled(feed, Others(feed, spark), act, emptied=emptied)
    return True


def _settled(feed: Feed, others: Others, act: str, *, emptied: bool) -> None:
    """Each of the dataflow's rows is there once; but those that others have deleted, unless everything was loaded again, need not be."""
    late_step(feed.platform, feed.dataflow, NOW)
    ids = others.ids()
    mine = [number for number in ids if number != FOREIGN_ID]
    expected = [[1, 2, 3, 4]]
    if act == "delete" and not emptied:
        expected.append([2, 3, 4])
    assert mine in expected
    if act == "append":
        assert ids.count(FOREIGN_ID) == (0 if emptied else 1)
    else:
        assert ids.count(FOREIGN_ID) <= 1
    assert feed.run().error is None, "the next run has nothing to do"
    assert feed.platform.table(feed.dataflow).count_rows() == len(ids)
