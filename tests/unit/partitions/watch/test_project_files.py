"""When ``strandline watch`` reads changed project files."""

from __future__ import annotations

from partitions.watch.project_files import ProjectFiles


def looks(files: ProjectFiles, *states: str) -> tuple[ProjectFiles, list[bool]]:
    due = []
    for state in states:
        files, is_due = files.looked_at(state)
        due.append(is_due)
    return files, due


def test_changed_files_are_read_once_two_looks_find_them_alike() -> None:
    files, due = looks(ProjectFiles("a", "a"), "a", "b", "c", "c")
    assert due == [False, False, False, True]
    assert looks(files.taken(), "c", "c")[1] == [False, False]


def test_files_with_errors_are_not_read_again_before_they_change() -> None:
    files, _ = looks(ProjectFiles("a", "a"), "b", "b")
    refused = files.with_errors()
    assert looks(refused, "b", "b", "c", "c")[1] == [False, False, False, True]
    assert looks(refused, "a", "a")[1] == [False, False], "what is at work was put back"
