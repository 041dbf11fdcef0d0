"""JSON records: what the pattern accepts is sound, and what is not is said by field and reason."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.records.json_decoding import (
    MemberOrder,
    Spellings,
    find_case_conflict_in_records,
    first_record_names,
)
from partitions.records.json_lines import JsonRule
from partitions.records.json_pattern import begins_with_one_of

_WHO = {"type": "struct", "fields": [{"name": "age", "type": "long"}]}
_ALL = {"type": "array", "elementType": "long", "containsNull": True}
_NAMES = {"type": "array", "elementType": "string", "containsNull": True}


def _rule(takes_unknown: bool = False, **types: Any) -> JsonRule:
    fields = [{"name": name, "type": data_type} for name, data_type in types.items()]
    return JsonRule.of({"type": "struct", "fields": fields}, takes_unknown)


_RULE = _rule(id="long", who=_WHO, all=_ALL, amount="double", price="decimal(10,2)", day="date", at="timestamp", ok="boolean", text="string", blob="binary", names=_NAMES)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "why", "value"),
    [
        ('{"id": "x"}', "field id: expected bigint, found text", "x"),
        ('{"id": {"x": 1}}', "field id: expected bigint, found an object", None),
        ('{"id": true}', "field id: expected bigint, found true or false", None),
        ('{"id": 1.0}', "field id: expected bigint, found a number with a fraction or an exponent", "1.0"),
        ('{"id": 9223372036854775808}', "field id: expected bigint, found a number beyond its range", "9223372036854775808"),
        ('{"who": {"age": "x"}}', "field who.age: expected bigint, found text", "x"),
        ('{"all": [1, "x"]}', "field all: expected bigint, found text", "x"),
        ('{"all": {}}', "field all: expected array, found an object", None),
        ('{"all": {"x": 1}}', "field all: expected array, found an object", None),
        ('{"names": {"x": "y"}}', "field names: expected array, found an object", None),
        ('{"who": []}', "field who: expected struct, found an array", None),
        ('["x"]', "expected a JSON object, found an array", None),
        ('[{"id": 1}]', "expected a JSON object, found an array: if each file is one document, set format: json", None),
        ('{ ', "expected a JSON object, found text that is not JSON (a name in double quotes is missing at character 3): if each file is one document, set format: json", None),
        ('\ufeff[', "expected a JSON object, found text that is not JSON (a value is missing at character 3): if each file is one document, set format: json", None),
        ('{"id": x}', "expected a JSON object, found text that is not JSON (a value is missing at character 8)", None),
        ('{"id": 1} x', "expected one JSON object, found more behind its end (from character 11 on)", None),
        ('{"id": 1}{"id": 2}', "expected one JSON object, found more behind its end (from character 10 on)", None),
        ('{"id": 1, "id": 1}', "field id occurs twice", None),
        ('{"who": {"age": 1, "age": 2}}', "field who.age occurs twice", None),
        ('{"amount": 9007199254740993}', "field amount: expected double, found a whole number of more digits than a double holds exactly", "9007199254740993"),
        ('{"amount": 1e400}', "field amount: expected double, found a number beyond its range", "1e400"),
        ('{"amount": [1]}', "field amount: expected double, found an array", None),
        ('{"amount": {"x": 1}}', "field amount: expected double, found an object", None),
        ('{"price": 1.005}', "field price: expected decimal(10,2), found a number with more than 2 digits after the point", "1.005"),
        ('{"price": "123456789"}', "field price: expected decimal(10,2), found a number with more than 8 digits before the point", "123456789"),
        ('{"day": "2026-05-07T10:00"}', "field day: expected date, found more text after the date", "2026-05-07T10:00"),
        ('{"day": "2026-02-30"}', "field day: expected date, found a day that does not exist", "2026-02-30"),
        ('{"day": "2026-05"}', "field day: expected date, found a part of a date", "2026-05"),
        ('{"at": "09:15"}', "field at: expected timestamp, found a time of day without a date", "09:15"),
        ('{"at": "2026-05-07T10:00:00.1234567Z"}', "field at: expected timestamp, found a time with more than 6 digits of a second", "2026-05-07T10:00:00.1234567Z"),
        ('{"at": "0000-01-01T00:00:00Z"}', "field at: expected timestamp, found a time that does not exist", "0000-01-01T00:00:00Z"),
        ('{"ok": "true"}', "field ok: expected boolean, found text", "true"),
        (r'{"text": "x\ud83dy"}', "field text: expected string, found an unpaired surrogate escape, which is not text", r"x\ud83dy"),
        (r'{"text": "\ud83d\u0041"}', "field text: expected string, found an unpaired surrogate escape, which is not text", r"\ud83dA"),
        (r'{"text": "\uDE00\uD83D"}', "field text: expected string, found an unpaired surrogate escape, which is not text", r"\ude00\ud83d"),
        ('{"text": NaN}', "field text: expected string, found a word that is not a JSON number", "NaN"),
        ('{"text": {"a": [NaN]}}', "field text: expected string, found a word that is not a JSON number", None),
        ('{"blob": "a"}', "field blob: expected binary, found text that is not base64", "a"),
        ('{"\\ud83d": 1}', "field \\ud83d: expected a name in UTF-8, found an unpaired surrogate in it", None),
    ],
)  # fmt: skip
def test_an_unfit_record_tells_field_reason_and_value(text: str, why: str, value: str | None) -> None:
    fault = _RULE.judge(text).fault
    assert fault is not None
    assert (fault.reason, fault.value) == (why, value)
    assert re.search(_RULE.pattern.line(first_record_names('{"id": 1, "who": {"age": 1}}')), text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t",
        "{}",
        '\ufeff{"id": 1}',
        '{"id": -1, "amount": 0.1, "price": "1.500", "ok": null}',
        '{"amount": 12345678901234567890.5}',
        '{"amount": 9007199254740992}',
        '{"price": 1e1}',
        '{"day": "2024-02-29"}',
        '{"at": "2026-05-07 10:00:00.123456000 UTC"}',
        '{"at": 1767614340}',
        '{"text": {"any": [1.10, "x"], "any": 2}}',
        '{"more": {}, "id": 1}',
        '{"text": "\\ud83d\\ude00 \\u00e9 \\\\ud83d"}',
        '{"text": {"as it is written": "\\ud83d"}}',
        '{"blob": "aGk="}',
        '{"amount": "NaN"}',
        '{"amount": "-Infinity", "id": 1}',
    ],
)
def test_a_record_that_the_columns_hold_exactly_has_no_fault(text: str) -> None:
    assert _RULE.judge(text).fault is None


@pytest.mark.parametrize(
    ("text", "why", "value"),
    [
        ('{"any": {"a": "\\ude00"}}', "field any.a: expected variant, found an unpaired surrogate escape, which is not text", "\\ude00"),
        ('{"any": [1e400]}', "field any: expected variant, found a number beyond its range", "1e400"),
        ('{"any": 1234567890123456789012345678901234567890}', "field any: expected variant, found a whole number of more digits than a double holds exactly", "1234567890123456789012345678901234567890"),
        ('{"any": {"a": 1, "a": 1}}', "field any.a occurs twice", None),
        ('{"any": {"a": [0.1, -12345678901234567890123456789012345678, 1e30, null]}}', None, None),
    ],
)  # fmt: skip
def test_a_variant_takes_no_name_twice_unchanged(text: str, why: str | None, value: str | None) -> None:
    rule = _rule(any="variant")
    fault = rule.judge(text).fault
    assert (fault and fault.reason, fault and fault.value) == (why, value)
    is_accepted = re.search(rule.pattern.line(), text) is not None
    assert is_accepted == (fault is None or "twice" in fault.reason)


@pytest.mark.parametrize("first", ['{"id": 1}', '{"id": 1, "who": null}', '{"who": {"age": 1, "age": 2}}'])
def test_a_doubled_name_is_seen_in_any_order_of_names(first: str) -> None:
    pattern = _RULE.pattern.line(first_record_names(first) or MemberOrder((), {}))
    assert re.search(pattern, '{"who": {"age": 1}}')
    assert re.search(pattern, '{"who": {"age": 1, "age": 2}}') is None


def test_fields_that_the_schema_lacks_are_told_at_any_depth_unless_they_hold_nothing() -> None:
    record = '{"id": 1, "more": 2, "who": {"name": "x"}, "none": {}, "null": null}'
    assert _RULE.judge(record).unknown == ("more", "who.name", "null")
    assert _rule(takes_unknown=True, id="long").judge(record).unknown == ()


def test_names_of_fields_without_a_type_that_no_column_has_are_told() -> None:
    rule = _rule(id="long", l="void")
    empty = "expected a name, found an empty one: give the field a name, or leave new fields out with `unknown_fields: ignore` instead of `schema_mode: merge`"
    for text in ('"": 1', '"new": {"": 1}', '"l": {"": [1]}'):
        fault = rule.judge(f'{{"id": 1, {text}}}').fault
        assert fault is not None
        assert fault.reason.endswith(f"'': {empty}")
    assert rule.judge('{"id": 1, "": null}').fault is None
    for text, name in (
        ('"new": 1, "new": 2', "new"),
        ('"new": {"a": 1, "a": 2}', "new.a"),
        ('"new": [{"b": {"a": 1, "a": 1}}]', "new.b.a"),
        ('"l": [{"a": 1, "a": 2}]', "l.a"),
    ):
        fault = rule.judge(f'{{"id": 1, {text}}}').fault
        assert fault is not None
        assert fault.reason == f"field {name} occurs twice"


def test_a_list_of_nothing_but_null_has_no_type_that_keeps_it() -> None:
    rule = _rule(id="long", l="void")
    for text in ("[null]", "[[], [null]]", '{"a": [null]}'):
        for name in ("l", "new"):
            fault = rule.judge(f'{{"id": 1, "{name}": {text}}}').fault
            assert fault is not None
            assert "expected a list with typed values, found one with nothing but null" in fault.reason
    assert rule.judge('{"id": 1, "new": [null, 1], "l": [null, 1]}').unknown == ("new", "l")
    for text in ("[]", "{}", "null", "[{}]"):
        assert rule.judge(f'{{"id": 1, "l": {text}}}') == rule.judge('{"id": 1}')


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"more": {"id": 1}, "x": 2}', "expected fields of the schema (id), found only more, x"),
        ('{"id": null, "more": 1}', None),
        ('{"\\u0069d": 1, "more": 1}', None),
        ("{}", None),
    ],
)  # fmt: skip
def test_a_record_of_which_nothing_is_known_is_bad_where_unknown_fields_are_left_out(
    record: str, reason: str | None
) -> None:
    fault = _rule(takes_unknown=True, id="long").judge(record).fault
    assert (fault and fault.reason) == reason
    assert _rule(id="long").judge(record).fault is None


_NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
    st.sampled_from(
        ["-0", "00", "1e5", "1E400", "1.", ".5", "+1", "0x1", "1e-400", "NaN", "9" * 40, "0." + "1" * 400]
    ),
)
_TEXTS = st.one_of(
    st.text(max_size=8),
    st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat() + "Z"),
    st.sampled_from(
        [
            "2026-02-29",
            "2026-13-01",
            "2026-05-07T24:00:00",
            "2026-05-07T10",
            "T1",
            "1.005",
            "+1.5",
            "10000-01-01",
        ]
    ),
)
_VALUES = st.one_of(_NUMBERS.map(str), _TEXTS.map(json.dumps), st.sampled_from(["true", "false", "null", "[]", "[1]", "{}", '{"age":1}', '{"age":1,"age":2}']))  # fmt: skip
_MEMBERS = st.lists(st.tuples(st.sampled_from([*(field["name"] for field in _RULE.pattern.schema["fields"]), "more"]), _VALUES), max_size=5)  # type: ignore[index] # fmt: skip
_LINES = st.builds(
    lambda members, end: "{" + ", ".join(f'"{name}": {value}' for name, value in members) + "}" + end,
    _MEMBERS,
    st.sampled_from(["", "", "", " ", ",", "x", "{}", "]"]),
)
_ORDERS = st.sampled_from(
    [first_record_names('{"id": 1, "amount": 1, "who": {"age": 1}}'), MemberOrder((), {})]
)


@given(_LINES, _ORDERS)
def test_the_pattern_accepts_no_record_that_the_judge_refuses(line: str, names: MemberOrder) -> None:
    if re.search(_RULE.pattern.line(names), line):
        judgement = _RULE.judge(line)
        assert (judgement.fault, judgement.unknown) == (None, ())


@given(_LINES, _ORDERS)
def test_what_the_plain_pattern_accepts_the_whole_one_accepts(line: str, names: MemberOrder) -> None:
    plain = _RULE.pattern.plain_line(names)
    assert plain is not None
    if re.search(plain, line):
        assert re.search(_RULE.pattern.line(names), line)


@pytest.mark.parametrize(
    ("line", "is_plain"),
    [
        ('{"id": 1, "who": {"age": 2}, "at": "2024-01-28T00:00:00Z", "text": "a\\nb"}', True),
        ('{"id":1,"amount":0.5,"day":"2024-02-28"}', True),
        ('{"id": null, "at": "2024-01-31T00:00:00.123+01:00"}', True),
        ('{"text": "no first name"}', False),
        ('{"id": 1, "text": 2}', False),
        ('{"id":  1}', False),
        ('{"id": 1, }', False),
        ('{"id": 1, "id": 1}', False),
        ('{"id": 1} x', False),
        ('{"id": 1, "at": "2024-02-30T00:00:00Z"}', False),
    ],
)
def test_most_lines_of_programs_are_plain(line: str, is_plain: bool) -> None:
    names = first_record_names('{"id": 1, "who": {"age": 1}, "amount": 1, "day": "", "at": "", "text": ""}')
    assert names is not None
    plain = _RULE.pattern.plain_line(names)
    assert plain is not None
    assert bool(re.search(plain, line)) is is_plain


def test_no_line_is_plain_where_a_name_may_stand_twice_or_is_unknown() -> None:
    names = first_record_names('{"id": 1, "more": 1}')
    assert names is not None
    assert _rule(id="long").pattern.plain_line(names) is None
    assert _rule(id="variant").pattern.plain_line(MemberOrder(("id",), {})) is None


@given(_LINES)
def test_in_any_order_the_pattern_leaves_only_names_that_stand_twice_to_be_seen(line: str) -> None:
    if re.search(_RULE.pattern.line(), line):
        fault = _RULE.judge(line).fault
        assert fault is None or "occurs twice" in fault.reason


@given(st.lists(_LINES, max_size=3))
def test_a_document_is_accepted_only_if_all_its_records_are(lines: list[str]) -> None:
    document = f"[{', '.join(lines)}]"
    if re.search(_RULE.pattern.document(first_record_names('{"id": 1}')), document):
        assert _RULE.judge_document(document) == (None, [])


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ('{"id":1}\n{"id":2}\n', "expected one JSON document, found more behind its end in line 2: for one object per line set format: ndjson"),
        ('{"id":\n1}\n{"id":\n2}', "expected one JSON document, found more behind its end in line 3: write one object per line and set format: ndjson"),
        ('[{"id":1}]\n[{"id":2}]', "expected one JSON document, found more behind its end in line 2"),
        ('[{"id":1},]', "expected a JSON document, found text that is not JSON (a value is missing at line 1, column 11)"),
        ('[{"id":1}', "expected a JSON document, found text that is not JSON (a comma or a closing bracket is missing at line 1, column 10)"),
        ("", None),
        (" [ ] \n", None),
        (' [ {"id":1} , {"id":2} ] \n\n', None),
    ],
)  # fmt: skip
def test_a_document_is_whole_or_refused(document: str, why: str | None) -> None:
    fault, items = _RULE.judge_document(document)
    assert (fault.reason if fault else None, items) == (why, [])


def test_records_of_a_document_are_told_by_their_number_and_line() -> None:
    _, items = _RULE.judge_document('[{"id":1},\n null, {"id":"x"}]')
    assert [(item.number, item.line) for item in items] == [(2, 2), (3, 2)]


def test_names_that_differ_in_case_only_are_found_at_any_depth() -> None:
    assert find_case_conflict_in_records('{"id":1}\n{"a":[{"x":1,"X":2}]}') == ("x", "X", 2)
    assert find_case_conflict_in_records('[{"id":1},{"ID":2}]') == ("id", "ID", 1)
    assert find_case_conflict_in_records('{"a":{"b":[{"x":1},\n{"X":2}]}}') == ("x", "X", 1)
    assert find_case_conflict_in_records('{"a":{"x":1}}\n{"a":{"X":2}}') == ("x", "X", 2)
    assert find_case_conflict_in_records('{"id":1,"id":2}') is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"id": 1, "ID": 2}', "id and ID"),
        ('{"id": 1, "new": 1, "New": 2}', "new and New"),
        ('{"id": 1, "new": {"x": 1, "X": null}}', "new.x and new.X"),
        ('{"id": 1, "new": [{"x": 1}, {"a": {"x": 1, "X": 2}}]}', "new.a.x and new.a.X"),
    ],
)
def test_a_field_in_another_case_makes_its_record_bad(text: str, names: str) -> None:
    fault = _RULE.judge(text).fault
    assert fault is not None
    assert f"more than upper and lower case, found {names}" in fault.reason
    assert "unknown_fields: ignore" in fault.hint
    assert JsonRule.of(_RULE.pattern.schema, True).judge(text).fault is None


def test_a_new_field_that_is_too_deep_for_a_type_makes_its_record_bad() -> None:
    sound, deep = ('{"id": 1, "new": ' + "[" * levels + "1" + "]" * levels + "}" for levels in (29, 30))
    assert _RULE.judge(sound).unknown == ("new",)
    fault = _RULE.judge(deep).fault
    assert fault is not None
    assert fault.reason.startswith(
        "field new: expected objects and arrays at most 30 levels deep where types are inferred"
    )
    assert _rule(id="long", new="string").judge(deep).fault is None


def test_records_of_which_one_schema_is_inferred_spell_each_name_alike() -> None:
    spellings = Spellings()
    taken = {
        '{"a": 1, "o": {"x": 1}}': True,
        '{"b": 1, "A": 1}': False,
        '{"B": 1}': True,
        '{"o": {"X": 1}}': False,
        '{"o": [{"y": 1}, {"Y": 1}]}': False,
        '{"a": 1, "a": 2}': False,
        "[" * 31 + "]" * 31: False,
        "no JSON": True,
    }
    assert {text: spellings.add_record(text) for text in taken} == taken


def test_a_deep_record_is_a_fault_and_no_crash() -> None:
    assert _RULE.judge('{"text":' + "[" * 100_000).fault is not None


@pytest.mark.parametrize("data_type", ["long", "integer", "timestamp", "double", "float", "decimal(38,10)"])
def test_a_whole_number_of_thousands_of_digits_is_beyond_the_range_of_its_type(data_type: str) -> None:
    fault = _rule(n=data_type).judge(f'{{"n": {"9" * 5000}}}').fault
    assert fault is not None
    assert re.search("beyond|more than", fault.reason)


@pytest.mark.parametrize("levels", [600, 100_000])
def test_a_record_that_is_nested_too_deeply_is_told_by_its_number(levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    rule = _rule(a="string")
    why = "expected a JSON object, found one that is nested too deeply"
    fault = rule.judge(deep).fault
    assert fault is not None
    assert fault.reason == why
    fault, items = rule.judge_document(f'[{{"a": "x"}}, {deep}]')
    told = [f"record {item.number}: {item.verdict.fault.reason}" for item in items if item.verdict.fault]
    assert [*told, *([fault.reason] if fault else [])] == [f"record 2: {why}"]


def _steps(text: str) -> int:
    """How many functions are called to judge a document."""
    calls = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        _RULE.judge_document(text)
    finally:
        sys.setprofile(None)
    return calls


def _many(count: int) -> dict[str, Any]:
    """Documents of so many parts, by their shape."""
    numbers = range(count)
    return {
        "records": [{"id": number, "who": {"age": number, "x": 1}} for number in numbers],
        "items of one record": {"all": list(numbers), "more": [{"x": number} for number in numbers]},
        "names of one record": {f"f{number}": number for number in numbers},
        "text": {"text": '\\"' * count},
        "objects in each other": json.loads('{"x":' * 40 + "1" + "}" * 40),
    }


@pytest.mark.parametrize("shape", _many(1))
def test_the_look_for_unknown_fields_is_linear_in_the_bytes_whatever_the_shape(shape: str) -> None:
    few, many = (json.dumps(_many(count)[shape]) for count in (300, 3000))
    assert _steps(many) <= 1.1 * len(many) / len(few) * _steps(few) + 100


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ('{"id": 1}', True),
        ('\ufeff { "a.b" : 1}', True),
        ('{"a+b": 1}', False),
        ('{"more": 1, "id": 1}', False),
        ('{"more": {"id": 1}}', False),
        ('{"idx": 1}', False),
        ('[{"id": 1}]', False),
    ],
)
def test_a_record_that_begins_with_a_known_field_is_told_by_a_pattern(text: str, begins: bool) -> None:
    assert bool(re.search(begins_with_one_of(["id", "a.b"]), text)) is begins
