"""What the specification has and the product has not: refused by name, without a cascade."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from platform_assets.project import Settings
from platform_assets.project.pending import DATAFLOW, SETTINGS

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make

SOURCE = "source: {type: files, path: x, format: csv}\n"
GOOD = SOURCE + "watermark: {type: path}\n"

FLOWS = [
    (
        "source: {type: files, path: 'gs://b/x', format: csv}\nwatermark: {type: path}\n",
        [("source.path", "gs://b/x", "a folder or s3://bucket/prefix (other object stores are")],
    ),
]


@pytest.mark.parametrize(("text", "errors"), FLOWS, ids=lambda value: None)
def test_a_part_that_is_not_there_yet_is_named_and_nothing_else_is_said_of_it(
    make: Make, text: str, errors: list[tuple[str, str, str]]
) -> None:
    assert [(error.key, error.found, error.expected) for error in make(text).errors] == [
        (key, found, f"{expected} not there yet, see ROADMAP.md)") for key, found, expected in errors
    ]


PLATFORMS = [
    ("state: gs://b/x\n", "state", "gs://b/x"),
    ("state: {path: az://b/x}\n", "state.path", "az://b/x"),
    ("lake: az://b/x\n", "lake", "az://b/x"),
    ("lake: {path: 'gs://b/x'}\n", "lake.path", "gs://b/x"),
]


@pytest.mark.parametrize(("text", "key", "found"), PLATFORMS)
def test_settings_that_are_not_there_yet_are_named(make: Make, text: str, key: str, found: str) -> None:
    (error,) = make(platform=text).errors
    assert (error.key, error.found) == (key, found)
    assert error.expected.endswith("not there yet, see ROADMAP.md)")


def test_the_rest_of_a_file_is_checked_beside_a_part_that_is_not_there_yet(make: Make) -> None:
    project = make(
        "source: {type: files, path: 'gs://b/x', format: csv}\nwatermark: {type: path, layout: leef}\n"
    )
    assert [error.key for error in project.errors] == ["source.path", "watermark.layout"]


def test_what_comes_from_the_environment_is_refused_too_and_not_shown(make: Make) -> None:
    (error,) = make(platform="state: {env: STATE}\n", environment={"STATE": "gs://h/db"}).errors
    assert error.found == "{env: STATE}"
    assert "other object stores" in error.expected


def test_every_row_of_the_table_has_a_case_here() -> None:
    tried = {key for _, errors in FLOWS for key, _, _ in errors} | {key for _, key, _ in PLATFORMS}
    rows = {row.key.replace("*", "shop") for row in (*SETTINGS, *DATAFLOW)}
    assert rows - {"lake", "state", "lake.path"} <= tried


def test_defaults_are_there_already() -> None:
    assert Settings().format == "delta"
