"""The table's name comes into a dataflow's file, and nothing else of it changes."""

from __future__ import annotations

import pytest

from partitions.errors import ConfigurationError
from platform_assets.project.renaming import with_table

SOURCE = "source: {type: files, path: ./landing, format: ndjson}  # a comment\n"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("target: {load: append}\n", "target: {table: bronze/a, load: append}\n"),
        ("target: {}\n", "target: {table: bronze/a}\n"),
        (
            "target:\n  # how\n  load: append\n  merge_keys: [id]\n",
            "target:\n  # how\n  table: bronze/a\n  load: append\n  merge_keys: [id]\n",
        ),
        ("", "target: {table: bronze/a}\n"),
        ("target: {table: gold/b, load: append}\n", "target: {table: gold/b, load: append}\n"),
    ],
)
def test_the_table_is_the_first_key_of_the_target(target: str, expected: str) -> None:
    assert with_table(SOURCE + target, "bronze/a") == SOURCE + expected


@pytest.mark.parametrize("target", ["x: &t {load: append}\ntarget: *t\n", "target: append\n"])
def test_a_target_of_another_form_is_refused(target: str) -> None:
    with pytest.raises(ConfigurationError):
        with_table(SOURCE + target, "bronze/a")
