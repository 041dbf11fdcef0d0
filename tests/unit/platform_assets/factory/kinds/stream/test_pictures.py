"""The watermarks of splits as Dagster shows them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from partitions.stream.state import Split, StreamState
from platform_assets.factory.kinds.stream.pictures import splits_picture
from tests.support.images import cells_of, chart_of

START = datetime(2026, 1, 1, tzinfo=UTC)


def state(epoch: int, value: int | None, **splits: int | tuple[int, int]) -> StreamState:
    """A state; times are whole numbers, with the epochs without rows behind them."""
    given = {name: at if isinstance(at, tuple) else (at, 0) for name, at in splits.items()}
    return StreamState({name: Split(*each) for name, each in given.items()}, value, epoch=epoch)


def test_complete_lies_below_the_global_watermark() -> None:
    drawn = splits_picture([state(1, None, a=0), state(2, 8, a=8, b=24), state(3, 12, a=12, b=24)], 5)
    first, second, third = ("".join(column)[::-1] for column in zip(*cells_of(drawn), strict=True))
    assert first == "P" + "M" * 23
    assert second == "L" * 8 + "P" + "M" * 14 + "P"
    assert third == "L" * 12 + "P" + "M" * 10 + "P"
    drawn_chart = chart_of(drawn)
    assert (drawn_chart.names, drawn_chart.ticks) == (["24", "0"], ["epoch 1", "epoch 2", "epoch 3"])
    assert drawn.endswith(
        "Green is complete, yellow the watermark of a split, grey waits. Event time by epoch, 2 splits."
    )


def test_an_idle_split_is_red() -> None:
    (column,) = zip(*cells_of(splits_picture([state(1, 24, a=24, b=(0, 5))], 5)), strict=True)
    assert "".join(column)[::-1] == "F" + "L" * 22 + "P"


def test_before_the_first_watermark_there_is_no_picture() -> None:
    assert splits_picture([StreamState(), StreamState({"a": Split()})], 5) == ""


def test_forty_epochs_of_three_splits_stand_on_the_page_itself() -> None:
    states = []
    for epoch in range(1, 41):
        behind = Split(START + timedelta(minutes=min(10 * epoch - 60, 150)), max(0, epoch - 21))
        splits = {"a": Split(START + timedelta(minutes=10 * epoch)), "c": behind}
        splits["b"] = Split(START + timedelta(minutes=10 * epoch - 20))
        states.append(StreamState(splits, splits["b" if behind.idle >= 5 else "c"].watermark, epoch=epoch))
    assert len(splits_picture(states, 5)) < 1000, "longer texts stand behind a click"


def test_sixty_epochs_of_a_hundred_splits_stay_a_small_picture() -> None:
    random = Random(1)
    marks = {f"s{number}": number for number in range(100)}
    states = []
    for epoch in range(60):
        marks = {name: at + random.randint(0, 9) for name, at in marks.items()}
        splits = {name: Split(START + timedelta(minutes=at)) for name, at in marks.items()}
        states.append(StreamState(splits, START + timedelta(minutes=min(marks.values())), epoch=epoch))
    drawn = splits_picture(states, 5)
    assert {len(row) for row in cells_of(drawn)} == {60}
    assert len(drawn) < 2500
