from __future__ import annotations

import pytest

from partitions.errors import ConfigurationError
from partitions.placeholders import Placeholder, PlaceholderError, Template
from partitions.sources import JdbcSource
from partitions.sql_text import MARIADB, POSTGRESQL, LexicalRules, non_code_spans, strip_end


def _code(text: str, reading: LexicalRules) -> str:
    """The text with all that is no code blotted out."""
    found = list(text)
    for span in non_code_spans(text, reading):
        found[span.start : span.end] = "." * (span.end - span.start)
    return "".join(found)


@pytest.mark.parametrize(
    ("text", "postgresql", "mariadb"),
    [
        ("a 'b' c", "a ... c", "a ... c"),
        ("a 'b''c' d", "a ...... d", "a ...... d"),
        ("'' x", ".. x", ".. x"),
        (r"a '\' b", "a ... b", "a ....."),
        (r"a E'\'' b", "a E.... b", "a E.... b"),
        (r"me'\' b", "me... b", "me....."),
        ('a "b" c', "a ... c", "a ... c"),
        ("a `b` c", "a ... c", "a ... c"),
        ("a -- b\nc", "a ....\nc", "a ....\nc"),
        ("a--b\nc", "a...\nc", "a--b\nc"),
        ("a # b\nc", "a # b\nc", "a ...\nc"),
        ("a #> b", "a #> b", "a ...."),
        ("a /* b */ c", "a ....... c", "a ....... c"),
        ("/* /* */ b */ c", "............. c", "........ b */ c"),
        ("/* /* */ b */", ".............", "........ b */"),
        ("a $$b'c$$ d", "a ....... d", "a $$b......"),
        ("a $x$ $$ $x$ d", "a .......... d", "a $x$ $$ $x$ d"),
        ("a$1 and $2", "a$1 and $2", "a$1 and $2"),
        ("a 'b", "a ..", "a .."),
        ("a /* b", "a ....", "a ...."),
    ],
)
def test_what_is_code_is_read_as_the_database_reads_it(text: str, postgresql: str, mariadb: str) -> None:
    assert _code(text, POSTGRESQL) == postgresql
    assert _code(text, MARIADB) == mariadb


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1", "select 1"),
        ("select 1 ; ;\n", "select 1"),
        ("select 1; -- done;", "select 1"),
        ("select 1 -- a; b\n; /* c */ ;", "select 1"),
        ("select ';'", "select ';'"),
        ("select '--;' ;", "select '--;'"),
        ("-- only; this", ""),
        (" ; ", ""),
    ],
)
def test_what_follows_a_statement_is_removed(text: str, expected: str) -> None:
    assert strip_end(text, POSTGRESQL) == expected


def test_a_template_is_its_text_and_its_placeholders_in_order() -> None:
    text = "a {start} b {end:%Y-%m-%d}{unit.survey id} {{start}} '{1,2}' '{\"a\": 1}' {}"
    template = Template.parse(text)
    assert template.placeholders == (
        Placeholder("start", None, 2),
        Placeholder("end", "%Y-%m-%d", 12),
        Placeholder("unit.survey id", None, 26),
    )
    assert template.names == {"start", "end", "unit.survey id"}
    assert template.filled(lambda each: f"<{each.name}>") == (
        "a <start> b <end><unit.survey id> {start} '{1,2}' '{\"a\": 1}' {}"
    )
    assert [each.unit for each in template.placeholders] == [None, None, "survey id"]


@pytest.mark.parametrize(
    ("text", "nearest"),
    [
        ("{strat}", "{start}"),
        ("{End}", "{end}"),
        ("{units}", "{unit.NAME}"),
        ("{what}", None),
        ("{start.x}", "{start}"),
    ],
)
def test_an_unknown_placeholder_is_refused_with_the_nearest(text: str, nearest: str | None) -> None:
    with pytest.raises(PlaceholderError, match=r"expected \{start\}, \{end\} or \{unit\.NAME\}") as refused:
        Template.parse(f"select {text}")
    assert refused.value.nearest == nearest


@pytest.mark.parametrize(
    "query",
    [
        "select '{unit.a}'",
        "select 1 -- {unit.a}",
        "select 1 /* {start} */",
        'select "{unit.a}"',
        "select `{unit.a}`",
        "select 'x\n{unit.a}'",
    ],
)
def test_a_placeholder_in_quotes_or_in_a_comment_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="expected placeholders outside of quotes and comments"):
        JdbcSource(type="jdbc", connection="erp", query=query)


@pytest.mark.parametrize(
    ("query", "reading"),
    [
        (r"select '\', {unit.a}", MARIADB),
        ("select 1 # {unit.a}", MARIADB),
        ("select $$ {unit.a} $$", POSTGRESQL),
        ("select 5--{unit.a}", POSTGRESQL),
    ],
)
def test_quotes_of_one_database_are_refused_by_its_reader(query: str, reading: LexicalRules) -> None:
    source = JdbcSource(type="jdbc", connection="erp", query=query)
    source.check(MARIADB if reading is POSTGRESQL else POSTGRESQL)
    with pytest.raises(ConfigurationError, match=r"source\.query: expected placeholders outside of quotes"):
        source.check(reading)


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ("orders", ("orders",)),
        ("public.orders", ("public", "orders")),
        ('"a.b".t', ("a.b", "t")),
        ('"x""y"." z"', ('x"y', " z")),
        ("a b.c-d", ("a b", "c-d")),
        ("db.s.t", ("db", "s", "t")),
    ],
)
def test_a_tables_name_is_split_at_its_dots(table: str, parts: tuple[str, ...]) -> None:
    assert JdbcSource(type="jdbc", connection="erp", table=table).table_parts == parts


@pytest.mark.parametrize(
    "table", ["", "a.", ".a", "a..b", '"a', 'a"b"', '"a"b', " a", "a.b.c.d", "a\x00b", '""']
)
def test_what_is_no_name_of_a_table_is_refused(table: str) -> None:
    with pytest.raises(ValueError, match="expected table or schema"):
        JdbcSource(type="jdbc", connection="erp", table=table)
