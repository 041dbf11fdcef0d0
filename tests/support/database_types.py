"""Every type of the databases with its extreme and odd values, and the values that are refused.

The tables of docs/reference/databases.md are made from it: a test compares them, and others load each
value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

NAN, INFINITE = float("nan"), float("inf")


@dataclass(frozen=True)
class TypeCase:
    """A type of a database.

    Attributes:
        declared: the type in CREATE TABLE.
        loaded: the type of the table's column, in Spark's words.
        values: values as SQL, and as the table has them.
        refused: values as SQL, and the text by which the error names them.
        words: the remarks for docs.
    """

    declared: str
    loaded: str
    values: Sequence[tuple[str, Any]]
    refused: Sequence[tuple[str, str]] = ()
    words: str = ""

    @property
    def line(self) -> str:
        """Return the line of docs."""
        return f"| `{self.declared}` | `{self.loaded}` | {self.words} |"


def local(text: str) -> datetime:
    """Return a time without a zone."""
    return datetime.fromisoformat(text)


def instant(text: str) -> datetime:
    """Return a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def same(*texts: str) -> tuple[tuple[str, str], ...]:
    """Return texts that load unchanged."""
    return tuple((f"'{text}'", text) for text in texts)


def numbers(*values: int | str) -> tuple[tuple[str, Any], ...]:
    """Return whole numbers and decimals."""
    return tuple((str(value), Decimal(value) if isinstance(value, str) else value) for value in values)


_YEARS = "refused: years before 1 and after 9999, `infinity`"
_NINES = "9" * 20
_MICRO = (
    "0001-01-01 00:00:00",
    "1582-10-04 23:59:59.999999",
    "2026-03-29 02:30:00.000001",
    "9999-12-31 23:59:59.999999",
)

POSTGRESQL: Sequence[TypeCase] = (
    TypeCase("smallint", "smallint", numbers(-(2**15), 0, 2**15 - 1)),
    TypeCase("integer", "int", numbers(-(2**31), 0, 2**31 - 1)),
    TypeCase("bigint", "bigint", numbers(-(2**63), 0, 2**63 - 1)),
    TypeCase("oid", "decimal(20,0)", (("0", Decimal(0)), ("4294967295", Decimal(4294967295)))),
    TypeCase("real", "float", (("'3.4028235e38'", 3.4028234663852886e38), ("'1e-45'", 1.401298464324817e-45), ("16777217", 16777216.0), ("'NaN'", NAN), ("'-Infinity'", -INFINITE)), words="NaN and infinity, too"),
    TypeCase("double precision", "double", (("0.1", 0.1), ("0.30000000000000004", 0.30000000000000004), ("'1.7976931348623157e308'", 1.7976931348623157e308), ("'5e-324'", 5e-324), ("'NaN'", NAN), ("'Infinity'", INFINITE)), words="NaN and infinity, too"),
    TypeCase("numeric(10,2)", "decimal(10,2)", numbers("-99999999.99", "0.00", "1.50", "99999999.99"), refused=(("'NaN'", "NaN"),), words="refused: NaN"),
    TypeCase("numeric(38,10)", "decimal(38,10)", numbers("1234567890123456789012345678.0123456789", "-0.0000000001")),
    TypeCase("numeric(50,10)", "decimal(38,10)", numbers("1.5000000000", f"{'9' * 28}.9999999999"), refused=((f"1{'0' * 28}.5", f"1{'0' * 28}.5"), ("'NaN'", "NaN")), words="more than 38 digits: the scale stays. Refused: numbers that need more"),
    TypeCase("numeric(5,-2)", "decimal(7,0)", (("12345", Decimal(12300)), ("-9999900", Decimal(-9999900))), words="PostgreSQL itself rounds it to hundreds"),
    TypeCase("numeric(3,5)", "decimal(5,5)", numbers("0.00999", "-0.00001")),
    TypeCase("numeric(10,50)", "decimal(38,38)", (("0", Decimal("0E-38")),), refused=((f"0.{'0' * 40}9", f"0.{'0' * 40}9"),), words="refused: more than 38 digits after the point"),
    TypeCase("numeric", "decimal(38,18)", (("1.5", Decimal("1.500000000000000000")), (f"-{_NINES}.{'9' * 18}", Decimal(f"-{_NINES}.{'9' * 18}")), (f"0.5{'0' * 30}", Decimal("0.500000000000000000")), ("0", Decimal("0E-18"))), refused=(("1e30", f"1{'0' * 30}"), ("0.1234567890123456789", "0.1234567890123456789"), ("'NaN'", "NaN"), ("'Infinity'", "Infinity"), ("'-Infinity'", "-Infinity")), words="20 digits before and 18 behind the point. Refused: numbers that need more, NaN, infinity"),
    TypeCase("money", "string", (("'-92233720368547758.08'::money", "-$92,233,720,368,547,758.08"), ("0::money", "$0.00")), words="as the server's `lc_monetary` writes it; `CAST(c AS numeric(20,2))` in a query is a number"),
    TypeCase("boolean", "boolean", (("true", True), ("false", False))),
    TypeCase("text", "string", same("", "a ", "ä\U0001f600", "NULL", "\\N", "a\nb")),
    TypeCase("varchar(9)", "string", same("", "a ", "ä")),
    TypeCase("char(5)", "string", (("'a'", "a    "), ("''", "     ")), words="with its blanks"),
    TypeCase("name", "string", same("", "a")),
    TypeCase('"char"', "string", same("", "a")),
    TypeCase("bytea", "binary", ((r"'\x'", b""), (r"'\x00ff27'", b"\x00\xff'"))),
    TypeCase("date", "date", (("'0001-01-01'", date(1, 1, 1)), ("'1582-10-10'", date(1582, 10, 10)), ("'9999-12-31'", date(9999, 12, 31))), refused=(("'infinity'", "infinity"), ("'-infinity'", "-infinity"), ("'0044-03-15 BC'", "0044-03-15 BC"), ("'10000-01-01'", "10000-01-01")), words=_YEARS),
    TypeCase("timestamp", "timestamp_ntz", tuple((f"'{text}'", local(text)) for text in _MICRO), refused=(("'infinity'", "infinity"), ("'0044-03-15 12:00 BC'", "0044-03-15 12:00:00 BC"), ("'10000-01-01'", "10000-01-01 00:00:00")), words=_YEARS),
    TypeCase("timestamptz", "timestamp", tuple((f"'{text}+00'", instant(text)) for text in _MICRO), refused=(("'infinity'", "infinity"), ("'-infinity'", "-infinity"), ("'0044-03-15 12:00+00 BC'", "0044-03-15 12:00:00+00 BC"), ("'10000-01-01+00'", "10000-01-01 00:00:00+00"), ("'294276-12-31+00'", "294276-12-31 00:00:00+00")), words=_YEARS),
    TypeCase("time", "string", (("'00:00'", "00:00:00"), ("'09:15:00.5'", "09:15:00.500000"), ("'23:59:59.999999'", "23:59:59.999999"), ("'24:00'", "24:00:00")), words="`HH:MM:SS`, with six digits after the point if it has a fraction"),
    TypeCase("timetz", "string", (("'09:15+02'", "09:15:00+02"), ("'24:00-15:59:59'", "24:00:00-15:59:59"))),
    TypeCase("interval", "string", (("'1 year 2 mons -3 days 04:05:06.7'", "1 year 2 mons -3 days +04:05:06.7"), ("'178000000 years'", "178000000 years"))),
    TypeCase("uuid", "string", same("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")),
    TypeCase("json", "string", same('{"a": 1.10, "a": null}', "null", '"\\u0041"')),
    TypeCase("jsonb", "string", (("""'{"b":1.10,"a":[]}'""", '{"a": [], "b": 1.10}'), ("'null'", "null"))),
    TypeCase("xml", "string", ()),  # a server without libxml knows the type and no value
    TypeCase("bit", "boolean", (("B'1'", True), ("B'0'", False)), words="one bit"),
    TypeCase("bit(8)", "string", (("B'11111111'", "11111111"), ("B'00000001'", "00000001"))),
    TypeCase("bit varying(9)", "string", (("B''", ""), ("B'101'", "101"))),
    TypeCase("inet", "string", same("192.168.0.1/24", "::1")),
    TypeCase("cidr", "string", same("10.0.0.0/8")),
    TypeCase("macaddr", "string", same("08:00:2b:01:02:03")),
    TypeCase("point", "string", same("(1.5,-2)")),
    TypeCase("int4range", "string", (("'[1,5]'", "[1,6)"), ("'empty'", "empty"))),
    TypeCase("tstzrange", "string", (("'[2026-01-01 00:00+01,)'", '["2025-12-31 23:00:00+00",)'),)),
    TypeCase("int8multirange", "string", same("{[1,3),[5,9)}")),
    TypeCase("tsvector", "string", (("'b a'", "'a' 'b'"),)),
    TypeCase("pg_lsn", "string", same("16/B374D848")),
    TypeCase("mood", "string", same("sad", "ok"), words="an enum"),
    TypeCase("pair", "string", (("ROW(1, 'a b')", '(1,"a b")'),), words="a composite type; `to_json(c)` in a query is JSON"),
    TypeCase("positive", "decimal(8,3)", numbers("0.001", "99999.999"), words="a domain: as the type that it is made of"),
    TypeCase("int[]", "array<int>", (("'{}'", []), ("'{1,NULL,-2147483648}'", [1, None, -(2**31)]), ("'[0:1]={1,2}'", [1, 2])), refused=(("'{{1,2},{3,4}}'", "{{1,2},{3,4}}"),), words="refused: more dimensions than the table declares, in a query more than one"),
    TypeCase("int[][]", "array<array<int>>", (("'{}'", []), ("'{{1,2},{3,NULL}}'", [[1, 2], [3, None]])), refused=(("'{1}'", "{1}"),), words="refused: other dimensions"),
    TypeCase("text[]", "array<string>", (("""ARRAY['a', NULL, 'NULL', '', '{"', E'\\\\\\n', 'ä']""", ["a", None, "NULL", "", '{"', "\\\n", "ä"]),), refused=(("'{{a,b},{c,d}}'", "{{a,b},{c,d}}"),), words="refused: more dimensions than the table declares, in a query more than one"),
    TypeCase("numeric(10,2)[]", "array<decimal(10,2)>", (("'{1.50,NULL}'", [Decimal("1.50"), None]),), refused=(("'{NaN}'", '["NaN"]'),), words="refused: arrays with a value that its type refuses; so of all arrays"),
    TypeCase("numeric[]", "array<decimal(38,18)>", (("'{1.5}'", [Decimal("1.500000000000000000")]),), refused=(("'{1,0.1234567890123456789}'", '["1","0.1234567890123456789"]'),)),
    TypeCase("double precision[]", "array<double>", (("'{0.1,NaN,Infinity}'", [0.1, NAN, INFINITE]),)),
    TypeCase("boolean[]", "array<boolean>", (("'{t,f,NULL}'", [True, False, None]),)),
    TypeCase("bytea[]", "array<binary>", ((r"ARRAY['\x00ff'::bytea, '\x']", [b"\x00\xff", b""]),)),
    TypeCase("date[]", "array<date>", (("'{0001-01-01,9999-12-31}'", [date(1, 1, 1), date(9999, 12, 31)]),), refused=(("'{2026-01-01,infinity}'", '["2026-01-01","infinity"]'),)),
    TypeCase("timestamp[]", "array<timestamp_ntz>", (("""'{"2026-03-29 02:30:00.000001"}'""", [local("2026-03-29 02:30:00.000001")]),), refused=(("'{infinity}'", '["infinity"]'), ("""'{"0044-03-15 BC"}'""", '["0044-03-15 00:00:00 BC"]'))),
    TypeCase("timestamptz[]", "array<timestamp>", (("""'{"2026-03-29 02:30:00.000001+02"}'""", [instant("2026-03-29 00:30:00.000001")]),), refused=(("'{-infinity}'", '["-infinity"]'),)),
    TypeCase("time[]", "array<string>", (("'{09:15,09:15:00.5}'", ["09:15:00", "09:15:00.500000"]),)),
    TypeCase("uuid[]", "array<string>", (("'{00000000-0000-0000-0000-000000000000}'", ["00000000-0000-0000-0000-000000000000"]),)),
    TypeCase("jsonb[]", "array<string>", (("""ARRAY['{"a": [1]}'::jsonb]""", ['{"a": [1]}']),)),
    TypeCase("char(3)[]", "array<string>", (("'{a,NULL}'", ["a  ", None]),)),
    TypeCase("inet[]", "array<string>", (("'{::1,10.0.0.1/8}'", ["::1", "10.0.0.1/8"]),)),
    TypeCase("mood[]", "array<string>", (("'{sad,NULL}'", ["sad", None]),)),
)  # fmt: skip
"""``mood``, ``pair`` and ``positive`` are types of the test's own."""

OWN_TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE DOMAIN positive AS numeric(8,3) CHECK (value > 0)",
)

_ZERO = "refused: the zero date, a month or day of zero, the year 0"

MARIADB: Sequence[TypeCase] = (
    TypeCase("tinyint", "tinyint", numbers(-128, 0, 127)),
    TypeCase("tinyint(1)", "tinyint", numbers(-128, 0, 1, 2, 127), words="`boolean`, too; `CAST(c AS BOOLEAN)` in `sql` makes true or false of it"),
    TypeCase("tinyint unsigned", "smallint", numbers(0, 255)),
    TypeCase("tinyint(1) unsigned", "smallint", numbers(0, 2, 255)),
    TypeCase("smallint", "smallint", numbers(-(2**15), 2**15 - 1)),
    TypeCase("smallint unsigned", "int", numbers(0, 2**16 - 1)),
    TypeCase("mediumint", "int", numbers(-(2**23), 2**23 - 1)),
    TypeCase("mediumint unsigned", "int", numbers(0, 2**24 - 1)),
    TypeCase("int", "int", numbers(-(2**31), 2**31 - 1)),
    TypeCase("int unsigned", "bigint", numbers(0, 2**32 - 1)),
    TypeCase("bigint", "bigint", numbers(-(2**63), 2**63 - 1)),
    TypeCase("bigint unsigned", "decimal(20,0)", numbers("0", "18446744073709551615")),
    TypeCase("float", "float", (("1234567.875", 1234567.875), ("16777216", 16777216.0), ("0.1", 0.10000000149011612), ("-3.40282e38", -3.402820018375656e38)), words="all its digits, of which MariaDB's own text has six"),
    TypeCase("float unsigned", "double", (("1234567.875", 1234567.875),)),
    TypeCase("double", "double", (("0.1", 0.1), ("0.30000000000000004", 0.30000000000000004), ("1.7976931348623157e308", 1.7976931348623157e308), ("-2.2250738585072014e-308", -2.2250738585072014e-308))),
    TypeCase("decimal(10,2)", "decimal(10,2)", numbers("-99999999.99", "0.00", "1.50")),
    TypeCase("decimal(10,2) unsigned", "decimal(10,2)", numbers("99999999.99", "0.00")),
    TypeCase("decimal(38,10)", "decimal(38,10)", numbers("1234567890123456789012345678.0123456789")),
    TypeCase("decimal(50,10)", "decimal(38,10)", numbers("1.5000000000", f"-{'9' * 28}.9999999999"), refused=((f"1{'0' * 28}.5", f"1{'0' * 28}.5000000000"),), words="more than 38 digits: the scale stays. Refused: numbers that need more. So of sums in a query: `sum(decimal(18,2))` is `decimal(38,2)`"),
    TypeCase("decimal(65,0)", "decimal(38,0)", numbers("9" * 38), refused=(("9" * 50, "9" * 50),), words="refused: more than 38 digits"),
    TypeCase("decimal(65,38)", "decimal(38,38)", (("0.5", Decimal(f"0.5{'0' * 37}")),), refused=(("1.5", f"1.5{'0' * 37}"),), words="refused: 1 and above"),
    TypeCase("bit", "boolean", (("b'1'", True), ("b'0'", False)), words="one bit"),
    TypeCase("bit(8)", "bigint", (("255", 255), ("b'1'", 1), ("0", 0)), words="the number"),
    TypeCase("bit(16)", "bigint", (("258", 258), ("65535", 65535))),
    TypeCase("bit(64)", "decimal(20,0)", (("18446744073709551615", Decimal(18446744073709551615)),)),
    TypeCase("year", "int", numbers(0, 1901, 2026, 2155)),
    TypeCase("date", "date", (("'0001-01-01'", date(1, 1, 1)), ("'1582-10-10'", date(1582, 10, 10)), ("'9999-12-31'", date(9999, 12, 31))), refused=(("'0000-00-00'", "0000-00-00"), ("'2026-02-00'", "2026-02-00"), ("'0000-05-05'", "0000-05-05")), words=_ZERO),
    TypeCase("datetime(6)", "timestamp_ntz", tuple((f"'{text}'", local(text)) for text in _MICRO), refused=(("'0000-00-00'", "0000-00-00 00:00:00.000000"), ("'2026-00-01'", "2026-00-01 00:00:00.000000")), words=_ZERO),
    TypeCase("datetime", "timestamp_ntz", (("'2026-03-29 02:30:00'", local("2026-03-29 02:30:00")),)),
    TypeCase("timestamp(6) NULL", "timestamp", (("'1970-01-01 00:00:01'", instant("1970-01-01 00:00:01")), ("'2026-03-29 02:30:00.000001'", instant("2026-03-29 02:30:00.000001")), ("'2038-01-19 03:14:07.999999'", instant("2038-01-19 03:14:07.999999"))), refused=(("'0000-00-00'", "0000-00-00 00:00:00.000000"),), words="refused: the zero date"),
    TypeCase("time", "string", (("'09:15'", "09:15:00"), ("'838:59:59'", "838:59:59"), ("'-838:59:59'", "-838:59:59"), ("'-00:00:01'", "-00:00:01")), words="`HH:MM:SS`, with six digits after the point if it has a fraction"),
    TypeCase("time(6)", "string", (("'09:15'", "09:15:00"), ("'09:15:00.5'", "09:15:00.500000"), ("'838:59:59.999999'", "838:59:59.999999"))),
    TypeCase("time(3)", "string", (("'-00:00:00.5'", "-00:00:00.500000"),)),
    TypeCase("char(5)", "string", (("'a'", "a"), ("''", "")), words="without blanks at its end, as MariaDB gives it"),
    TypeCase("varchar(9) CHARACTER SET utf8mb4", "string", (("'a '", "a "), ("''", ""), ("_utf8mb4 X'F09F9880'", "\U0001f600"), ("_utf8mb4 X'610062'", "a\x00b"))),
    TypeCase("varchar(9) CHARACTER SET latin1", "string", same("ä")),
    TypeCase("longtext", "string", same("", "NULL")),
    TypeCase("enum('b','a')", "string", same("b", "a")),
    TypeCase("set('a','b')", "string", same("", "a,b")),
    TypeCase("json", "string", same('{"a": 1.10}', "null")),
    TypeCase("uuid", "string", same("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff")),
    TypeCase("inet4", "string", same("0.0.0.0", "255.255.255.255")),
    TypeCase("inet6", "string", same("::", "2001:db8::ff00:42:8329")),
    TypeCase("binary(4)", "binary", (("X'00FF'", b"\x00\xff\x00\x00"),), words="with the zeros that MariaDB fills it up with"),
    TypeCase("varbinary(9)", "binary", (("X''", b""), ("X'00FF27'", b"\x00\xff'"))),
    TypeCase("blob", "binary", (("X'00FF'", b"\x00\xff"),)),
    TypeCase("point", "binary", (("ST_GeomFromText('POINT(1 2)')", bytes.fromhex("000000000101000000000000000000f03f0000000000000040")),), words="bytes as MariaDB keeps them; `ST_AsText(c)` in a query is text"),
)  # fmt: skip

CASES: Mapping[str, Sequence[TypeCase]] = {"postgresql": POSTGRESQL, "mariadb": MARIADB}
