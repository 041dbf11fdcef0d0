"""The lines of a file that are to blame, and its beginning."""

from __future__ import annotations

import gzip
from pathlib import Path

from resources.connections.places import Place
from resources.sources.files.lines import LineNumbers, read_beginning, read_text


def test_a_text_is_found_in_its_lines_whatever_surrounds_it(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson.gz").write_bytes(gzip.compress("\ufeffx\n  x  \ny\n".encode()))
    lines = LineNumbers(Place(str(tmp_path)), [("a.ndjson.gz", "x"), ("gone.ndjson", "x")])
    assert [lines.next("a.ndjson.gz", "x") for _ in range(3)] == [1, 2, None]
    assert lines.next("gone.ndjson", "x") is None


def test_a_text_is_found_in_the_encoding_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("id\ngröße\n".encode("windows-1252"))
    assert LineNumbers(Place(str(tmp_path)), [("a.csv", "größe")], "windows-1252").next("a.csv", "größe") == 2


def test_the_beginning_of_a_file_has_its_first_line_however_long_it_is(tmp_path: Path) -> None:
    place, header = Place(str(tmp_path)), "n" * 200_000
    (tmp_path / "a.csv").write_text(f"{header}\n{'1' * 300_000}")
    text = read_beginning(place, "a.csv")
    assert (text.startswith(f"{header}\n"), len(text) < 300_000) == (True, True)
    assert read_beginning(place, "gone.csv") == ""


def test_a_whole_text_has_no_mark_of_its_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("\ufeff{}", encoding="utf-16")
    assert read_text(Place(str(tmp_path)), "a.json", "utf-16") == "{}"
