from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.path.hidden import is_hidden_name, is_hidden_path, key_after_hidden_folder
from partitions.path.order import FileKey, folders_up, is_past, key_before
from tests.support.trees import paths

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(texts, texts)
def test_pairs_compare_as_the_bytes_of_their_halves(a: str, b: str) -> None:
    keys = FileKey.of(a), FileKey.of(b)
    halves = [(key.partition.encode(), key.name.encode()) for key in keys]
    assert (keys[0] < keys[1]) == (halves[0] < halves[1])


@given(st.lists(paths, unique=True))
def test_the_pair_order_is_total(found: list[str]) -> None:
    ordered = sorted(found, key=FileKey.of)
    assert all(FileKey.of(a) < FileKey.of(b) for a, b in pairwise(ordered))


@given(paths)
def test_a_path_comes_back_from_its_pair(path: str) -> None:
    assert FileKey.of(path).path == path


def test_the_pair_order_is_not_the_order_of_whole_paths() -> None:
    assert sorted(["a=1-b/x", "a=1/x"]) == ["a=1-b/x", "a=1/x"]
    assert sorted(["a=1-b/x", "a=1/x"], key=FileKey.of) == ["a=1/x", "a=1-b/x"]


def test_nothing_is_normalised() -> None:
    assert FileKey.of("a//b") == FileKey("a/", "b")
    assert FileKey.of("/b") == FileKey("", "b")
    assert FileKey.of("date=2026-01-28/") == FileKey("date=2026-01-28", "")


@pytest.mark.parametrize("path", ["_x", ".x", "a/_tmp/x", "a/.x", "_delta_log/0.json", "a/b/.part.crc"])
def test_an_underscore_or_dot_hides_a_component_at_every_level(path: str) -> None:
    assert is_hidden_path(path)


@pytest.mark.parametrize("path", ["x_", "a_b/x.y", "a/x", "a=_/x"])
def test_underscores_and_dots_elsewhere_hide_nothing(path: str) -> None:
    assert not is_hidden_path(path)


def test_a_listing_leaves_a_hidden_folder_at_its_end() -> None:
    end = key_after_hidden_folder("a/_tmp/b/c")
    assert end is not None
    assert is_past(end, "a/_tmp/b/c")
    assert not is_past(end, "a/_tmpx")
    assert key_after_hidden_folder("a/_file") is None


@given(paths, paths)
def test_past_is_past_in_both_orders(key: str, bound: str) -> None:
    assert is_past(key, bound) == (key.encode() > bound.encode() and key.split("/") > bound.split("/"))


@given(paths, texts.filter(lambda text: "\U0010ffff" not in text))
def test_what_begins_with_a_text_comes_after_the_key_below_it_in_both_orders(text: str, rest: str) -> None:
    assert is_past(text + rest, key_before(text))


def test_the_key_below_a_text_leaves_out_its_neighbour() -> None:
    assert key_before("date=2026-01-28") == "date=2026-01-27\U0010ffff"


@given(texts)
def test_the_key_below_a_text_can_be_sent(text: str) -> None:
    key = key_before(text.translate(dict.fromkeys([*range(32), 127])))
    key.encode()
    assert key.isprintable() or not any(ord(letter) < 32 or ord(letter) == 127 for letter in key)
    assert "//" not in key or "//" in text


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a/ ", "`\U0010ffff"),
        (" ", ""),
        ("", ""),
        ("a/", "`\U0010ffff"),
        ("a/0", "a/.\U0010ffff"),
        ("a/.0", "a/..\U0010ffff"),
        ("hour=10", "hour=1/\U0010ffff"),
        ("\ue000", "\ud7ff\U0010ffff"),
    ],
)
def test_keys_below_a_text_have_no_control_or_empty_part(text: str, key: str) -> None:
    assert key_before(text) == key


def test_upwards_names_a_partition_and_all_folders_above_it() -> None:
    assert list(folders_up("a/b/c")) == ["a/b/c", "a/b", "a"]
    assert list(folders_up("")) == []


@pytest.mark.parametrize("name", ["_a", ".a", "a_", "a", "-_"])
def test_a_path_is_hidden_if_any_of_its_names_is(name: str) -> None:
    assert is_hidden_name(name) == (name[0] in "_.")
    assert (
        is_hidden_path(name)
        == is_hidden_path(f"{name}/x")
        == is_hidden_path(f"x/{name}")
        == is_hidden_name(name)
    )
