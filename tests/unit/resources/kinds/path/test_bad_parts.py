"""The error of a slice with too many bad files."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitions.errors import BadFile
from partitions.path.bad_files import BadFileCount
from platform_assets.project import load_project
from resources.kinds.path.bad_parts import _too_many_error
from tests.support.projects import FILES, project_of


@pytest.mark.parametrize(
    ("number", "others"),
    [
        (1, ""),
        (2, " The other bad files are 1.csv."),
        (5, " The other bad files are 1.csv, 2.csv, 3.csv, 4.csv."),
        (10, " The other bad files are 1.csv, 2.csv, 3.csv, 4.csv, 5.csv, 6.csv, 7.csv, 8.csv, 9.csv."),
        (
            2_012,
            " The other bad files are 1.csv, 2.csv, 3.csv, 4.csv, 5.csv, 6.csv, 7.csv, 8.csv, 9.csv and 2,002 more.",
        ),
    ],
)
def test_too_many_bad_files_are_named_up_to_ten_with_the_reason_of_the_first(
    tmp_path: Path, number: int, others: str
) -> None:
    flow = load_project(project_of(tmp_path, good=FILES), environment={}).dataflows["good"]
    bad = [BadFile("bad", path=f"{index}.csv", why=f"line {index}: torn") for index in range(number)]
    error = _too_many_error(flow, bad, BadFileCount(number, 3_000))
    assert (
        f"The first bad file is 0.csv: line 0: torn.{others} Repair or remove these files." in error.message
    )
    assert error.parts == tuple(bad)
