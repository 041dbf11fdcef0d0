"""Files of Avro, XML and Excel, and files packed by Zstandard: all that holds for NDJSON holds for them (docs/reference/file-formats.md)."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import Feed
from tests.support.file_contents import avro, xml
from tests.support.reading import Reading, cases
from tests.support.workbooks import ods, xlsx

XML: dict[str, Any] = {"format": "xml", "options": {"rowTag": "row"}, "schema": None}
EXCEL = {"format": "excel", "schema": None}
AVRO = {"format": "avro", "schema": None}


def _staged(feed: Feed) -> list[Any]:
    return [path for path in (feed.folder / "lake" / "_staging").rglob("*") if path.is_file()]


TEXT: dict[str, Any] = {"text": ["null", "string"]}
WHO = {"type": "record", "name": "w", "fields": [{"name": "n", "type": "string"}]}
AGED = {**WHO, "fields": [*WHO["fields"], {"name": "age", "type": "int"}]}
LONG = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}
DATE = {"type": "int", "logicalType": "date"}
SPACED = "id long, _k string, _n int, text string, all array<string>, note struct<_q: int, _VALUE: string>, day date, at timestamp, of map<string, decimal(4,2)>"
SPACES = (
    '<row k=" a "><id>1</id><text>  two  words\n</text><all> x </all><all>  </all><all/><all><![CDATA[ y ]]></all><note q="5">  z\u00a0</note></row>',
    '<row n=" 7 "><id>\n  2\n</id><text>\n  x\n</text><note q=" 6 ">\n</note><day> 2026-01-02 </day><at>\t2026-01-02T03:04 </at><of> <a> 1.5 </a> <b/> </of></row>',
    '<row n=""><id>-9223372036854775808</id><text/></row>',
)
NIL = 'xsi:nil="true" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
MIXED = "id long, note struct<_k: int, _VALUE: string, b: string>, text string, all array<string>, mixed struct<_VALUE: array<string>, b: int>"
LOCAL = XML["options"] | {"dateFormat": "dd.MM.yyyy", "locale": "de"}
LINE = '<id>1</id><day> 02.01.2026 </day><line p="1,5"><price>1.234,5</price></line>'
WHOLE = "<id>1</id><who><age>5</age></who><all>1</all>"
ELEMENTS = (
    '<rows at="x"><row k="7"><id>1</id><tags>a</tags><tags>b</tags></row><other/><row><id>2</id></row></rows>'
)
BESIDE = "expected the fields of the declared schema, found {} beside them"
TWO_CASES = "expected column names that differ in more than upper and lower case, found {} and {}"
TWO_TEXTS = "record 1: field note._VALUE: expected one text, found 2 with elements or comments between them; to hold several, declare an array in source.schema"
DIGITS = "sheet Data, A4: field id: expected {}, found a number with more digits than a workbook stores exactly; a text cell would keep them, '9007199254740992'"

READINGS = {
    "rows have the types of Avro's files and columns of their folders": Reading(
        AVRO,
        {
            "day=2026-01-01/a.avro": avro({"id": 1, "text": "x"}, **TEXT), "day=2026-01-01/b[1] é.avro": avro({"id": 2, "text": None}, codec="deflate", **TEXT),
            "day=2026-01-02/c.avro": avro({"id": 3}), "day=2026-01-02/d.avro": b"", "day=2026-01-02/e.avro": avro(**TEXT),
        },
        "id text day _source_file",
        [(1, "x", "2026-01-01", "day=2026-01-01/a.avro"), (2, None, "2026-01-01", "day=2026-01-01/b[1] é.avro"), (3, None, "2026-01-02", "day=2026-01-02/c.avro")],
    ),
    "bad files of Avro are passed over and unknown fields found at depth": Reading(
        AVRO | {"schema": "id long, who struct<n string>"},
        {
            "a.avro": avro({"id": 1, "who": {"n": "x"}}, who=WHO), "b.avro": avro({"id": 2, "who": {"n": "x", "age": 3}}, who=AGED),
            "c.avro": avro(*({"id": n} for n in range(500)))[:-30], "d.avro": avro({"id": "x"}, id="string"), "e.avro": b"no avro", "f.avro": avro({"id": 6}),
        },
        "id", [(1,), (6,)],
        {
            "b.avro": BESIDE.format("who.age"), "c.avro": "cannot be read: it is damaged, or ends too early",
            "d.avro": "column id: expected bigint, found Avro's type string", "e.avro": "expected an Avro file, found another format",
        },
    ),
    **{
        f"headers that no table holds are passed over [{mode}]": Reading(
            AVRO, {"a.avro": avro({"id": 1, "ID": 2}, ID="long"), "b.avro": avro({"id": 1, "d": Decimal(1)}, d=LONG), "c.avro": avro({"id": 3, "none": None}, none="null")},
            "id", [(3,)], {"a.avro": "expected column names that differ in more than upper and lower case, found ID and id", "b.avro": "column d: expected a type that Spark reads, found a decimal of 60 digits, which is more than 38"}, more={"target": {"schema_mode": mode}},
        )
        for mode in ("strict", "merge", "rescue")
    },
    "a time beyond the year 9999 makes the file bad": Reading(
        AVRO, {"a.avro": avro({"id": 1, "day": date(9999, 12, 31)}, day=DATE), "b.avro": avro({"id": 2, "day": 2_932_897}, day=DATE)}, "id day", [(1, date(9999, 12, 31))],
        {"b.avro": "column day: expected date, found +10000-01-01 of the file's type date, which lies beyond the years 1 to 9999"},
    ),
    "cut documents and attributes without columns are refused": Reading(
        XML | {"schema": "id long, tags array<string>"},
        {
            "a.xml": xml("<id>1</id>")[:-8], "b.xml": xml('<id unit="kg">2</id>'), "c.xml": xml('<tags>x</tags><tags k="1">y</tags>'),
            "d.xml": xml("<id>4</id>").replace("<row>", '<row xmlns:p="u">'),
        },
        "id", [(4,)],
        {"a.xml": "line 3: expected XML, found text that does not parse as XML (it ends too early)", "b.xml": BESIDE.format("id._unit"), "c.xml": BESIDE.format("tags._k")},
    ),
    "what no column takes as it is makes the record bad": Reading(
        XML | {"schema": MIXED},
        {
            "a.xml": xml('<id>1</id><note k="1">x<b/>y</note>'), "b.xml": xml('<id>2</id><note k="1">x<!-- -->y</note>'),
            "c.xml": xml("<id>3</id><text/>", f"<id>3</id><text {NIL}/>"), "d.xml": xml("<id>4</id><all>x</all><All>y</All>"), "e.xml": xml("<id>5<!-- -->5</id>"),
            "f.xml": xml(f'<id {NIL}/><note {NIL} k="6">\n </note>', f"<id>7</id><text {NIL.replace('true', 'false')}>x</text>"),
            "g.xml": xml("<id>8</id><mixed>x<b>9</b>y</mixed>"),
        },
        "id note text mixed",
        [(None, {"_k": 6, "_VALUE": None, "b": None}, None, None), (7, None, "x", None), (8, None, None, {"_VALUE": ["x", "y"], "b": 9})],
        {
            "a.xml": f"line 2: {TWO_TEXTS}", "b.xml": f"line 2: {TWO_TEXTS}",
            "c.xml": "line 3: record 2: field text: expected a text, found an element with xsi:nil, which a text column cannot tell from an empty text; leave the element out, declare text in"
            " source.schema as struct<`_xsi:nil`: boolean, _VALUE: string>, or set `unknown_fields: ignore` at the top level of the dataflow for empty texts",
            "d.xml": TWO_CASES.format("all", "All"), "e.xml": "cannot be read: an element that holds a value contains a comment or an instruction",
        },
    ),
    "texts keep spaces and numbers may stand between some": Reading(
        XML | {"schema": SPACED}, {f"{name}.xml": f"<rows>{row}</rows>" for name, row in zip("abc", SPACES, strict=True)}, "id _k _n text all note day at of",
        [
            (-(2**63), None, None, "", None, None, None, None, None),
            (1, " a ", None, "  two  words\n", [" x ", "  ", "", " y "], {"_q": 5, "_VALUE": "  z\u00a0"}, None, None, None),
            (2, None, 7, "\n  x\n", None, {"_q": 6, "_VALUE": None}, date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, tzinfo=UTC), [("a", Decimal("1.50")), ("b", None)]),
        ],
    ),
    "values in forms that options name are judged by line": Reading(
        XML | {"schema": "id long, day date, line array<struct<price: decimal(8,2), _p: decimal(4,1)>>", "options": LOCAL},
        {
            "a.xml": xml(LINE), "b.xml": xml(LINE, "<id>2</id><day>2026-01-02</day>"), "c.xml": xml(LINE, "<id>3</id>\n<line><price>1,005</price></line>"),
            "d.xml": xml(LINE, '<id>4</id><line/><line p="1.5"/>'),
        },
        "id day line", [(1, date(2026, 1, 2), [{"price": Decimal("1234.50"), "_p": Decimal("1.5")}])],
        {
            "b.xml": "line 3: record 2: field day: expected date in the format of options.dateFormat, found other text, or more digits, '2026-01-02'",
            "c.xml": "line 4: record 2: field line.price: expected decimal(8,2) in the format of options.locale, found other text, or more digits, '1,005'",
            "d.xml": "line 3: record 2: field line._p: expected decimal(4,1) in the format of options.locale, found other text, or more digits, '1.5'",
        },
    ),
    "values of maps are exact": Reading(
        XML | {"schema": "id long, of map<string, decimal(4,2)>"}, {"a.xml": xml("<id>1</id><of><a>1.50</a></of>"), "b.xml": xml("<id>2</id><of><a>1.005</a></of>")},
        "id of", [(1, [("a", Decimal("1.50"))])],
        {"b.xml": "line 2: record 1: field of: expected decimal(4,2), found a number with more than 2 digits after the point, '1.005'"},
    ),
    "names in two cases are told though unknown fields are ignored": Reading(
        XML | {"schema": "id long, _k string"},
        {
            "a.xml": xml("<id>1</id>").replace("<row>", '<row k="1" K="2">'), "b.xml": xml("<ID>2</ID>", "<id>3</id>"),
            "c.xml": xml("<ID>4</ID><more/><MORE/>", ""), "d.xml": xml("<ID>5</ID>", "<more><id>6</id></more>"),
        },
        "id", [(None,), (4,)],
        {
            "a.xml": TWO_CASES.format("_k", "_K"), "b.xml": TWO_CASES.format("ID", "id"),
            "d.xml": "line 3: record 2: expected fields of the schema (id, _k), found only more",
        },
        more={"unknown_fields": "ignore"},
    ),
    **{
        f"a record may be a text alone or have hundreds of fields [{what}]": Reading(XML, {"a.xml": xml(record)}, columns, [row])
        for what, record, columns, row in (
            ("text alone", "x", "_VALUE", ("x",)), ("text at two places", "x<b>1</b>y", "_VALUE b", (["x", "y"], 1)),
            ("500 fields", "".join(f"<f{number}>{number}</f{number}>" for number in range(500)), "f0 f499", (0, 499)),
        )
    },
    "elements are records and attributes their columns": Reading(
        XML,
        {f"day=1/{name}": ELEMENTS for name in ("a.xml", "b.xml.gz", "c.xml.bz2")}
        | {"day=1/d[1].xml.zst": pa.compress(ELEMENTS.encode(), "zstd", asbytes=True), "day=1/e.xml": b"", "day=1/f.xml": "<rows/>"},
        "id _k tags day", [(1, 7, ["a", "b"], "1"), (2, None, None, "1")] * 4,
    ),
    "a bad record is named by its number, its line and its field": Reading(
        XML | {"schema": "id long, who struct<age: int>, _k long, all array<long>"},
        {
            "a.xml": xml(WHOLE), "b.xml": xml(WHOLE, "<id>two</id>"), "c.xml.gz": xml(WHOLE, WHOLE, "<id>3</id>\n<who><age>old</age></who>"),
            "d.xml": xml("<all>1</all><all>x</all>"), "e.xml": xml(WHOLE).replace("<row>", '<row k="s3cret">'), "f.xml": xml(WHOLE, "<id>2</ix>"), "g.xml": xml(WHOLE)[:40],
        },
        "id", [(1,)],
        {
            "b.xml": "line 3: record 2: field id: expected bigint, found other text", "c.xml.gz": "line 5: record 3: field who.age: expected int, found other text",
            "d.xml": "line 2: record 1: field all: expected bigint, found other text", "e.xml": "line 2: record 1: field _k: expected bigint, found other text",
            "f.xml": "line 3: expected XML, found text that does not parse as XML (mismatched tag)", "g.xml": "line 2: expected XML, found text that does not parse as XML (unclosed token)",
        },
        more={"show_bad_records": False},
    ),
    "a declared schema and options say what is read of a sheet": Reading(
        {"format": "excel", "schema": "id int, price decimal(8,2), day date, note string", "options": {"sheet": "Prices", "header_row": 2, "skip_rows": 1}},
        {"a.xlsx": xlsx([["nothing"]], sheet="First", Prices=[["Report"], ["id", "price", "day"], ["", "EUR"], ["7", 0.1 + 0.2, date(2026, 1, 2)]])},
        "id price day note", [(7, Decimal("0.30"), date(2026, 1, 2), None)],
    ),
    **{
        f"a sheet with no declared column is bad [{unknown}]": Reading(
            EXCEL | {"schema": "id long, text string"}, {"a.xlsx": xlsx([["Report of 2026"]], sheet="Cover", Data=[["id"], [1]]), "b.xlsx": xlsx([["ID"], [2]])},
            "id", [(2,)],
            {
                "a.xlsx": "sheet Cover, row 1 (options.header_row): expected columns of the declared schema (id, text), found only Report of 2026,"
                ' and the workbook has other sheets: Data. If one of them holds the records, name it in source: options: {sheet: "Data"}'
            },
            more={"unknown_fields": unknown},
        )
        for unknown in ("check", "ignore")
    },
    "a first column without a name is named by its place": Reading(
        EXCEL, {"a.xlsx": xlsx([[None, "id", "text"], [0, 1, "x"], [1, 2, "y"]])}, "_c0 id text", [(0, 1, "x"), (1, 2, "y")],
    ),
    **{
        f"a number of too many digits is refused [{schema}]": Reading(
            EXCEL | {"schema": schema}, {"a.xlsx": xlsx([[], [], ["id"], [9007199254740993]]), "b.xlsx": xlsx([[], ["id"], [9007199254740991]])},
            "id", [(number,)], {"a.xlsx": DIGITS.format(kind)},
        )
        for schema, number, kind in ((None, 2**53 - 1, "bigint"), ("id long", 2**53 - 1, "bigint"), ("id string", str(2**53 - 1), "string"))
    },
}  # fmt: skip


@pytest.mark.each_case
@pytest.mark.parametrize("reading", cases(READINGS))
def test_files_of_avro_xml_and_excel_give_these_rows(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


class TestAvro:
    def test_columns_of_a_whole_sample_are_pinned_and_others_refused(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=AVRO)
        feed.put_bytes("a.avro", avro({"id": 1}))
        feed.put_bytes("b.avro", avro({"id": 2, "more": 5}, more="int"))
        feed.put_bytes("c.avro", avro({"id": "3"}, id="string"))
        error = feed.fail()
        assert "file c.avro, column id: expected bigint, found Avro's type string" in error.message
        assert feed.rows("id", "more") == [(1, None), (2, 5)]

    @pytest.mark.parametrize(
        ("schema", "shown"), [("string", "string"), (["int", "string"], "of several types")]
    )
    def test_avro_values_without_columns_are_told(self, make_feed: MakeFeed, schema: Any, shown: str) -> None:
        feed, buffer = make_feed(source=AVRO), io.BytesIO()
        fastavro.writer(buffer, fastavro.parse_schema(schema), ["a"])
        feed.put_bytes("a.avro", buffer.getvalue())
        error = feed.fail()
        assert (error.code, feed.rows()) == ("bad_file", [])
        assert f"file a.avro, expected records, found values without columns, {shown}." in error.message


class TestXml:
    def test_the_encoding_of_options_counts_and_the_first_bad_records_are_named(
        self, make_feed: MakeFeed
    ) -> None:
        options = {"rowTag": "row", "encoding": "windows-1252"}
        feed = make_feed(source=XML | {"schema": "id long, t string", "options": options})
        feed.put_bytes("a.xml", xml("<id>1</id><t>é</t>").encode("cp1252"))
        bad = [f"<id>{text}</id>" for text in ("x", "2", "y", "z", "w")]
        feed.put_bytes("b.xml", xml(*bad).encode("cp1252"))
        error = feed.run().error
        assert feed.rows("id", "t") == [(1, "é")]
        for number, text in ((1, "x"), (3, "y"), (4, "z")):
            assert f"record {number}: field id: expected bigint, found other text, '{text}'" in str(error)
        assert "4 bad records in all" in str(error)

    @pytest.mark.parametrize("schema", [None, "id long"])
    def test_xml_without_the_row_tag_is_warned_of(self, make_feed: MakeFeed, schema: str | None) -> None:
        feed = make_feed(source={**XML, "schema": schema, "options": {"rowTag": "rwo"}})
        feed.put_text("a.xml", xml("<id>1</id>"))
        warning = "file a.xml has no element rwo and so no record; the elements are rows, row, id. If one of them is a record, set options.rowTag to it"
        assert warning in feed.run().warnings
        feed.put_text("b.xml", "<rows/>")
        assert not any("b.xml has no" in each for each in feed.run().warnings)
        feed.put_text("c.xml", "<rows><rwo><id>2</id></rwo></rows>")
        feed.put_text("d.xml", xml("<id>3</id>"))
        which = (
            "a.xml and 1 more have" if schema is None else "d.xml has"
        )  # without a record nothing was loaded before
        assert any(f"file {which} no element rwo" in warning for warning in feed.run().warnings)

    @pytest.mark.parametrize(
        ("options", "row"),
        [
            ({}, (5, " a ", 1)),
            pytest.param({"ignoreSurroundingSpaces": True}, (5, "a", 1), marks=pytest.mark.full),
        ],
    )
    def test_types_are_inferred_without_spaces_which_an_option_leaves_out(
        self, make_feed: MakeFeed, options: dict[str, Any], row: tuple[Any, ...]
    ) -> None:
        feed = make_feed(source=XML | {"options": XML["options"] | options}, target={"schema_mode": "merge"})
        feed.put_text("a.xml", xml("\n <id> 5 </id>\n <text> a </text>\n"))
        feed.load()
        feed.put_text("b.xml", xml("<id> 6 </id><more> 1 </more>"))
        feed.load()
        assert [(row[0], row[1], None), (6, None, row[2])] == feed.rows("id", "text", "more")

    @pytest.mark.full
    def test_a_variant_of_guessed_types_is_refused(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=XML | {"schema": "id long, v struct<a: variant>"})
        feed.put_text("a.xml", xml("<id>1</id><v><a>007</a></v>"))
        error = feed.fail()
        assert "expected types that keep text as it is written, found v struct<a:variant>" in error.message

    @pytest.mark.parametrize("mode", ["strict", "merge"])
    def test_names_that_differ_in_case_only_are_told(self, make_feed: MakeFeed, mode: str) -> None:
        feed = make_feed(source=XML, on_bad_file="quarantine", target={"schema_mode": mode})
        feed.put_text("a.xml", xml("<id>1</id><ID>2</ID>"))
        feed.put_text("b.xml", xml("<id>3</id>").replace("<row>", '<row k="1" K="2">'))
        feed.put_text("c.xml", xml("<id>4</id>"))
        feed.load()
        feed.put_text("d.xml", xml("<id>5</id>", "<Id>6</Id>"))
        feed.load()
        assert feed.ids == [4]
        two = "expected column names that differ in more than upper and lower case, found {} and {}"
        assert feed.quarantined == {
            "a.xml": two.format("id", "ID"),
            "b.xml": two.format("_k", "_K"),
            "d.xml": two.format("id", "Id"),
        }

    def test_a_field_that_the_pinned_schema_lacks_is_refused_at_any_depth(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=XML, on_bad_file="quarantine", max_bad_files=4)
        feed.put_text("a.xml", xml("<id>1</id><who><n>x</n></who>", "<id>2</id><tag><k>1</k></tag><tag><k>2</k></tag>"))  # fmt: skip
        feed.load()
        feed.put_text("b.xml", xml("<id>3</id>", "<id>4</id><more>5</more>"))
        feed.put_text("c.xml", xml("<id>5</id><who><n>x</n><age>3</age></who>"))
        feed.put_text("d.xml", xml("<id>6</id><tag><k>1</k><v>2</v></tag>"))
        feed.put_text("e.xml", xml("<id>7</id>").replace("<row>", '<row at="x">'))
        feed.put_text("f.xml", xml("<id>8</id>"))
        feed.load()
        assert feed.ids == [1, 2, 8]
        found = {path: reason.partition("found ")[2].partition(" ")[0] for path, reason in feed.quarantined.items()}  # fmt: skip
        assert found == {"b.xml": "more", "c.xml": "who.age", "d.xml": "tag.v", "e.xml": "_at"}


class TestExcel:
    def test_rows_know_their_file_and_nothing_stays_staged(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=EXCEL)
        moment = datetime.fromisoformat("2026-01-02T03:04:05")
        feed.put_bytes("day=1/a.xlsx", xlsx([["id", "amount", "at", "on", "text"], [1, 1.5, moment, True, "é"], [2]]))  # fmt: skip
        feed.put_bytes("day=1/b[1] é.xlsx", xlsx([["Text", "ID"], ["b", 3]]))
        feed.put_bytes("day=2/c.ods", ods([["id", "amount"], [4, 2]]))
        feed.put_bytes("day=2/d.xlsx", b"")
        feed.put_bytes("day=2/e.xlsx", xlsx([["id"]]))
        assert feed.load().files == 5
        assert feed.rows("id", "amount", "at", "on", "text", "day", "_source_file") == [
            (1, 1.5, moment, True, "é", "1", "day=1/a.xlsx"),
            (2, None, None, None, None, "1", "day=1/a.xlsx"),
            (3, None, None, None, "b", "1", "day=1/b[1] é.xlsx"),
            (4, 2.0, None, None, None, "2", "day=2/c.ods"),
        ]
        assert _staged(feed) == []

    def test_a_cell_that_does_not_fit_is_named_and_its_file_passed_over(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=EXCEL, on_bad_file="quarantine", max_bad_files=6)
        feed.put_bytes("a.xlsx", xlsx([["id", "on"], [1, date(2026, 1, 1)]]))
        feed.load()
        feed.put_bytes(
            "b.xlsx",
            xlsx([["id", "on"], [2, None], [], [2.5, "x"], [3, None], *([text, None] for text in "abc")]),
        )
        feed.put_bytes("c.xlsx", xlsx([["on", "id"], ["soon", 3]]))
        feed.put_bytes("d.xlsx", xlsx([["id", "more"], [4, 5]]))
        feed.put_bytes("e.xlsx", xlsx([["id"], [5, 6]]))
        feed.put_bytes("f.xlsx", b"no workbook")
        feed.put_bytes("g.xlsx", xlsx([["id"], [7]], sheet="Other"))
        feed.load()
        assert feed.ids == [1, 7]
        assert feed.quarantined == {
            "b.xlsx": "sheet Data, A4: field id: expected bigint, found a number, '2.5'; sheet Data, A6: field id: expected bigint, found text, 'a';"
            " sheet Data, A7: field id: expected bigint, found text, 'b'; 4 bad records in all",
            "c.xlsx": "sheet Data, A2: field on: expected date, found text, 'soon'",
            "d.xlsx": "line 1: expected the fields of the pinned schema, found more beside them",
            "e.xlsx": "sheet Data, B2: expected values only in columns that header row 1 names, found a number, '6' (options.header_row can name another row)",
            "f.xlsx": "cannot be read: expected a workbook, found another file",
        }
        assert _staged(feed) == []

    def test_a_file_that_stops_a_run_names_the_others_with_bad_records(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={**EXCEL, "schema": "id long"})
        for name, cell in {"a": 1, "b": "x", "c": 2, "d": 2.5, "e": "y"}.items():
            feed.put_bytes(f"{name}.xlsx", xlsx([["id"], [cell]]))
        assert feed.fail().message == (
            "file b.xlsx, sheet Data, A2: field id: expected bigint, found text, 'x' (show_bad_records: true shows the record). Nothing of the file was"
            " loaded: fix or remove it; the watermark stays below it. Bad records are also in d.xlsx, e.xlsx."
        )
        assert feed.ids == [1]

    def test_an_empty_sheet_beside_others_is_warned_of_unless_named(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=EXCEL)
        feed.put_bytes("a.xlsx", xlsx([["id"]], sheet="Cover", Data=[["id"], [1]]))
        assert "found 2: Cover, Data. Name it" in str(feed.run().error)
        feed.define(source=EXCEL | {"schema": "id long"})
        warning = (
            "file a.xlsx has no record in sheet Cover, and the workbook has other sheets: Data. If one of them holds the records, name it in source:"
            ' options: {sheet: "Data"}'
        )
        outcome = feed.run()
        assert (outcome.rows, warning in outcome.warnings) == (0, True), outcome.warnings
        feed.define(source=EXCEL | {"schema": "id long", "options": {"sheet": "Data"}})
        feed.put_bytes("b.xlsx", xlsx([["id"]], sheet="Cover", Data=[["id"], [1]]))
        assert (any("no record" in each for each in feed.load().warnings), feed.ids) == (False, [1])

    def test_a_bad_workbook_stops_below_it_and_takes_no_number(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=EXCEL | {"schema": "id long"})
        feed.put_bytes("a.xlsx", xlsx([["id"], [1]]))
        feed.put_bytes("b.xlsx", xlsx([["id"], ["x"]]))
        feed.put_bytes("c.xlsx", xlsx([["id"], [3]]))
        outcome = feed.run()
        assert (outcome.status, feed.path, feed.ids, feed.open_intent) == ("failed", "a.xlsx", [1], None)
        assert "file b.xlsx, sheet Data, A2: field id: expected bigint, found text, 'x'" in str(outcome.error)
        feed.put_bytes("b.xlsx", xlsx([["id"], [2]]))
        feed.load()
        assert feed.ids == [1, 2, 3]

    def test_a_released_and_a_late_workbook_are_loaded_once(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=EXCEL | {"schema": "id long"}, on_bad_file="quarantine")
        feed.put_bytes("b.xlsx", b"x")
        feed.put_bytes("c.xlsx", xlsx([["id"], [3]]))
        feed.load()
        feed.put_bytes("a.xlsx", xlsx([["id"], [1]]))
        feed.command("late", "flow")
        feed.put_bytes("b.xlsx", xlsx([["id"], [2]]))
        feed.command("files", "release", "flow", "b.xlsx", "--reason", "mended")
        feed.load()
        assert (feed.ids, feed.path) == ([1, 2, 3], "c.xlsx")

    @pytest.mark.parametrize(
        "step", [Step.INTENT_PUT, pytest.param(Step.WRITTEN, marks=pytest.mark.full), pytest.param(Step.VERIFIED, marks=pytest.mark.full)]
    )  # fmt: skip
    def test_a_killed_client_leaves_rows_once_and_none_staged(self, make_feed: MakeFeed, step: Step) -> None:
        feed = make_feed(source=EXCEL, watermark={"checkpoint": {"interval_files": 1}})
        feed.put_bytes("a.xlsx", xlsx([["id"], [1], [2]]))
        feed.put_bytes("b.xlsx", xlsx([["id"], [3]]))
        crash(feed, step)
        assert _staged(feed) != []
        assert feed.load().status == "recovered"
        assert (feed.ids, feed.path, feed.open_intent) == ([1, 2, 3], "b.xlsx", None)
        assert _staged(feed) == []

    def test_a_type_that_no_cell_can_have_is_refused(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source=EXCEL | {"schema": "id long, tags array<string>"})
        feed.put_bytes("a.xlsx", xlsx([["id"], [1]]))
        error = feed.fail()
        assert "expected a type that a cell can have, found tags array<string>" in error.message


@pytest.mark.parametrize(
    ("form", "text", "schema"),
    [
        ("ndjson", '{"id": 1}\n{"id": 2}\n', "id long"),
        ("json", '[{"id": 1},\n{"id": 2}]', None),
        ("csv", "id\n1\n2\n", "id long"),
    ],
)
def test_text_that_is_packed_by_zstandard_is_read_and_a_truncated_file_is_named(
    make_feed: MakeFeed, form: str, text: str, schema: str | None
) -> None:
    feed = make_feed(source={"format": form, "schema": schema})
    packed = pa.compress(text.encode(), "zstd", asbytes=True)
    feed.put_bytes(f"a.{form}.zst", packed)
    feed.put_bytes(f"b.{form}.zst", b"")
    assert (feed.load().files, feed.ids) == (2, [1, 2])
    feed.put_bytes(f"c.{form}.zst", packed[:-6])
    error = feed.fail()
    assert f"c.{form}.zst" in error.message
    assert (feed.ids, feed.path) == ([1, 2], f"b.{form}.zst")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        pytest.param("a.avro", avro({"id": 1}), marks=pytest.mark.full),
        pytest.param("a.xml", xml("<id>1</id>").encode(), marks=pytest.mark.full),
        ("a.xlsx", xlsx([["id"], [1]])),
    ],
)
def test_folders_of_windows_hold_files_of_any_format(make_feed: MakeFeed, name: str, data: bytes) -> None:
    form, options = {
        "a.avro": ("avro", {}),
        "a.xml": ("xml", {"rowTag": "row"}),
        "a.xlsx": ("excel", {}),
    }[name]
    day = {"name": "day", "type": "datetime", "range": {"from": "2026-05-30", "to": "2026-06-01"}}
    feed = make_feed(
        source={
            "path": "./landing/{start:%Y-%m-%d}",
            "format": form,
            "options": options,
            "schema": None,
            "missing": "empty",
        },
        watermark={"type": "window", "definition": [day], "window": "daily", "partial": False},
    )
    feed.put_bytes(f"2026-05-30/{name}", data)
    feed.load()
    assert feed.rows("id", "_source_file") == [(1, f"2026-05-30/{name}")]
