"""A watermark as people read it."""

from __future__ import annotations

import pytest

from platform_assets.words import stored_in_words


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("path", "{}", "none"),
        ("path", '{"path": "d=1/a.ndjson"}', "d=1/a.ndjson"),
        ("column", '{"at": {"__datetime__": "2026-04-03T09:15:00+00:00"}, "id": 5}', "at = 2026-04-03 09:15:00+00:00, id = 5"),
        ("column", '{"__exclusive__": ["day"], "day": {"__date__": "2026-04-03"}}', "day < 2026-04-03"),
        ("window", '{"units": {"{}": [[0, 86400000]]}}', "up to 1970-01-02T00:00:00+00:00"),
        ("window", '{"units": 7}', '{"units": 7}'),
        ("path", "no json", "no json"),
    ],
)  # fmt: skip
def test_a_watermark_is_said_in_words_or_as_it_is(kind: str, text: str, words: str) -> None:
    assert stored_in_words(kind, text) == words
