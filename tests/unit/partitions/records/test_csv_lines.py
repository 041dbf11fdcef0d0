"""Records of CSV: what the pattern accepts is sound, and what is not is said by column and reason."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.records.csv_form import CsvForm
from partitions.records.csv_lines import CsvRule
from partitions.records.forms import TextOptions, text_form

_FIELDS = [("id", "long"), ("text", "string"), ("day", "date"), ("v", "double")]
_RULE = CsvRule(CsvForm(","), _FIELDS)
_INFERRED = CsvRule(CsvForm(","), _FIELDS, TextOptions(inferred=True))
_WHOLE = CsvRule(CsvForm(",", over_lines=True), _FIELDS)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x,,,", "field id: expected bigint, found other text"),
        ("1,2,3", "expected 4 values, found 3"),
        ("1,,2026-05,", "field day: expected date, found a part of a date"),
        ("1,,,7f", "field v: expected double, found other text"),
        ('1,"open,,', "a quote opens a value and is not closed in its line"),
    ],
)
def test_a_line_that_does_not_fit_is_told_by_column_and_reason(line: str, why: str) -> None:
    item = _RULE.judge(line)
    assert item is not None
    assert (item.fault.reason, re.search(_RULE.pattern(), line)) == (why, None)


def test_an_empty_text_in_quotes_is_no_null_beside_another_text_for_it() -> None:
    rule = CsvRule(CsvForm(","), _FIELDS, TextOptions(null="NULL"))
    item = rule.judge('"",,,')
    assert item is not None
    assert item.fault.reason == (
        "field id: expected bigint, found an empty text in quotes, which is not NULL if options.nullValue is set"
    )
    assert (re.search(rule.pattern(), '"",,,'), rule.judge('NULL,"",,"NULL"')) == (None, None)


def test_text_behind_a_quote_names_the_escape_that_would_read_it() -> None:
    item = _RULE.judge('1,"a \\"b\\" c",,')
    assert item is not None
    assert "options: {escape: " in item.fault.reason
    escaped = CsvRule(CsvForm(",", escape="\\"), _FIELDS)
    assert escaped.judge('1,"a \\"b\\" c",,') is None
    assert escaped.form.values('1,"a \\"b\\" c",,') == ["1", 'a "b" c', "", ""]


@pytest.mark.parametrize(
    "line", ["", "  ", ",,,", '"1","a, ""b""",2026-05-07,1.5', '+01,5" pipe,,1e3', "1,,2024-02-29,NaN"]
)
def test_a_line_that_the_columns_hold_exactly_has_no_fault(line: str) -> None:
    assert _RULE.judge(line) is None


def test_what_only_looks_like_a_number_is_none_where_types_are_inferred() -> None:
    for line, what in (
        ("0012,,,", "leading zero"),
        ("+49,,,", "other text"),
        ("1,,,3E5", "without a fraction"),
        ("1,,,00.5", "leading zero"),
    ):
        assert _RULE.judge(line) is None
        item = _INFERRED.judge(line)
        assert item is not None
        assert what in item.fault.reason or what == "other text"


def test_a_line_of_separators_alone_is_a_record_and_one_of_blanks_is_none() -> None:
    tabs = CsvRule(CsvForm("\t"), [("a", "long"), ("b", "long")])
    assert tabs.judge("\t") is None
    assert re.search(tabs.pattern(), "\t") is None, "Spark skips it, so it has to be seen"
    assert tabs.judge("\t\t") is not None
    assert tabs.form.is_skippable("  ")


def test_a_line_that_spark_skips_is_seen_if_it_is_a_record() -> None:
    for separator, line in ((",", "\x01"), (",", " \x1f"), ("\x01", "\x01")):
        columns = [("a", "string"), ("b", "string")][: 2 if separator in line else 1]
        rule = CsvRule(CsvForm(separator), columns)
        assert rule.judge(line) is None
        assert re.search(rule.pattern(), line) is None
        assert re.search(rule.pattern(), "  "), "a blank line is none"


def test_an_exponent_makes_a_number_only_behind_a_fraction_where_types_are_inferred() -> None:
    inferred, declared = (text_form("double", TextOptions(inferred=inferred)) for inferred in (True, False))
    assert inferred is not None
    assert declared is not None
    assert [re.fullmatch(inferred, text) is not None for text in ("3E5", "1e5", "1.5E3")] == [
        False,
        False,
        True,
    ]
    assert re.fullmatch(declared, "3E5")


_CELLS = st.one_of(
    st.text(alphabet='ab1,"\n\r \\é', max_size=5),
    st.integers().map(str),
    st.sampled_from(["0012", "1.5", "7f", "2026-05-07", "2026-02-30", "1e400", "NaN", "", "-0"]),
)


@given(st.lists(_CELLS, min_size=1, max_size=5).map(",".join), st.sampled_from([_RULE, _INFERRED]))
def test_the_pattern_accepts_no_line_that_the_judge_refuses(line: str, rule: CsvRule) -> None:
    (line,) = line.splitlines()[:1] or [""]
    if re.search(rule.pattern(), line):
        assert rule.judge(line) is None


@given(st.lists(st.lists(st.text(alphabet='ab,"\n \\é', max_size=4), min_size=2, max_size=2), max_size=4))
def test_what_a_writer_of_csv_writes_is_read_back_as_it_was(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([["a", "b"], *rows])
    rule = CsvRule(CsvForm(",", over_lines=True), [("a", "string"), ("b", "string")])
    assert re.search(rule.text_pattern(), text.getvalue())
    assert list(rule.judge_text(text.getvalue(), has_header=True)) == []


@given(st.lists(st.lists(_CELLS, min_size=4, max_size=4).map(",".join), max_size=4))
def test_the_pattern_of_a_whole_text_accepts_none_that_the_judge_refuses(lines: list[str]) -> None:
    text = "\n".join(["id,text,day,v", *lines])
    if re.search(_WHOLE.text_pattern(), text):
        assert list(_WHOLE.judge_text(text, has_header=True)) == []


def test_records_over_several_lines_are_told_by_the_line_in_which_they_begin() -> None:
    text = 'id,text,day,v\r\n1,"a\r\nb",,\r\nx,"c\nd",,\r\n'
    assert [item.line for item in _WHOLE.judge_text(text, has_header=True)] == [4]


@pytest.mark.parametrize(
    ("text", "line_break"),
    [("a,b\r\n1,2\n", "\r\n"), ('\n"a\r\nb",c\n1,2', "\n"), ("a,b\r1,2\r", "\r"), ("a,b", "")],
)
def test_the_line_break_of_a_file_is_that_behind_its_first_record(text: str, line_break: str) -> None:
    assert CsvForm(",", over_lines=True).first_break(text) == line_break


@pytest.mark.parametrize(
    ("line_break", "other", "names"), [("\r\n", "\n", ("CR LF", "LF")), ("\n", "\r\n", ("LF", "CR LF"))]
)
def test_another_last_line_break_is_refused(line_break: str, other: str, names: tuple[str, str]) -> None:
    rule = CsvRule(CsvForm(",", over_lines=True, line_break=line_break), [("a", "string"), ("b", "string")])
    sound = line_break.join(["a,b", f'1,"x{other}y"', "2,z", ""])
    assert re.search(rule.text_pattern(), sound)
    assert list(rule.judge_text(sound, has_header=True)) == []
    mixed = f"a,b{line_break}1,x{other}2,y{line_break}"
    assert not re.search(rule.text_pattern(), mixed)
    (item,) = rule.judge_text(mixed, has_header=True)
    assert (item.line, item.text) == (2, "1,x")
    assert (
        f"expected {names[0]} at its end, as after the first record, found {names[1]}:" in item.fault.reason
    )


def test_a_header_is_found_behind_blank_lines_and_comments() -> None:
    assert CsvForm(",", comment="#").first_record('\ufeff\n# made by x\nid,"a b"\n1,2\n') == (
        'id,"a b"',
        ["id", "a b"],
    )
    assert CsvForm(",").first_record("\n \n") is None


@pytest.mark.parametrize("text", ["n/a", "+oo", "-oo"])
def test_numbers_that_are_none_have_the_texts_that_options_name(text: str) -> None:
    options = {"nanValue": "n/a", "positiveInf": "+oo", "negativeInf": "-oo"}
    rule = CsvRule(CsvForm(","), [("v", "double")], TextOptions.of(options))
    assert re.search(rule.pattern(), text) is not None
    assert rule.judge(text) is None
    assert rule.judge(f"{text}1") is not None
