"""`strandline dev` loads a changed project again: which files count, and when they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from platform_assets.project.file_changes import ProjectFiles


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("dataflows", "shop", "landing"):
        (tmp_path / name).mkdir()
    (tmp_path / "dataflows/orders.yaml").write_text("one")
    (tmp_path / "shop/__init__.py").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "platform.yaml",
        "platform.prod.yaml",
        "dataflows/orders.yaml",
        "dataflows/new.yaml",
        "dataflows/shop.py",
        "functions.py",
        "shop/a.py",
    ],
)
def test_a_file_that_has_changed_is_told_once_after_two_looks_see_it_alike(folder: Path, name: str) -> None:
    files = ProjectFiles(folder)
    (folder / name).write_text("another text")
    assert [files.changed() for _ in range(4)] == [[], [name], [], []]


def test_a_file_that_is_being_written_is_told_after_its_end_only(folder: Path) -> None:
    files = ProjectFiles(folder)
    told = []
    for length in range(1, 4):
        (folder / "platform.yaml").write_text("#" * length)
        told.append(files.changed())
    assert [*told, files.changed(), files.changed()] == [[], [], [], ["platform.yaml"], []]


def test_a_removed_file_is_told(folder: Path) -> None:
    files = ProjectFiles(folder)
    (folder / "dataflows/orders.yaml").unlink()
    assert [files.changed(), files.changed()] == [[], ["dataflows/orders.yaml"]]


def test_a_change_that_is_taken_back_is_not_told(folder: Path) -> None:
    files, path = ProjectFiles(folder), folder / "dataflows/new.yaml"
    path.write_text("one")
    assert files.changed() == []
    path.unlink()
    assert [files.changed(), files.changed()] == [[], []]


def test_files_of_data_do_not_count(folder: Path) -> None:
    files = ProjectFiles(folder)
    (folder / "landing/1.yaml").write_text("id: 1")
    (folder / "landing/1.py").write_text("")
    (folder / "orders.csv").write_text("1")
    assert [files.changed(), files.changed()] == [[], []]
