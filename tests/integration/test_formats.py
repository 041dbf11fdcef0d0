"""What stands in files: each format, plain and packed, empty files, and schemas declared or pinned."""

from __future__ import annotations

import bz2
import gzip
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import Row
from tests.support.file_contents import packed, parquet_bytes
from tests.support.reading import Reading, cases

AB = [(1, "a"), (2, "b")]


TEXTS = {"format": "csv", "schema": "id long, text string"}
PARQUET = {"format": "parquet", "schema": None}
NESTED = "id long, who struct<name string, tags array<struct<k string>>>, by map<string, struct<n long>>"
BESIDE = "expected the fields of the declared schema, found {} beside them"
HEADER = "expected the header id,text, found "
OF_TYPE = "of the file's type {}, which cannot be converted exactly"
OPEN_QUOTE = "line 2: a quote opens a value and is not closed in its line"
NULS = {1: "\0a", 2: 'a"\0', 3: "\0", 4: "b\0c"}
ACROSS = {"format": "csv", "schema": "a string, b string", "options": {"multiLine": True}}

READINGS = {
    "ndjson is one object a line": Reading(
        {"schema": "id long, text string"}, packed("a.jsonl", '{"id": 1, "text": "x"}\n{"text": "é\\n\\"{", "id": 2}\n{"id": 3}\n'),
        "id text", [(1, "x"), (2, 'é\n"{'), (3, None)] * 3,
    ),
    "json is an array or one object a file": Reading(
        {"format": "json", "schema": "id long, tags array<string>"},
        packed("a.json", '[\n {"id": 1, "tags": ["x"]},\n {"id": 2}\n]') | packed("b.json", '{\n "id": 3,\n "tags": []\n}'),
        "id tags", [(1, ["x"]), (2, None), (3, [])] * 3,
    ),
    "csv has a header and doubles quotes": Reading(
        TEXTS, packed("a.csv", 'id,text\n1,a\n2,"b, ""c"" \\"\n3,\n'), "id text", [(1, "a"), (2, 'b, "c" \\'), (3, None)] * 3,
    ),
    "tsv is csv with tabs and may lie beside it": Reading(
        TEXTS, {"a.csv": "id,text\n1,a\ta\n", "b.tsv": "id\ttext\n2\tb,b\n", "c.tsv.gz": "id\ttext\n3\tc,c\n"},
        "id text", [(1, "a\ta"), (2, "b,b"), (3, "c,c")],
    ),
    "parquet has types of its own": Reading(
        PARQUET, {"a.parquet": pa.table({"id": [1, 2], "text": ["a", "b"]}), "b.parquet": pa.table({"id": [3], "text": pa.array([None], pa.string())})},
        "id text", [*AB, (3, None)], types={"id": "long", "text": "string"},
    ),
    "only files with the right ending are looked at": Reading(
        {"extensions": [".data"]},
        {name: [number] for number, name in enumerate(("a.data", "b.ndjson", "c.DATA", "_d.data", ".e.data", "_tmp/f.data", "g.data.part"))},
        "id", [(0,)],
    ),
    "a header alone is no row": Reading({"format": "csv"}, {"a.csv": "id\n", "b.csv": "id", "c.csv": "id\n1\n"}, "id", [(1,)]),
    "a parquet file may have no rows": Reading(
        PARQUET, {"a.parquet": pa.table({"id": pa.array([], pa.int64())}), "b.parquet": pa.table({"id": [1]})}, "id", [(1,)],
    ),
    "unknown fields are told at any depth but where they hold nothing": Reading(
        {"schema": NESTED},
        {
            "a.ndjson": [{"id": 1, "who": {"name": "x", "tags": [{"k": "a"}]}, "by": {"any": {"n": 1}}}],
            "b.ndjson": [{"id": 2, "who": {"name": "x", "age": 3}}],
            "c.ndjson": [{"id": 3, "who": {"tags": [{"k": "a"}, {"v": "b"}]}}],
            "d.ndjson": [{"id": 4, "by": {"any": {"m": 1}}}],
            "e.ndjson": [{"id": 5, "who": {"nothing": {}}, "gone": [{}]}],
        },
        "id", [(1,), (5,)],
        {f"{file}.ndjson": f"line 1: {BESIDE.format(name)}" for file, name in (("b", "who.age"), ("c", "who.tags.v"), ("d", "by.m"))},
    ),
    "ignored fields are left out but a record of nothing else is bad": Reading(
        {}, {"a.ndjson": [{"id": 1, "more": "x"}, {"more": None, "id": 2}], "b.ndjson": [3, {"more": {"id": 4}}]},
        "id", [(1,), (2,)], {"b.ndjson": "line 2: expected fields of the schema (id), found only more"}, more={"unknown_fields": "ignore"},
    ),
    "parquet with none of the columns is bad": Reading(
        {"format": "parquet", "schema": "id long, s string"}, {"a.parquet": [{"ID": 1, "more": 2}], "b.parquet": [{"more": 2}]},
        "id", [(1,)], {"b.parquet": "expected columns of the declared schema (id, s), found only more"}, more={"unknown_fields": "ignore"},
    ),
    **{
        f"an empty text in quotes is null unless another text is [{what}]": Reading(
            TEXTS | {"options": options}, {"a.csv": 'id,text\n1,""\n2,\n3,NULL\n'}, "id text", list(enumerate(texts, 1))
        )
        for what, options, texts in (
            ("none is", {}, [None, None, "NULL"]), ("NULL is", {"nullValue": "NULL"}, ["", None, None])
        )
    },
    "another header says what was expected and found": Reading(
        TEXTS | {"schema": "id long, text string, day string"},
        {
            "day=1/a.csv": "id,text\n1,a\n", "day=1/b.csv": "text,id\nc,3\n", "day=1/c.csv.gz": "id,other,text\n4,x,d\n",
            "day=1/d.tsv": "id\n5\n", "day=1/e.csv": "id;text\n6;e\n",
        },
        "id text day", [(1, "a", "1")],
        {
            "day=1/b.csv": f"{HEADER}text,id (another order)",
            "day=1/c.csv.gz": f"{HEADER}id,other,text (other not in the schema)",
            "day=1/d.tsv": f"{HEADER}id (without text)",
            "day=1/e.csv": f"""{HEADER}id;text (it seems to be separated by ';': set `options: {{sep: ";"}}` below `source`)""",
        },
    ),
    **{
        f"an empty text of JSON is a text of its column [{form}]": Reading(
            {"format": form, "schema": None}, {f"a.{form}": text}, "id n note tags inner", [(1, "5", "", ["1", ""], None), (2, "", None, None, {"a": ""})],
        )
        for form, text in (
            ("ndjson", '{"id": 1, "n": 5, "note": "", "tags": [1, ""]}\n{"id": 2, "n": "", "inner": {"a": ""}}'),
            ("json", '[{"id": 1, "n": 5, "note": "", "tags": [1, ""]}, {"id": 2, "n": "", "inner": {"a": ""}}]'),
        )
    },
    "files with an open quote are passed over": Reading(
        TEXTS, {"a.csv": "id,text\n1,a\n", "b.csv": 'id,text\n2,"half', "c.tsv": 'id\ttext\n3\t"half\n', "d.csv": 'id,text\n4,"whole"\n'},
        "id text", [(1, "a"), (4, "whole")], {"b.csv": OPEN_QUOTE, "c.tsv": OPEN_QUOTE},
    ),
    "missing values and files without records tell no type": Reading(
        {"format": "csv", "schema": None}, {"a.csv": "v,day,part\n", "b.csv": "v,day,part\n1,2026-01-01,1E5\n,,3E5\n"},
        "v part", [(None, "3E5"), (1, "1E5")], types={"v": "integer", "day": "date", "part": "string"},
    ),
    **{
        f"line breaks within quotes stay [behind {what}]": Reading(
            TEXTS | {"schema": "id string, text string", "options": {"multiLine": True, "header": bool(header)}},
            {"a.csv": f'{header}\r\n1,"a\r\nb"\r\n\r\n2,"c\n""d"""\r\n3,"e\rf"'}, "id text", [*first, ("1", "a\r\nb"), ("2", 'c\n"d"'), ("3", "e\rf")],
        )
        for what, header, first in (
            ("a header", "id,text", []), ("a blank line", "id,text\r\n\r\n 0,zero", [(" 0", "zero")]), ("no header", "", [])
        )
    },
    "a quote of the user is doubled within itself": Reading(
        TEXTS | {"options": {"quote": "'"}}, {"a.csv": "id,text\n1,'it''s, so'\n2,\"x\"\n"}, "id text", [(1, "it's, so"), (2, '"x"')],
    ),
    "a record of control letters or of the columns' names is one": Reading(
        ACROSS | {"options": {"sep": "\x01"}}, {"a.csv": "a\x01b\n1\x012\n\x01\na\x01b\nodd\n3\x014\n"},
        "a b", [(None, None), ("1", "2"), ("3", "4"), ("a", "b")], more={"max_bad_records": 1},
    ),
    **{
        f"a name that stands twice is told where types are inferred [in {where}]": Reading(
            {"format": form, "schema": None}, {f"a.{form}": text, f"b.{form}": '{"id":3,"o":{"a":1},"x":1}'}, "id", [(3,)], {f"a.{form}": why},
        )
        for where, form, text, why in (
            ("a later record", "ndjson", '{"id":1}\n{"id":2,"o":{"a":1,"a":2}}\n', "line 2: field o.a occurs twice"),
            ("a first record", "ndjson", '{"id":1,"o":{"a":1,"a":2}}\n', "line 1: field o.a occurs twice"),
            ("a document", "json", '[{"id":1,"x":1,"x":2}]', "line 1: record 1: field x occurs twice"),
        )
    },
    "a struct field has the type of the file with a value": Reading(
        PARQUET, {"a.parquet": pa.table({"o": [{"a": None, "b": 1}]}), "b.parquet": pa.table({"o": [{"a": "x", "b": 2}]})},
        "_source_file o", [("a.parquet", {"a": None, "b": 1}), ("b.parquet", {"a": "x", "b": 2})],
    ),
    "bytes of parquet are text if they are UTF-8": Reading(
        PARQUET | {"schema": "text string"}, {"a.parquet": pa.table({"text": [b"\xc3\xa9", None]}), "b.parquet": pa.table({"text": [b"\xff"]})},
        "text", [(None,), ("é",)], {"b.parquet": f"column text: expected string, found \ufffd {OF_TYPE.format('binary')}"},
    ),
    "whole numbers that a fraction rounds up are bad": Reading(
        PARQUET | {"schema": "v double, f float"},
        {
            f"{name}.parquet": pa.table({"v": [v], "f": pa.array([f], pa.int32())})
            for name, v, f in (("a", 2**62, 2**30), ("b", 2**63 - 1, 0), ("c", 0, 2**31 - 1))
        },
        "v f", [(2.0**62, 2.0**30)], {
            "b.parquet": f"column v: expected double, found {2**63 - 1} {OF_TYPE.format('bigint')}",
            "c.parquet": f"column f: expected float, found {2**31 - 1} {OF_TYPE.format('int')}",
        },
    ),
    **{
        f"a NUL stays and lost letters show [{mode}{across}]": Reading(
            TEXTS | {"options": {"multiLine": bool(across)}},
            {"a.csv": "id,text\n" + "".join(f'{number},"{text.replace(chr(34), chr(34) * 2)}"\n' for number, text in NULS.items()), "b.csv": 'id,text\n5,"\uffffx"\n'},
            "id text", list(NULS.items()), {"b.csv": "line 2: field text: expected text, found a character that Spark loses (U+FFFF or NUL)"}, more={"target": {"schema_mode": mode}},
        )
        for mode in ("strict", "rescue") for across in ("", " over lines")
    },
    "a byte order mark within a file is a letter": Reading(
        TEXTS | {"schema": "a long, b string"}, {"a.csv": "\ufeffa,b\n1,\ufeffx\n", "b.csv": "\ufeffa,b\n2,x\n\ufeff3,y\n", "c.csv": "\ufeffa,b\n\ufeff\n"},
        "a b", [(1, "\ufeffx")],
        {"b.csv": "line 3: field a: expected bigint, found other text, '\\ufeff3'", "c.csv": "line 2: expected 2 values, found 1"},
    ),
    "a line of blanks is a record where values may go over lines": Reading(
        ACROSS, {"a.csv": "a,b\n1,2\n\n3,4\n", "b.csv": "a,b\n \n"}, "a b", [("1", "2"), ("3", "4")], {"b.csv": "line 2: expected 2 values, found 1"},
    ),
}  # fmt: skip


@pytest.mark.each_case
@pytest.mark.parametrize("reading", cases(READINGS))
def test_files_of_each_format_give_these_rows(make_feed: MakeFeed, reading: Reading) -> None:
    reading.check(make_feed)


class TestFormats:
    @pytest.mark.parametrize("schema", ["id long, text string", None])
    def test_a_reordered_csv_header_is_an_error(self, make_feed: MakeFeed, schema: str | None) -> None:
        feed = make_feed(source={"format": "csv", "schema": schema})
        feed.put_text("a.csv", "id,text\n1,a\n2,b\n")
        feed.load()
        feed.put_text("b.csv", "text,id\nc,3\n")
        outcome = feed.run()
        assert (outcome.status, feed.path) == ("failed", "a.csv")
        assert "b.csv" in str(outcome.error)
        assert "header" in str(outcome.error)
        assert [row[:2] for row in feed.rows("id", "text")] == AB

    def test_options_reach_the_reader(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            source={
                "format": "csv",
                "schema": "id long, text string, v double",
                "options": {"sep": ";", "nullValue": "-", "nanValue": "n/a", "positiveInf": "+oo"},
            }
        )
        feed.put_text("a.csv", "id;text;v\n1;a,a;+oo\n2;-;n/a\n")
        feed.load()
        assert [(id_, text, str(v)) for id_, text, v in feed.rows("id", "text", "v")] == [
            (1, "a,a", "inf"),
            (2, None, "nan"),
        ]


class TestEmptyFiles:
    @pytest.mark.parametrize(
        ("form", "row"),
        [("ndjson", '{"id": 1}'), ("json", '[{"id": 1}]'), ("csv", "id\n1\n"), ("csv", "\n\nid\n1\n")],
    )
    def test_files_without_rows_load_as_none(self, make_feed: MakeFeed, form: str, row: str) -> None:
        feed = make_feed(source={"format": form})
        for ending in ("", ".gz"):
            feed.put_bytes(f"a.{form}{ending}", b"")
            feed.put_text(f"b.{form}{ending}", "")
            feed.put_text(f"c.{form}{ending}", "\n\n  \n\r\n")
            feed.put_text(f"d.{form}{ending}", row)
            feed.put_bytes(f"e.{form}{ending}", b"")
        outcome = feed.load()
        assert (outcome.files, outcome.rows, feed.ids) == (10, 2, [1, 1])
        assert feed.path == f"e.{form}.gz"

    def test_a_slice_of_empty_files_moves_the_watermark(self, make_feed: MakeFeed) -> None:
        feed = make_feed(watermark={"checkpoint": {"interval_files": 2}})
        for name in "abc":
            feed.put_bytes(f"{name}.ndjson", b"")
        assert (feed.load().status, feed.path, feed.ids) == ("committed", "c.ndjson", [])
        feed.put("d.ndjson", 1)
        assert (feed.load().rows, feed.ids) == (1, [1])

    def test_without_a_schema_empty_files_wait_for_one_that_tells_it(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": None})
        feed.put_bytes("a.ndjson", b"")
        feed.put_text("b.ndjson", "\n\n")
        waiting = feed.load()
        assert (waiting.status, feed.newest, feed.table.exists()) == ("nothing", None, False)
        assert any("source.schema" in warning for warning in waiting.warnings)
        feed.put("c.ndjson", 1)
        assert (feed.load().files, feed.ids) == (3, [1])


class TestSchema:
    def test_an_inferred_schema_is_pinned_by_the_first_run(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": None})
        feed.put("a.ndjson", {"id": 1, "at": 1.5, "who": {"name": "x"}, "all": [True]})
        feed.load()
        feed.put("b.ndjson", {"id": 2})
        feed.put("c.ndjson", {"who": {"name": "y"}, "id": 3, "at": 2, "all": []})
        feed.load()
        assert feed.rows("id", "at", "who", "all") == [
            (1, 1.5, {"name": "x"}, [True]),
            (2, None, None, None),
            (3, 2.0, {"name": "y"}, []),
        ]
        assert len({entry.pinned for entry in feed.entries}) == 1

    def test_files_wait_while_no_column_of_the_table_has_a_type(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": None}, target={"load": "append", "origin_columns": False})
        feed.put("a.ndjson", {"id": None, "who": {"name": None}})
        assert feed.run().status == "nothing"
        feed.put("b.ndjson", {"id": 2, "who": {"name": None}})
        feed.load()
        assert feed.rows("id") == [(None,), (2,)]

    @pytest.mark.each_case
    @pytest.mark.parametrize(("form", "levels"), [("ndjson", 31), ("json", 300)])
    def test_too_deep_records_load_as_text(self, make_feed: MakeFeed, form: str, levels: int) -> None:
        feed = make_feed(source={"format": form, "schema": None})
        inner = '{"a":' * (levels - 1) + "1" + "}" * (levels - 1)
        feed.put_text(f"a.{form}", f'{{"id": 1, "a": {inner}}}\n')
        error = feed.fail()
        assert f"at most 30 levels deep where types are inferred, found {levels}" in error.message
        feed.define(source={"format": form, "schema": "id int, a string"})
        feed.load()
        assert feed.rows("id", "a") == [(1, inner)]

    @pytest.mark.each_case
    @pytest.mark.parametrize(
        ("form", "first", "second"),
        [
            ("csv", "n,at,code\n1,2026-01-01,12\n", "n,at,code\n2.5,2026-01-02 10:00:00,0012\n"),
            (
                "xml",
                "<r><row><n>1</n><at>2026-01-01</at><code>12</code></row></r>",
                "<r><row><n>2.5</n><at>2026-01-02 10:00:00</at><code>0012</code></row></r>",
            ),
        ],
        ids=["csv", "xml"],
    )
    def test_inferred_types_hold_the_values_of_all_files_but_texts_of_later_ones(
        self, make_feed: MakeFeed, form: str, first: str, second: str
    ) -> None:
        options = {"rowTag": "row"} if form == "xml" else {}
        feed = make_feed(source={"format": form, "schema": None, "options": options})
        feed.put_text(f"a.{form}", first)
        feed.put_text(f"b.{form}", second)
        error = feed.fail()
        assert "0012" in error.message
        assert feed.types == {"n": "double", "at": "timestamp", "code": "integer"}
        feed.put_text(f"b.{form}", second.replace("0012", "13"))
        feed.load()
        assert feed.rows("n", "code") == [(1.0, 12), (2.5, 13)]

    def test_a_later_file_with_another_type_fails_naming_it(self, make_feed: MakeFeed) -> None:
        feed = make_feed(source={"schema": None})
        feed.put("a.ndjson", 1)
        feed.load()
        feed.put("b.ndjson", 4)
        feed.put_text("c.ndjson", '{"id": 2}\n{"id": "three"}\n')
        feed.put("d.ndjson", 1)
        assert "c.ndjson, line 2" in feed.fail().message
        assert (feed.path, feed.ids) == ("b.ndjson", [1, 4])

    @pytest.mark.parametrize(
        ("form", "rows", "line"),
        [
            ("ndjson", '{"id": 2}\n{"id": 3, "more": null}\n', ", line 2"),
            ("ndjson", '{"id": 2, "more": 1}\n', ", line 1"),
            ("json", '[{"id": 2}, {"id": 3, "more": [1]}]', ""),
            ("json", '{"id": 2, "more": "x"}', ""),
        ],
    )
    def test_a_field_that_the_pinned_schema_does_not_have_is_refused_and_named(
        self, make_feed: MakeFeed, form: str, rows: str, line: str
    ) -> None:
        feed = make_feed(source={"format": form, "schema": None})
        feed.put_text(f"a.{form}", '{"id": 1}\n')
        feed.load()
        feed.put_text(f"b x.{form}.gz", rows)  # a path that Spark writes as another
        outcome = feed.run()
        assert (outcome.status, feed.ids, feed.path) == ("failed", [1], f"a.{form}")
        assert f"file b x.{form}.gz{line}" in str(outcome.error)
        assert "found more beside them" in str(outcome.error)
        assert (len(feed.entries), feed.open_intent) == (1, None), "no number was taken"

    @pytest.mark.parametrize("unknown", ["check", "ignore"])
    def test_a_new_column_of_parquet_is_treated_alike(self, make_feed: MakeFeed, unknown: str) -> None:
        feed = make_feed(source={"format": "parquet", "schema": None}, unknown_fields=unknown)
        feed.put_parquet("a.parquet", {"ID": 1, "s": {"x": 1}})
        feed.load()
        feed.put_parquet("b.parquet", {"id": 2, "s": {"X": 1, "y": 2}})
        outcome = feed.run()
        assert outcome.status == ("failed" if unknown == "check" else "committed")
        assert (
            outcome.error is None
            or "b.parquet, expected the fields of the pinned schema, found s.y" in str(outcome.error)
        )

    @pytest.mark.full
    def test_a_slice_whose_run_died_is_looked_at_for_unknown_fields_too(self, make_feed: MakeFeed) -> None:
        feed = make_feed(unknown_fields="ignore")
        feed.put("a.ndjson", 1)
        feed.put("b.ndjson", {"id": 2, "more": "x"})
        crash(feed, Step.INTENT_PUT)
        feed.define(unknown_fields="check")
        outcome = feed.run()
        assert (outcome.status, feed.ids, feed.path) == ("failed", [1], "a.ndjson")
        assert (outcome.error and outcome.error.code, feed.open_intent) == ("unknown_field", None)

    @pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b[1].csv"])
    def test_a_value_over_lines_is_never_two_records(self, make_feed: MakeFeed, name: str) -> None:
        feed = make_feed(source={"format": "csv", "schema": "name string, note string"})
        feed.put_text("a.csv", 'name,note\nAnn,"a, ""b"","\n"",x"y"\n"Bo""b",5 feet 10"\n')
        feed.put_text(name, 'name,note\nCid,"hello\nDan,x"\nEve,y\n')
        error = feed.fail()
        assert f"file {name}, line 2: a quote opens a value and is not closed" in error.message
        first = [(None, 'x"y"'), ("Ann", 'a, "b",'), ('Bo"b', '5 feet 10"')]
        assert feed.rows("name", "note") == first
        feed.define(source={"options": {"multiLine": True}})
        feed.load()
        assert feed.rows("name", "note") == [*first, ("Cid", "hello\nDan,x"), ("Eve", "y")]

    def test_line_breaks_within_values_stay_as_they_are(self, make_feed: MakeFeed) -> None:
        options = {"multiLine": True}
        feed = make_feed(source={"format": "csv", "schema": "id long, note string", "options": options})
        note = '"a\r\nb\nc\rd"'
        for number, line_break in enumerate(["\r\n", "\n", "\r"], start=1):
            feed.put_text(
                f"{number}.csv", line_break.join(["id,note", f"{number},{note}", f"{number},z", ""])
            )
        feed.load()
        written = "a\r\nb\nc\rd"
        expected = [(number, text) for number in (1, 2, 3) for text in (written, "z")]
        assert feed.rows("id", "note") == expected
        feed.put_text("4.csv", "id,note\r\n4,x\n5,y\r\n6,z\r\n")
        error = feed.fail()
        assert "file 4.csv, line 2: expected CR LF at its end" in error.message
        assert feed.rows("id", "note") == expected

    @pytest.mark.parametrize("multi_line", [False, True])
    def test_another_encoding_is_refused_until_named(self, make_feed: MakeFeed, multi_line: bool) -> None:
        schema, options = "id long, `größe` string", {"multiLine": multi_line}
        feed = make_feed(source={"format": "csv", "schema": schema, "options": options})
        rows = ["id,größe\n1,weiß �\n", "id,größe\n2,breit\n3,weiß\n"]
        feed.put_text("a.csv", rows[0])
        (feed.landing / "b.csv").write_bytes(rows[1].encode("cp1252"))
        error = feed.fail()
        assert (
            "file b.csv, line 1: expected text in UTF-8, found other bytes. Name the encoding"
            in error.message
        )
        assert feed.rows("id", "größe") == [(1, "weiß �")]
        feed.define(source={"options": {**options, "encoding": "windows-1252"}})
        feed.load()
        assert feed.rows("id", "größe") == [(1, "weiß �"), (2, "breit"), (3, "weiß")]

    @pytest.mark.parametrize(
        "lines", [[b'{"id": 2, "name": "wei\xdf"}', b'{"id": "b"}'], [b"\x80"]], ids=["in a value", "alone"]
    )
    def test_bytes_without_text_make_json_bad(self, make_feed: MakeFeed, lines: list[bytes]) -> None:
        feed = make_feed(source={"format": "ndjson", "schema": "id long, name string"}, max_bad_records=9)
        feed.put_bytes("a.ndjson", b"\n".join([b'{"id": 1, "name": "a"}', *lines, b""]))
        error = feed.fail()
        assert (error.code, feed.rows("id")) == ("bad_encoding", [])
        assert "file a.ndjson, line 2: expected text in UTF-8, found other bytes" in error.message

    def test_an_encoding_unknown_to_java_makes_no_file_bad(self, make_feed: MakeFeed) -> None:
        options = {"encoding": "latin-1"}
        feed = make_feed(
            source={"format": "csv", "schema": "a string", "options": options}, on_bad_file="quarantine"
        )
        feed.put_text("a.csv", "a\nx\n")
        error = feed.fail()
        assert (error.code, feed.newest) == ("configuration", None)
        assert "expected an encoding that Java knows, such as ISO-8859-1" in error.message

    @pytest.mark.parametrize(
        ("form", "text"), [("csv", "id,name\n1,ß\n"), ("json", '{"id": 1, "name": "ß"}')]
    )
    def test_a_byte_order_mark_names_the_encoding(self, make_feed: MakeFeed, form: str, text: str) -> None:
        feed = make_feed(source={"format": form, "schema": "id long, name string"})
        feed.put_bytes(f"a.{form}", text.encode("utf-16"))
        error = feed.fail()
        assert "in `options` of the source, such as `{encoding: UTF-16}`" in error.message
        feed.define(source={"options": {"encoding": "UTF-16"}}).load()
        assert feed.rows("id", "name") == [(1, "ß")]

    @pytest.mark.parametrize("schema", [None, "name string"])
    def test_json_of_another_encoding_is_told_by_line(self, make_feed: MakeFeed, schema: str | None) -> None:
        feed = make_feed(source={"format": "ndjson", "schema": schema})
        feed.put_text("a.ndjson", '{"name": "a"}\n')
        (feed.landing / "b.ndjson").write_bytes('{"name": "x"}\n{"name": "weiß"}\n'.encode("cp1252"))
        error = feed.fail()
        assert "file b.ndjson, line 2: expected text in UTF-8, found other bytes" in error.message
        feed.define(source={"options": {"encoding": "windows-1252", "lineSep": "\n"}})
        feed.load()
        assert feed.rows("name") == [("a",), ("weiß",), ("x",)]

    @pytest.mark.parametrize(
        ("form", "options", "codec", "path", "mode"),
        [
            ("ndjson", {"encoding": "UTF-16LE", "lineSep": "\n"}, "utf-16", "k=1/a.json.gz", "strict"),
            ("ndjson", {"encoding": "windows-1252", "lineSep": "\n"}, "cp1252", "a{1}.json", "merge"),
            ("ndjson", {"encoding": "UTF-8"}, "utf-8", "a.json", "strict"),
            ("json", {"encoding": "UTF-16"}, "utf-16-be", "a.json", "strict"),
            ("json", {}, "utf-8", "a:1.json.bz2", "strict"),
            ("json", {"encoding": "windows-1252"}, "cp1252", "a.json.gz", "rescue"),
            ("json", {}, "utf-8-sig", "a.json", "rescue"),
            ("ndjson", {}, "utf-8", "a.json", "rescue"),
        ],
    )
    def test_a_json_number_in_a_text_column_keeps_its_letters(
        self,
        make_feed: MakeFeed,
        form: str,
        options: dict[str, Any],
        codec: str,
        path: str,
        mode: str,
    ) -> None:
        schema = "id long, t string, s struct<t: string, a: array<string>>"
        may_set_aside = {"max_bad_records": 1} if form == "ndjson" else {}
        feed = make_feed(
            source={"format": form, "schema": schema, "options": options},
            target={"schema_mode": mode},
            **may_set_aside,
        )
        lines = [
            f'{{"id": {n}, "t": {t}, "s": {{"t": {t}, "a": ["é"]}}}}' for n, t in ((1, "1.50"), (2, "7"))
        ]
        text = f"[{','.join(lines)}]" if form == "json" else "\n".join([*lines, "é\n"])
        data = text.encode(codec)
        packed = {"gz": gzip.compress(data), "bz2": bz2.compress(data)}
        feed.put_bytes(path, packed.get(path.rpartition(".")[2], data))
        feed.load()
        struct = {"t": "1.50", "a": ["é"]}
        assert feed.rows("id", "t", "s", "_source_file") == [
            (1, "1.50", None if mode == "rescue" else struct, path),
            (2, "7", {"t": "7", "a": ["é"]}, path),
        ]
        if mode == "rescue":
            assert feed.rows("_rescued_data")[1] == ('{"s":{"t":1.50,"a":["é"]}}',)

    def test_a_doubled_name_is_told_whatever_was_read_before(self, make_feed: MakeFeed) -> None:
        feed = make_feed(
            source={"schema": "id long, at timestamp, n long"},
            target={"load": "scd2", "merge_keys": ["id"], "effective_column": "at"},
            watermark={"checkpoint": {"interval_files": 1}},
        )
        feed.put_text("1.ndjson", '{"id": 1, "at": "2026-05-01"}\n')
        feed.load()
        feed.put_text("2.ndjson", '{"id": 1, "at": "2026-05-02"}\n')  # is asked for the names that it has
        feed.put_text("3.ndjson", '{"id": 2, "at": "2026-05-03", "n": 1, "n": 2}\n')
        error = feed.fail()
        assert "line 1: field n occurs twice" in error.message

    @pytest.mark.parametrize("form", ["ndjson", "parquet"])
    def test_names_of_columns_may_have_spaces_and_signs(self, make_feed: MakeFeed, form: str) -> None:
        rows: list[Row] = [{"the id": 1, "größe (m)": 2.5, "a.b": "x", "tick`s": 7}]
        feed = make_feed(source={"format": form, "schema": None})
        for name in ("a", "b"):
            feed.put(f"{name}.ndjson", *rows)
            feed.put_bytes(
                f"{name}.parquet", parquet_bytes(pa.Table.from_pylist([dict(row) for row in rows]))
            )
            feed.load()
        spark = feed.engine.session()
        found = (
            spark.read.format("delta").load(str(feed.table)).drop("_source_file", "_ingested_at", "_run_id")
        )
        assert [row.asDict() for row in found.collect()] == [dict(row) for row in rows] * 2


class TestWhole:
    @pytest.mark.parametrize(
        ("form", "of_text"),
        [
            ("csv", {"multiLine": True}),
            ("csv", {}),
            ("csv", {"encoding": "UTF-16"}),
            ("csv", {"encoding": "UTF-32"}),
            ("ndjson", {}),
            ("ndjson", {"encoding": "UTF-16LE", "lineSep": "\n"}),
            ("json", {}),
            ("json", {"encoding": "UTF-16"}),
        ],
    )
    def test_a_value_in_a_form_of_options_is_told_by_place_and_never_rounded(
        self, make_feed: MakeFeed, form: str, of_text: dict[str, Any]
    ) -> None:
        feed = make_feed(
            source={
                "format": form,
                "schema": "n decimal(12,2), day date, at timestamp",
                "options": {**({"sep": ";"} if form == "csv" else {}), "locale": "de-DE", "dateFormat": "dd.MM.yyyy", "timestampFormat": "dd.MM.yyyy HH:mm", **of_text},
            },
            on_bad_file="quarantine",
            max_bad_files=8,
        )  # fmt: skip
        good = ("1.234,56", "28.12.2024", "28.12.2024 10:05")
        bad = {
            "b": ("1,005", *good[1:]),
            "c": (good[0], "31.02.2024", good[2]),
            "d": (*good[:2], "28.12.2024 10:05:07"),
            "e": ("5 kg", *good[1:]),
            "f": (good[0], "28.12.0000", good[2]),
            "g": (good[0], "28.12.2024\t", good[2]),
            "h": ("1.5", *good[1:]),
            "i": ("1.234.5", *good[1:]),
        }
        for name, values in {"a": good, **bad}.items():
            records = [dict(zip(("n", "day", "at"), record, strict=True)) for record in (good, values)]
            text = {
                "csv": "n;day;at\n" + "".join(f"{';'.join(record.values())}\n" for record in records),
                "ndjson": "".join(f"{json.dumps(record)}\n" for record in records),
                "json": json.dumps(records),
            }[form]
            feed.put_bytes(f"{name}.{form}", text.encode(str(of_text.get("encoding", "utf-8"))))
        feed.load()
        assert feed.rows("n") == [(Decimal("1234.56"),)] * 2
        where = {"csv": "line 3", "ndjson": "line 2", "json": "record 2"}[form]
        for name, values in bad.items():
            why = feed.quarantined[f"{name}.{form}"]
            column = {"b": "n", "c": "day", "d": "at", "e": "n", "f": "day", "g": "day"}.get(name, "n")
            value = values[("n", "day", "at").index(column)]
            assert why.startswith(f"{where}: field {column}: expected ")
            assert why.endswith(f"{value!r}")


@pytest.mark.parametrize("form", ["csv", "ndjson"])
def test_thousands_of_columns_need_no_stack_of_thousands(make_feed: MakeFeed, form: str) -> None:
    names = [f"c{place}" for place in range(1_500)]
    feed = make_feed(
        source={"format": form, "schema": ", ".join(f"{name} boolean" for name in names)},
        on_bad_file="quarantine",
    )
    for file, last in (("a", "true"), ("b", "1")):
        values = ["true"] * 1_499 + [last]
        members = ",".join(f'"{name}":{value}' for name, value in zip(names, values, strict=True))
        text = f"{','.join(names)}\n{','.join(values)}\n" if form == "csv" else f"{{{members}}}\n"
        feed.put_text(f"{file}.{form}", text)
    assert feed.load().quarantined == 1
    assert feed.rows("c0", "c1499") == [(True, True)]
    assert "field c1499: expected boolean" in feed.quarantined[f"b.{form}"]


@pytest.mark.parametrize(
    ("form", "option", "expected"),
    [
        ("ndjson", {"encoding": "UTF-16", "lineSep": "\n"}, "UTF-16LE or UTF-16BE"),
        ("ndjson", {"encoding": "windows-1252"}, "lineSep"),
        ("csv", {"encoding": "windows-1525"}, "the name of an encoding"),
    ],
)
def test_an_encoding_with_which_no_end_of_a_line_is_found_is_refused(
    make_feed: MakeFeed, form: str, option: dict[str, Any], expected: str
) -> None:
    feed = make_feed(source={"format": form, "schema": "x string", "options": option})
    answer = feed.cli("validate")
    assert (answer.code, expected in answer.out) == (2, True)


def test_a_form_of_dates_that_leaves_a_part_out_is_refused(make_feed: MakeFeed) -> None:
    for name, form in (("dateFormat", "MM.yyyy"), ("timestampFormat", "HH:mm")):
        feed = make_feed(source={"format": "csv", "schema": "x date", "options": {name: form}})
        answer = feed.cli("validate")
        assert answer.code == 2
        assert "a format with year, month and day, such as dd.MM.yyyy" in answer.out


def test_a_first_file_whose_only_record_is_no_text_names_the_encoding(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": None})
    feed.put_bytes("a.ndjson", b'{"a":"\xe9"}\n')
    error = feed.fail()
    assert (error.code, "line 1" in error.message) == ("bad_encoding", True)


@pytest.mark.parametrize(
    ("form", "schema", "text", "code", "why"),
    [
        ("xml", "id long, o struct<a: long>", "<r><row><id>1</id><o><a>2</a></o></row><row><id>2</id><o>t</o></row></r>", "unknown_field", "o._VALUE"),
        ("ndjson", "id long, m map<int, string>", '{"id":1,"m":{"5":"a"}}', "configuration", "expected map<string, …>, since the names in ndjson are texts, found map<int, …>"),
        ("ndjson", "id long, d interval day to second", '{"id":1}', "configuration", "expected types that tables hold, found interval day to second for the column d"),
        ("ndjson", "id long, d array<time>", '{"id":1}', "configuration", "expected types that tables hold, found array<time(6)> for the column d"),
        ("csv", "id long, t varchar(3)", "id,t\n1,abcd\n", "configuration", "expected texts of any length (string)"),
    ],
)  # fmt: skip
def test_what_a_schema_has_no_place_for_is_refused_by_name(
    make_feed: MakeFeed, form: str, schema: str, text: str, code: str, why: str
) -> None:
    options = {"rowTag": "row"} if form == "xml" else {}
    feed = make_feed(source={"format": form, "schema": schema, "options": options})
    feed.put_text(f"a.{form}", text)
    error = feed.fail()
    assert (error.code, feed.rows("id")) == (code, [])
    assert why in error.message


def test_a_column_may_be_named_interval(make_feed: MakeFeed) -> None:
    feed = make_feed(source={"schema": "id long, interval long, o struct<interval: long>"})
    feed.put("a.ndjson", {"id": 1, "interval": 2, "o": {"interval": 3}})
    feed.load()
    assert feed.rows("id", "interval", "o") == [(1, 2, {"interval": 3})]


@pytest.mark.parametrize("form", ["csv", "ndjson", "json"])
def test_an_archive_named_as_text_is_told_and_no_encoding_offered(make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(source={"format": form, "schema": None})
    feed.put_bytes(f"a.{form}", b"PK\x03\x04\x14\x00\xff\xfeid\n1\n")
    error = feed.fail()
    assert error.code == "bad_encoding"
    assert error.message.startswith(f"file a.{form}, expected text, found a ZIP archive. Unpack it")
    assert "encoding" not in error.message
