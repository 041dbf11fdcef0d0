"""The element of an XML file that is to blame."""

from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from partitions.path.source import SourceFile
from resources.places import Place
from resources.sources.files.elements import BrokenXmlError, Element, broken_end, elements, names_before
from resources.sources.files.lines import Lines, beginning

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


def _elements(folder: Path, text: str = ROWS, name: str = "a.xml") -> list[Element]:
    data = text.encode()
    packed = gzip.compress(data) if name.endswith(".gz") else data
    (folder / name).write_bytes(pa.compress(data, "zstd", asbytes=True) if name.endswith(".zst") else packed)
    return list(elements(Place(str(folder)), name, "row"))


def test_elements_of_the_name_are_counted_wherever_they_stand_but_not_inside_each_other(
    tmp_path: Path,
) -> None:
    for name in ("a.xml", "a.xml.gz", "a.xml.zst"):
        found = _elements(tmp_path, name=name)
        assert [(each.line, each.attributes) for each in found] == [(3, {"k": "7"}), (4, {}), (6, {})]


def test_an_element_has_all_that_is_in_it(tmp_path: Path) -> None:
    (first, who) = _elements(tmp_path)[2].children
    assert (first.name, first.text, first.line) == ("id", "3", 6)
    assert [(child.name, child.text, child.line) for child in who.children] == [("name", "a & b", 7)]


def test_the_line_is_told_at_which_a_file_stops_being_xml(tmp_path: Path) -> None:
    for text, line, why in (
        (ROWS.replace("</name>", "</nome>"), 7, "mismatched tag"),
        (ROWS[:60], 4, "unclosed token"),
    ):
        with pytest.raises(BrokenXmlError) as broken:
            _elements(tmp_path, text)
        assert (broken.value.line, broken.value.why) == (line, why)


def test_elements_before_the_place_at_which_a_file_is_broken_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<rows><row/><row/><row></rows>")
    found = elements(Place(str(tmp_path)), "a.xml", "row")
    assert [next(found).name, next(found).name] == ["row", "row"]
    with pytest.raises(BrokenXmlError):
        next(found)


def test_what_cannot_be_opened_has_no_element(tmp_path: Path) -> None:
    assert list(elements(Place(str(tmp_path)), "gone.xml", "row")) == []
    (tmp_path / "a.xml.gz").write_bytes(b"no gzip")
    assert list(elements(Place(str(tmp_path)), "a.xml.gz", "row")) == []
    (tmp_path / "a.xml.zst").write_bytes(b"no zstd")
    assert list(elements(Place(str(tmp_path)), "a.xml.zst", "row")) == []


def test_entities_of_a_document_are_not_blown_up(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    text = f'<!DOCTYPE r [<!ENTITY e0 "x">{levels}]><rows><row>&e9;</row></rows>'
    with pytest.raises(BrokenXmlError):
        _elements(tmp_path, text)


def test_lines_of_files_that_are_packed_by_zstandard_are_found(tmp_path: Path) -> None:
    frames = [pa.compress(text.encode(), "zstd", asbytes=True) for text in ("id\n", "1\n2\n")]
    (tmp_path / "a.csv.zst").write_bytes(b"".join(frames))
    place = Place(str(tmp_path))
    assert (
        beginning(place, "a.csv.zst").split()[0],
        Lines(place, [("a.csv.zst", "2")]).next("a.csv.zst", "2"),
    ) == ("id", 3)


@pytest.mark.parametrize(
    ("text", "name", "names"),
    [
        (ROWS, "row", None),
        (ROWS, "Row", ["rows", "row", "id", "other", "who", "name"]),
        ("<rows/>", "row", ["rows"]),
        ("<a><b></a>", "row", ["a", "b"]),
        ("", "row", []),
    ],
)
def test_a_file_without_an_element_of_the_name_tells_the_names_that_it_has(
    tmp_path: Path, text: str, name: str, names: list[str] | None
) -> None:
    (tmp_path / "a.xml").write_text(text)
    assert names_before(Place(str(tmp_path)), "a.xml", name, 9) == names


SMALL = "<rows><row/></rows>"


@pytest.mark.parametrize(
    ("data", "name", "broken"),
    [
        (SMALL, "a.xml", None),
        (f"{SMALL} \n", "a.xml", None),
        (f"{SMALL}<!-- end -->", "a.xml", None),
        ("<rows/>", "a.xml", None),
        ('<?xml version="1.1"?><a:r xmlns:a="u"></a:r >', "a.xml", None),
        (SMALL.encode("utf-16"), "a.xml", None),
        ('<?xml version="1.0" encoding="Shift_JIS"?><r>あ'.encode("shift_jis"), "a.xml", None),  # expat does not know it
        (gzip.compress(SMALL.encode(), mtime=0), "a.xml.gz", None),
        (SMALL[:-7], "a.xml", (1, "it ends too early")),
        (gzip.compress(SMALL[:-7].encode(), mtime=0), "a.xml.gz", (1, "it ends too early")),
        (f"{SMALL[:-7]}\n<!-- x", "a.xml", (2, "unclosed token")),
        (f"<rows>{'<row/>' * 20_000}", "a.xml", (1, "it ends too early")),
        (f"{SMALL}x", "a.xml", (1, "junk after document element")),
        ("<r><r></r>", "a.xml", (1, "it ends too early")),
        (f"<r>{'<row/>' * 40_000}<r></r>", "a.xml", (1, "it ends too early")),
        (f"<r><r>{'<row/>' * 40_000}</r>", "a.xml", (1, "it ends too early")),
        (f"<r>{'<row/>' * 20_000}<R>{'<row/>' * 20_000}</R></r>", "a.xml", None),
    ],
)  # fmt: skip
def test_the_end_of_a_document_is_proved(
    tmp_path: Path, data: str | bytes, name: str, broken: tuple[int, str] | None
) -> None:
    content = data.encode() if isinstance(data, str) else data
    (tmp_path / name).write_bytes(content)
    error = broken_end(Place(str(tmp_path)), SourceFile(name, len(content), "", 0), None)
    assert (error and (error.line, error.why)) == broken


def test_an_element_inside_may_be_called_as_the_root(tmp_path: Path) -> None:
    content = f"<a:r xmlns:a='u'>{'<row/>' * 20_000}<a:r>{'<row/>' * 20_000}</a:r>".encode()
    (tmp_path / "a.xml").write_bytes(content)
    error = broken_end(Place(str(tmp_path)), SourceFile("a.xml", len(content), "", 0), None, {"row", "r"})
    assert (error and error.why) == "it ends too early"


def test_the_encoding_that_the_definition_names_is_that_of_the_document(tmp_path: Path) -> None:
    content = "<r>é</r><!-- end -->".encode("latin-1")
    (tmp_path / "a.xml").write_bytes(content)
    file = SourceFile("a.xml", len(content), "", 0)
    assert broken_end(Place(str(tmp_path)), file, "ISO-8859-1") is None
    assert broken_end(Place(str(tmp_path)), file, None) is not None
