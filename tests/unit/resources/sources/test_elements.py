"""The element of an XML file that is to blame."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import types as T

from resources.connections.places import Place
from resources.sources.files.elements import (
    BrokenXmlError,
    Element,
    XmlForm,
    parse_document,
    read_elements,
    read_names_before,
)
from resources.sources.files.lines import LineNumbers, read_beginning
from resources.sources.files.xml_names import NameRules

ROW = XmlForm("row")
RULES = NameRules("_", "_VALUE")
NIL = 'xsi:nil="true" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
SCHEMA = T.StructType(
    [
        T.StructField("id", T.LongType()),
        T.StructField("_k", T.LongType()),
        T.StructField("text", T.StringType()),
        T.StructField("line", T.ArrayType(T.StructType([T.StructField("no", T.IntegerType())]))),
        T.StructField("map", T.MapType(T.StringType(), T.IntegerType())),
    ]
)
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
    return list(read_elements(Place(str(folder)), name, ROW))


def test_named_elements_are_counted_anywhere_but_inside_each_other(tmp_path: Path) -> None:
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
    found = read_elements(Place(str(tmp_path)), "a.xml", ROW)
    assert [next(found).name, next(found).name] == ["row", "row"]
    with pytest.raises(BrokenXmlError):
        next(found)


def test_what_cannot_be_opened_has_no_element(tmp_path: Path) -> None:
    assert list(read_elements(Place(str(tmp_path)), "gone.xml", ROW)) == []
    (tmp_path / "a.xml.gz").write_bytes(b"no gzip")
    assert list(read_elements(Place(str(tmp_path)), "a.xml.gz", ROW)) == []
    (tmp_path / "a.xml.zst").write_bytes(b"no zstd")
    assert list(read_elements(Place(str(tmp_path)), "a.xml.zst", ROW)) == []


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
        read_beginning(place, "a.csv.zst").split()[0],
        LineNumbers(place, [("a.csv.zst", "2")]).next("a.csv.zst", "2"),
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
    assert read_names_before(Place(str(tmp_path)), "a.xml", name, 9) == names


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
        ('<?xml version="1.0" encoding="Shift_JIS"?><r>あ</r>'.encode("shift_jis"), "a.xml", None),
        ('<?xml version="1.0" encoding="Shift_JIS"?><r>あ'.encode("shift_jis"), "a.xml", (1, "it ends too early")),
        ('<?xml version="1.0" encoding="windows-1252"?>\n<r>\x81</r>'.encode("latin-1"), "a.xml", (1, "bytes that are not windows-1252")),
        ('<?xml version="1.0" encoding="x-none"?><r/>', "a.xml", (1, "its encoding x-none is not supported")),
        ("<r>\xe9</r>".encode("latin-1"), "a.xml", (1, "not well-formed (invalid token)")),
        (gzip.compress(SMALL.encode(), mtime=0), "a.xml.gz", None),
        (SMALL[:-7], "a.xml", (1, "it ends too early")),
        (gzip.compress(SMALL[:-7].encode(), mtime=0), "a.xml.gz", (1, "it ends too early")),
        (f"{SMALL[:-7]}\n<!-- x", "a.xml", (2, "unclosed token")),
        (f"<rows>{'<row/>' * 20_000}", "a.xml", (1, "it ends too early")),
        (f"{SMALL}x", "a.xml", (1, "junk after document element")),
        ("<r><r></r>", "a.xml", (1, "it ends too early")),
        (f"<r>{'<row/>' * 40_000}<r></r>", "a.xml", (1, "it ends too early")),
        (f"<r><r>{'<row/>' * 40_000}</r>", "a.xml", (1, "it ends too early")),
        (f"<r>{'<row/>' * 20_000}<r>{'<row/>' * 40_000}</r>", "a.xml", (1, "it ends too early")),
        (f"<r>{'<row/>' * 20_000}<R>{'<row/>' * 20_000}</R></r>", "a.xml", None),
    ],
)  # fmt: skip
def test_the_end_of_a_document_is_proved(
    tmp_path: Path, data: str | bytes, name: str, broken: tuple[int, str] | None
) -> None:
    content = data.encode() if isinstance(data, str) else data
    (tmp_path / name).write_bytes(content)
    error = parse_document(Place(str(tmp_path)), name, ROW).error
    assert (error and (error.line, error.why)) == broken


@pytest.mark.parametrize(
    ("declared", "content", "broken"),
    [
        ('<!ENTITY e "x">', "<row>&amp; &#65; <![CDATA[&e;]]><!-- &e; --></row>", None),
        ('<!ENTITY e "x">', "<row>&e;</row>", "found &e;, which only the document type defines"),
        ('<!ENTITY e "<row/>">', "&e;<row/>", "found &e;, which only the document type defines"),
        ('<!ATTLIST row k CDATA "x">', '<row k="y"/>', None),
        ('<!ATTLIST row k CDATA #IMPLIED>', "<row/>", None),
        ('<!ATTLIST r k CDATA "x">', "<row/>", None),
        ('<!ATTLIST row k CDATA "x">', "<row/>", "found row without k, whose value only the document type defines"),
    ],
)  # fmt: skip
def test_what_only_the_document_type_tells_breaks_the_document(
    tmp_path: Path, declared: str, content: str, broken: str | None
) -> None:
    (tmp_path / "a.xml").write_text(f"<!DOCTYPE r [{declared}]><r>{content}</r>")
    error = parse_document(Place(str(tmp_path)), "a.xml", ROW).error
    assert (error is None) == (broken is None)
    assert broken is None or (error is not None and broken in error.why)


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ("<r>\n<row/>\n x\n<row/>\n</r>", 3),
        ("<r>\n\nx<row/></r>", 3),
        ("<r><row/>\n<![CDATA[x]]></r>", 2),
        ("<r><row/><more>\n<row/>x</more></r>", 2),
        ("<r>\n<Row/><row/></r>", 2),
        ('<r xmlns:x="u"><row/>\n<x:row/></r>', 2),
        ('<r xmlns:x="u"><x:row/></r>', None),
        ('\ufeff<?xml version="1.0" encoding="ISO-8859-1"?>\n<r><row/></r>', 1),
        ('\ufeff<?xml version="1.0" encoding="utf-8"?><ROW><row/></ROW>', None),
        ("<r>\n <!-- x --><?x y?><row/><total>2</total>\n<row/></r>", None),
        ("<r>x<rows><row/></rows><total>2</total>y</r>", None),
        ("<row>x<row/>y</row>", None),
    ],
)
def test_strays_between_records_break_the_document_by_their_line(
    tmp_path: Path, document: str, line: int | None
) -> None:
    (tmp_path / "a.xml").write_text(document)
    error = parse_document(Place(str(tmp_path)), "a.xml", ROW).error
    assert (error and error.line) == line
    assert error is None or error.why.startswith(
        ("expected elements row, found ", "expected one encoding, found ")
    )


def test_the_encoding_that_the_definition_names_is_that_of_the_document(tmp_path: Path) -> None:
    content = "<r><row>é</row></r><!-- end -->".encode("latin-1")
    (tmp_path / "a.xml").write_bytes(content)
    place = Place(str(tmp_path))
    form = XmlForm("row", encoding="ISO-8859-1")
    assert parse_document(place, "a.xml", form).error is None
    assert [element.text for element in read_elements(place, "a.xml", form)] == ["é"]
    assert parse_document(place, "a.xml", ROW).error is not None


@pytest.mark.parametrize(
    ("record", "rules", "names", "nils"),
    [
        ("<id>1</id>", RULES, [], []),
        ('<id unit="kg">1</id><more><deep/></more>', RULES, ["id._unit", "more"], []),
        ("<line><no/></line><line><no k='1'/><sku/></line>", RULES, ["line.no._k", "line.sku"], []),
        ("<line k='1'>text<no/></line>", RULES, ["line._k", "line._VALUE"], []),
        ("text<id/>", RULES, ["_VALUE"], []),
        ("<line>\n \t<no/>\r\n</line>\n", RULES, [], []),
        ("<map><a k='1'/><b>2</b></map>", RULES, ["map._k"], []),
        (f"<text {NIL}/><id {NIL}/>", RULES, [], ["text"]),
        ("<p:id xmlns:p='u' p:k='1'/>", RULES, ["p:id"], []),
        ("<p:id xmlns:p='u' p:k='1'/>", NameRules("_", "_VALUE", is_local=True), ["id._k"], []),
        ("<id k='1'/><x/>", NameRules("", "_VALUE", wildcard="line", has_attributes=False), [], []),
    ],
)
def test_names_that_a_schema_does_not_take_are_told_at_any_depth(
    tmp_path: Path, record: str, rules: NameRules, names: list[str], nils: list[str]
) -> None:
    (tmp_path / "a.xml").write_text(f"<rows k='1'><row>{record}</row><other/></rows>")
    look = parse_document(Place(str(tmp_path)), "a.xml", XmlForm("row", is_local=rules.is_local))
    assert rules.strays(look.names, SCHEMA) == (names, nils)


@pytest.mark.parametrize(
    ("records", "doubled"),
    [
        ("<row><id/></row><row><ID/></row>", ("id", "ID")),
        ("<row><Id/></row><row><more/><MORE/></row>", None),
        ("<row><line><no/></line><line><No/></line></row>", ("line.no", "line.No")),
        ("<row k='1'/><row K='1'/>", ("_k", "_K")),
    ],
)
def test_two_spellings_of_a_column_in_one_file_are_told(
    tmp_path: Path, records: str, doubled: tuple[str, str] | None
) -> None:
    (tmp_path / "a.xml").write_text(f"<rows>{records}</rows>")
    look = parse_document(Place(str(tmp_path)), "a.xml", ROW)
    assert RULES.find_case_conflict(look.names, SCHEMA) == doubled


def test_a_document_of_hundreds_of_columns_takes_linear_time(tmp_path: Path) -> None:
    fields = [f"f{number}" for number in range(20_000)]
    (tmp_path / "a.xml").write_text(
        "<rows>" + f"<row>{''.join(f'<{name}>1</{name}>' for name in fields)}</row>" * 2 + "</rows>"
    )
    schema = T.StructType([T.StructField(name, T.IntegerType()) for name in fields[1:]])
    begun = time.process_time()
    look = parse_document(Place(str(tmp_path)), "a.xml", ROW)
    assert RULES.strays(look.names, schema).names == ["f0"]
    assert time.process_time() - begun < 5


def test_a_document_of_a_bucket_is_looked_through_and_one_that_is_gone_has_no_names(bucket: Place) -> None:
    text = f"<rows>{'<row><id>1</id></row>' * 20_000}"
    bucket.store.put("day=1/a é.xml", f"{text}</rows>".encode())
    bucket.store.put("b.xml.gz", gzip.compress(text.encode()))
    looks = [parse_document(bucket, name, ROW) for name in ("day=1/a é.xml", "b.xml.gz", "gone.xml")]
    assert [list(look.names.children) for look in looks] == [["id"], ["id"], []]
    assert [look.error and look.error.why for look in looks] == [None, "it ends too early", None]
