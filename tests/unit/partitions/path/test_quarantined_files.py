from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.path.quarantined_files import Quarantine, QuarantinedFile
from partitions.path.source import SourceFile
from tests.support.trees import paths

held = st.builds(
    QuarantinedFile,
    st.builds(SourceFile, paths, st.integers(0, 9), st.text(max_size=3), st.integers(0, 9)),
    st.text(max_size=5),
    st.booleans(),
)
quarantines = st.lists(held, max_size=6, unique_by=lambda one: one.file.path).map(
    lambda files: Quarantine(tuple(files))
)


def one(path: str, reason: str = "torn", *, released: bool = False) -> QuarantinedFile:
    return QuarantinedFile(SourceFile(path, 1, "v", 0), reason, released)


def test_files_come_into_quarantine_in_the_order_in_which_they_are_passed_over() -> None:
    before = Quarantine((one("b"),))
    assert before.after((), [one("a"), one("c")]).files == (one("b"), one("a"), one("c"))


def test_a_file_that_was_loaded_leaves_it() -> None:
    assert Quarantine((one("a", released=True), one("b"))).after(["a"], []).files == (one("b"),)


def test_a_released_file_that_is_still_bad_goes_back_with_its_new_reason() -> None:
    again = Quarantine((one("a", released=True),)).after([], [one("a", "still torn")])
    assert (again.waiting, again.released) == ((one("a", "still torn"),), ())


@given(
    quarantines, st.lists(paths, max_size=4), st.lists(held, max_size=4, unique_by=lambda one: one.file.path)
)
def test_each_file_is_there_once_whatever_is_loaded_and_passed_over(
    before: Quarantine, loaded: list[str], passed: list[QuarantinedFile]
) -> None:
    after = [one.file.path for one in before.after(loaded, passed).files]
    there = {one.file.path for one in before.files} - set(loaded) | {one.file.path for one in passed}
    assert sorted(after) == sorted(there)


def test_releasing_marks_these_files_and_no_others() -> None:
    left = Quarantine((one("a"), one("b"), one("c"))).release(["c", "a"], "flow")
    assert ([each.file.path for each in left.released], [each.file.path for each in left.waiting]) == (
        ["a", "c"],
        ["b"],
    )


@pytest.mark.parametrize(
    ("path", "hint"),
    [("d=1/a.json", "did you mean d=1/b.json?"), ("zzz", "set late_files: ingest")],
)
def test_releasing_what_is_not_held_is_refused_with_the_nearest_path(path: str, hint: str) -> None:
    quarantine = Quarantine((one("d=1/b.json"), one("c.json"), one("gone", released=True)))
    with pytest.raises(ConfigurationError, match="expected the path of a quarantined file") as caught:
        quarantine.release(["c.json", path], "flow")
    assert (caught.value.code, caught.value.choices) == ("not_quarantined", ("strandline list flow",))
    assert repr(path) in caught.value.message
    assert caught.value.message.endswith(hint)


def test_what_was_released_already_is_not_held() -> None:
    with pytest.raises(ConfigurationError):
        Quarantine((one("a", released=True),)).release(["a"], "flow")


@given(quarantines)
def test_what_is_kept_reads_back(quarantine: Quarantine) -> None:
    assert Quarantine.of(quarantine.rows()) == quarantine
    assert sorted([*quarantine.waiting, *quarantine.released], key=str) == sorted(quarantine.files, key=str)
