from __future__ import annotations

import pytest

from partitions.path.roots import roots_overlap


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("./landing", "landing/x", True),
        ("landing/x/", "./landing", True),
        (".", "landing", True),
        ("/data/landing", "/data/landing/x/y", True),
        ("s3://bucket", "s3://bucket/landing", True),
        ("./landing", "landing/", False),
        ("landing/../landing", "landing", False),
        ("landing", "landing2", False),
        ("landing/x", "landing/y", False),
        ("s3://bucket/landing", "s3://other/landing/x", False),
        ("/data", "data/landing", False),
    ],
)
def test_one_folder_lies_in_the_other_whatever_their_order(one: str, other: str, overlap: bool) -> None:
    assert roots_overlap(one, other) is overlap
    assert roots_overlap(other, one) is overlap
