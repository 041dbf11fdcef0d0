"""Where things may lie: an object store that the product has not is refused by name, and nothing else is said of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

NOT_YET = "(other object stores are not supported yet, see ROADMAP.md)"


def test_another_object_store_is_refused_and_the_rest_checked(make: Make) -> None:
    project = make(
        "source: {type: files, path: 'gs://b/x', format: csv}\nwatermark: {type: path, layout: leef}\n"
    )
    assert sorted((error.key, error.actual) for error in project.errors) == [
        ("source.path", "gs://b/x"),
        ("watermark.layout", "leef"),
    ]
    expected = {error.key: error.expected for error in project.errors}["source.path"]
    assert expected == f"a folder or s3://bucket/prefix {NOT_YET}"


@pytest.mark.parametrize(
    ("text", "key", "found"),
    [
        ("state: gs://b/x\n", "state", "gs://b/x"),
        ("state: {path: az://b/x}\n", "state.path", "az://b/x"),
        ("lake: az://b/x\n", "lake", "az://b/x"),
        ("lake: {path: 'abfss://b/x'}\n", "lake.path", "abfss://b/x"),
        ("state: {env: STATE}\n", "state", "{env: STATE}"),
    ],
)
def test_state_and_lake_need_a_known_object_store(make: Make, text: str, key: str, found: str) -> None:
    (error,) = make(platform=text, environment={"STATE": "gs://h/db"}).errors
    assert (error.key, error.actual) == (key, found)
    assert error.expected.endswith(NOT_YET)
