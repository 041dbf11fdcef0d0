"""The element of an XML file that is to blame."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa

from resources.places import Place
from resources.sources.files.elements import Broken, Element, element
from resources.sources.files.lines import first_line, line_of

ROWS = """<?xml version="1.0"?>
<rows>
 <row k="7"><id>1</id></row>
 <other><row><id>2</id>
  <row><id>inner</id></row></row></other>
 <row><id>3</id>
  <who><name>a &amp; b</name></who>
 </row>
</rows>
"""


def _element(folder: Path, number: int, text: str = ROWS, name: str = "a.xml") -> Element | Broken | None:
    data = text.encode()
    packed = gzip.compress(data) if name.endswith(".gz") else data
    (folder / name).write_bytes(pa.compress(data, "zstd", asbytes=True) if name.endswith(".zst") else packed)
    return element(Place(str(folder)), name, "row", number)


def test_elements_of_the_name_are_counted_wherever_they_stand_but_not_inside_each_other(
    tmp_path: Path,
) -> None:
    for name in ("a.xml", "a.xml.gz", "a.xml.zst"):
        found = [_element(tmp_path, number, name=name) for number in (1, 2, 3, 4)]
        assert [(each.line, each.attributes) for each in found if isinstance(each, Element)] == [
            (3, {"k": "7"}),
            (4, {}),
            (6, {}),
        ]
        assert found[3] is None


def test_an_element_has_all_that_is_in_it(tmp_path: Path) -> None:
    found = _element(tmp_path, 3)
    assert isinstance(found, Element)
    (first, who) = found.children
    assert (first.name, first.text, first.line) == ("id", "3", 6)
    assert [(child.name, child.text, child.line) for child in who.children] == [("name", "a & b", 7)]


def test_the_line_is_told_at_which_a_file_stops_being_xml(tmp_path: Path) -> None:
    broken = _element(tmp_path, 3, ROWS.replace("</name>", "</nome>"))
    assert broken == Broken(7, "mismatched tag")
    assert _element(tmp_path, 9, ROWS[:60]) == Broken(4, "unclosed token")


def test_what_cannot_be_opened_has_no_element(tmp_path: Path) -> None:
    assert element(Place(str(tmp_path)), "gone.xml", "row", 1) is None
    (tmp_path / "a.xml.gz").write_bytes(b"no gzip")
    assert element(Place(str(tmp_path)), "a.xml.gz", "row", 1) is None
    (tmp_path / "a.xml.zst").write_bytes(b"no zstd")
    assert element(Place(str(tmp_path)), "a.xml.zst", "row", 1) is None


def test_entities_of_a_document_are_not_blown_up(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    text = f'<!DOCTYPE r [<!ENTITY e0 "x">{levels}]><rows><row>&e9;</row></rows>'
    assert isinstance(_element(tmp_path, 1, text), Broken)


def test_lines_of_files_that_are_packed_by_zstandard_are_found(tmp_path: Path) -> None:
    frames = [pa.compress(text.encode(), "zstd", asbytes=True) for text in ("id\n", "1\n2\n")]
    (tmp_path / "a.csv.zst").write_bytes(b"".join(frames))
    place = Place(str(tmp_path))
    assert (first_line(place, "a.csv.zst"), line_of(place, "a.csv.zst", "2")) == ("id", 3)
