"""When ``strandline watch`` reads changed project files."""

from __future__ import annotations

from partitions.watch.project_files import ProjectFileStates


def looks(files: ProjectFileStates, *states: str) -> tuple[ProjectFileStates, list[bool]]:
    due = []
    for state in states:
        files, is_due = files.after_look(state)
        due.append(is_due)
    return files, due


def test_changed_files_are_read_once_two_looks_find_them_alike() -> None:
    files, due = looks(ProjectFileStates("a", "a"), "a", "b", "c", "c")
    assert due == [False, False, False, True]
    assert looks(files.after_read(), "c", "c")[1] == [False, False]


def test_files_with_errors_are_not_read_again_before_they_change() -> None:
    files, _ = looks(ProjectFileStates("a", "a"), "b", "b")
    refused = files.after_errors()
    assert looks(refused, "b", "b", "c", "c")[1] == [False, False, False, True]
    assert looks(refused, "a", "a")[1] == [False, False], "what is at work was put back"
