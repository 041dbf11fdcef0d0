"""Path watermarks in words."""

from __future__ import annotations

import pytest

from platform_assets.kinds.path.words import verified_in_words


@pytest.mark.parametrize(
    ("up_to", "said"),
    [
        ("d=2/b.ndjson", "d=2/b.ndjson"),
        ({"paths": {"d=2": "d=2/b.ndjson"}, "closed_before": "d=2"}, "1 open partition, closed before d=2"),
    ],
)
def test_how_far_is_verified_is_a_line_in_either_scope(up_to: str | dict[str, object], said: str) -> None:
    assert (
        verified_in_words(up_to, "2026-01-28T06:00:00+00:00")
        == f"all paths up to {said} verified at 2026-01-28 06:00:00 UTC"
    )
