"""The header ``Link``: whose relations have ``next`` among them, however it is written."""

from __future__ import annotations

import pytest

from partitions.api.links import next_link


@pytest.mark.parametrize(
    ("header", "target"),
    [
        ('</r?page=2>; rel="next"', "/r?page=2"),
        ("</r?page=2>; rel=next", "/r?page=2"),
        ("</r?page=2>;REL='NEXT'", "/r?page=2"),
        ('<?p=9>; rel="last", <?p=2>; rel="next prev"', "?p=2"),
        ('<?p=1&a=1,2>; rel="prev", <?p=3&a=1,2> ; title="x, <y>; rel=prev" ; rel = "next"', "?p=3&a=1,2"),
        ("<?p=2>; title*=UTF-8''a; foo; rel=next", "?p=2"),
        ('<?p=2>; rel="nextfoo"', None),
        ('<?p=2>; rel="prev"; rel="next"', None),
        ('<?p=2>; title="rel=next"; rel="prev"', None),
        ("", None),
    ],
)
def test_the_next_link_is_found_by_its_relation(header: str, target: str | None) -> None:
    assert next_link(header) == target
