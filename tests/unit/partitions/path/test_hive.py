from __future__ import annotations

import pytest

from partitions.path.hive import folder_value, partition_columns, partition_values
from tests.support.folder_texts import FOLDER_TEXTS


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("k=/x", {"k": ""}),
        ("plain/x", {}),
        ("=a/x", {}),
    ],
)
def test_every_component_with_an_equals_sign_is_split_at_the_first(path: str, values: dict[str, str]) -> None:
    assert partition_values(path) == values


def test_a_key_matches_as_a_whole() -> None:
    assert partition_values("update=1/date=2/x", ["date"]) == {"date": "2"}
    assert partition_values("update=1/x", ["date"]) == {}
    assert partition_values("date=1/x", []) == {}


def test_columns_come_from_folders_only_in_order_of_appearance() -> None:
    assert partition_columns(["b=1/a=2/c=3.json", "d=1/x.json", "b=2/x.json"]) == ["b", "a", "d"]


@pytest.mark.parametrize(("text", "value"), FOLDER_TEXTS.items())
def test_the_value_of_a_folder_is_unescaped_as_hive_and_spark_escape_it(text: str, value: str | None) -> None:
    assert folder_value(f"at={text}/a.ndjson", "at") == value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("at=1/at=2/x", "1"),
        ("b/at=1/x", "1"),
        ("bat=1/x", None),
        ("at=/x", ""),
        ("a.t=1/x", None),
        ("at=1.json", None),
    ],
)
def test_a_value_is_that_of_the_first_folder_of_exactly_this_name(path: str, value: str | None) -> None:
    assert folder_value(path, "at") == value
