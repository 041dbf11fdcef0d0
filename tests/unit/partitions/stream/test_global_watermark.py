"""The merge of splits against a queue per split, read from its rule."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from partitions.stream.global_watermark import global_watermark
from partitions.stream.split_changes import assign_watermarks, merge_watermarks
from tests.support.stream_oracle.merger import Merger

_NAMES = "abc"
_SAID = st.lists(st.tuples(st.sampled_from(_NAMES), st.integers(0, 30)), max_size=25)


class _Queues:
    """A queue per split: while none is empty, the minimum is popped, and heads that equal it; the last popped is the answer."""

    def __init__(self, names: str) -> None:
        self.queues: dict[str, deque[int]] = {name: deque() for name in names}
        self.last: dict[str, int] = {}
        self.value: int | None = None

    def said(self, name: str, at: int) -> int | None:
        if at >= self.last.get(name, at):
            self.last[name] = at
            self.queues[name].append(at)
        while all(self.queues.values()):
            self.value = min(queue[0] for queue in self.queues.values())
            for queue in self.queues.values():
                if queue[0] == self.value:
                    queue.popleft()
        return self.value


@given(said=_SAID)
def test_the_minimum_of_what_each_said_last_is_what_queues_give(said: list[tuple[str, int]]) -> None:
    merger, queues = Merger(dict.fromkeys(_NAMES)), _Queues(_NAMES)
    for name, at in said:
        merger = merger.heard({name: at})
        assert merger.value == queues.said(name, at)


_STEP = st.one_of(
    st.tuples(st.just("heard"), st.sampled_from(_NAMES), st.integers(0, 30)),
    st.tuples(st.sampled_from(["slept", "woken", "added", "removed"]), st.sampled_from(_NAMES), st.just(0)),
)


@given(steps=st.lists(_STEP, max_size=25))
def test_the_global_watermark_never_falls_whatever_splits_do(steps: list[tuple[str, str, int]]) -> None:
    merger = Merger(dict.fromkeys(_NAMES))
    for step, name, at in steps:
        was = merger.value
        merger = merger.heard({name: at}) if step == "heard" else getattr(merger, step)([name])
        assert was is None or (merger.value is not None and merger.value >= was)
        assert global_watermark(merger.value, merger.watermarks, merger.idle) == merger.value


def test_so_many_splits_are_waited_for_as_were_asked_for() -> None:
    merger = Merger(least=2).heard({"a": 5})
    assert merger.value is None
    assert merger.heard({"b": 9}).value == 5


def test_mode_unit_takes_the_maximum_and_mode_split_keeps_each() -> None:
    before = {"a": 5, "b": 3}
    assert assign_watermarks(before, ["b", "c"], "unit", 3) == {"b": 5, "c": 5}
    assert assign_watermarks(before, ["a", "b"], "unit", 3) == {"a": 5, "b": 5}
    assert assign_watermarks(before, ["b", "c"], "split", 3) == {"b": 3, "c": 3}


def test_a_merged_split_takes_the_maximum_of_its_parents_and_its_own() -> None:
    assert merge_watermarks({"a": 5, "b": 3, "c": 1}, ["a", "b"], "n") == {"c": 1, "n": 5}
    assert merge_watermarks({"a": 5, "b": 9}, ["a"], "b") == {"b": 9}
