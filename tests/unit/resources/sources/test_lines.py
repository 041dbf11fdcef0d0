"""The line of a file that is to blame."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from resources.places import Place
from resources.sources.files.lines import first_line, line_of, line_with_field

LINES = (
    '{"id": 1}\n\n{"id": 2, "who": {"a.b": 1, "more": null}}\nno json more\n{"by": {"any": [{"deep": 1}]}}\n'
)


@pytest.mark.parametrize(
    ("field", "line"), [("id", 1), ("who.more", 3), ("who.a.b", 3), ("by.deep", 5), ("none", None)]
)
def test_the_first_line_with_a_field_is_found_at_any_depth(
    tmp_path: Path, field: str, line: int | None
) -> None:
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress(LINES.encode()))
    assert line_with_field(Place(str(tmp_path)), "a.ndjson.gz", field) == line


def test_a_record_is_found_whatever_blanks_are_around_it(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text("\n  x  \n")
    assert line_of(Place(str(tmp_path)), "a.ndjson", "x") == 2
    assert line_of(Place(str(tmp_path)), "gone.ndjson", "x") is None


def test_the_first_line_is_told_without_a_mark_of_its_encoding_and_its_end(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("\n\ufeffid,text\r\n1,2\n".encode())
    (tmp_path / "b.csv").write_text("\n \n")
    assert [first_line(Place(str(tmp_path)), name) for name in ("a.csv", "b.csv")] == ["id,text", None]
