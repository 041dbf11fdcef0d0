"""YAML as plain values with positions."""

from __future__ import annotations

import pytest
import yaml

from platform_assets.project import yaml_text
from platform_assets.project.yaml_text import TextPosition, Unreadable, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2017-01-02", "2017-01-02"),
        ("2017-01-02T10:00:00Z", "2017-01-02T10:00:00Z"),
        ("12:30:00", "12:30:00"),
        ("on", "on"),
        ("no", "no"),
        ("y", "y"),
        ("0777", "0777"),
        ("0x1f", "0x1f"),
        ("1_000", "1_000"),
        ("1e3", "1e3"),
        (".nan", ".nan"),
        ("'1'", "1"),
        ("!!str 1", "1"),
        ("true", True),
        ("False", False),
        ("12", 12),
        ("-3", -3),
        ("0", 0),
        ("1.5", 1.5),
        ("1.5e3", 1500.0),
        ("", None),
        ("~", None),
        ("null", None),
    ],
)
def test_only_true_false_null_and_plain_numbers_are_not_text(text: str, value: object) -> None:
    parsed = parse(f"key: {text}\n".encode()).value["key"]
    assert (parsed, type(parsed)) == (value, type(value))


def test_keys_are_always_text() -> None:
    assert list(parse(b"on: 1\nno: 2\n1: 3\n2017-01-02: 4\nnull: 5\n<<: {a: 1}\n").value) == [
        "on",
        "no",
        "1",
        "2017-01-02",
        "null",
        "<<",
    ]


def test_every_key_and_every_item_has_line_and_column() -> None:
    positions = parse(b"a: 1\nb:\n  c: [1,\n    x]\n  d: {e: 2}\n").positions
    assert positions == {
        ("a",): TextPosition(1, 1),
        ("b",): TextPosition(2, 1),
        ("b", "c"): TextPosition(3, 3),
        ("b", "c", 0): TextPosition(3, 7),
        ("b", "c", 1): TextPosition(4, 5),
        ("b", "d"): TextPosition(5, 3),
        ("b", "d", "e"): TextPosition(5, 7),
    }


def test_an_empty_file_a_comment_and_a_byte_order_mark_are_read() -> None:
    assert parse(b"").value == {}
    assert parse(b"# nothing\n").value == {}
    assert parse(b"\xef\xbb\xbfa: 1").value == {"a": 1}


def test_an_alias_is_the_value_of_its_anchor() -> None:
    assert parse(b"a: &x {k: 1}\nb: *x\n").value == {"a": {"k": 1}, "b": {"k": 1}}


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        (b"a:\n\tb: 1", 2, "a tab in front of the first word"),
        (b"a: 1\n b: 2", 2, "broken YAML: mapping values are not allowed in this context"),
        (b"a: 1\nb: 'x\nc: 2\n", 2, "broken YAML: unexpected end of stream"),
        (b"a: 1\nword\n", 2, "broken YAML: could not find expected ':'"),
        (b"a: [1\nb: 2", 2, "broken YAML: did not find expected ',' or ']'"),
        (b"a: *nope", 1, "broken YAML: undefined alias"),
        (b"a: &x [*x]", 1, "an anchor that contains itself"),
        (b"a: 1\n---\nb: 2", 2, "a second document (---)"),
        (b"a: 1\nb: !include c.yaml", 2, "the tag !include"),
        (b"a: !!timestamp 2017-01-02", 1, "the tag !!timestamp"),
        (b"a: !!int x", 1, "!!int x"),
        (b"- a\n", 1, "a list"),
        (b"text\n", 1, "text"),
        (b"? [a]\n: 1\n", 1, "a key that is a mapping or a list"),
        (b"a: 1\nb: \xff\n", 2, "the byte 0xff"),
        (b"a: 1\nb: \x01\n", 2, "a control character"),
    ],
)
def test_what_is_not_one_plain_mapping_is_refused_with_its_line(text: bytes, line: int, found: str) -> None:
    with pytest.raises(Unreadable) as refused:
        parse(text)
    assert (refused.value.line, refused.value.actual) == (line, found)


def test_a_repeated_key_is_noted_at_every_depth() -> None:
    assert parse(b"a: 1\nb: {c: 1, d: 2,\n c: 3}\na: 4\n").repeated == [(("b", "c"), 3), (("a",), 4)]


def test_yaml_without_libyaml_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(yaml.SafeLoader):
        yaml_implicit_resolvers = yaml_text._Loader.yaml_implicit_resolvers

    text = b"a: {b: [1, on, 2017-01-02]}\nc: ~\n"
    fast = parse(text)
    monkeypatch.setattr(yaml_text, "_Loader", Slow)
    assert parse(text) == fast
