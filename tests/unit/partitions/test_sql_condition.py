"""A condition that stays in force means the same at any time (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

import pytest

from partitions.predicate import EVERYTHING, AllOf, Among, Between, Predicate
from partitions.sql_condition import bounds_of, changing_part, column_of_run, named_columns

COLUMNS = ("id", "Who", "at", "user name", "address")


@pytest.mark.parametrize(
    ("condition", "part"),
    [
        ("id = 1", None),
        ("who = 'select rand() -- no'", None),
        ('who = "now()"', None),
        ("`now` = 1", None),
        ("address.user = 'x'", None),
        ("at < timestamp '2026-01-01'", None),
        ("exists(array(id), x -> x = 1)", None),
        ("unix_timestamp(at) < 5", None),
        ("who RLIKE r'^\\d+$' OR who = R\"it's\"", None),
        ("who = 'it''s' AND who <> \"say \"\"now()\"\"\" AND `user``name` = X'1F'", None),
        (r"who = 'a\' OR at < current_date OR who = \'b'", None),
        (r"who = r'\' OR at < current_date OR who = 'x'", "current_date"),
        ('who = R"\\" OR at < current_date OR who = "x"', "current_date"),
        ("who = r'a''b' OR rand() < 1", "rand()"),
        ("`rand`() < 0.5", "rand()"),
        ("at < `current_date`", "current_date"),
        ("at < system.builtin.now()", "the function now() of a catalog"),
        ("identifier('ra' 'nd')() < 0.5", "identifier()"),
        ("who = current_u\u017fer", "current_user"),
        ("id IN (\u017felect 1)", "a subquery"),
        ("who = 'ann", "a quote without its end"),
        ("`who = 1", "a quote without its end"),
        ("who = '${env:HOME}'", "the variable ${…}"),
        ("who = $$ann$$", "the character $"),
        ("RAND ( ) < 0.5", "rand()"),
        ("at < now()", "now()"),
        ("at < CURRENT_TIMESTAMP", "current_timestamp"),
        ("who = user", "user"),
        ("at < timestamp 'now'", "timestamp 'now'"),
        ("at < date ' Yesterday '", "date ' Yesterday '"),
        ("at < date r'today'", "date r'today'"),
        ("at < date 'to' 'day'", "date 'to'"),
        ("at < date 't\\u006fday'", "date 't\\u006fday'"),
        ("at < timestamp 'today UTC'", "timestamp 'today UTC'"),
        ("at < timestamp '12:30:00'", "timestamp '12:30:00'"),
        ("at < date '2026-01-01' OR at < date\"-0044-03-15\"", None),
        ("unix_timestamp() > id", "unix_timestamp()"),
        ("id IN (select id FROM t)", "a subquery"),
        ("id = 1 /* all */", "a comment"),
        ("id = 1; DROP TABLE t", "a semicolon"),
    ],
)
def test_a_part_that_may_change_is_named(condition: str, part: str | None) -> None:
    assert changing_part(condition, COLUMNS) == part


def test_a_column_called_user_is_a_column() -> None:
    assert changing_part("user = 'ann'", ("user",)) is None


def test_named_columns_are_those_of_the_table_in_its_spelling() -> None:
    condition = "WHO = 'id' AND `user name` IS NULL AND address.at = 1"
    assert named_columns(condition, COLUMNS) == ("Who", "user name", "address")


def test_columns_of_a_run_and_of_a_history_are_found() -> None:
    assert column_of_run(["id", "_RUN_ID"]) == "_RUN_ID"
    assert column_of_run(["id", "_is_current"]) == "_is_current"
    assert column_of_run(["id", "_source_file"]) is None


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("ID = 7", Among("id", (7,))),
        ("who IN ('ann', 'bob')", Among("who", ("ann", "bob"))),
        ("id >= 5 AND who = 'ann'", AllOf((Between("id", 5, None), Among("who", ("ann",))))),
        ("id < 5 AND lower(who) = 'ann'", Between("id", None, 5)),
        ("id = 7 OR who = 'ann'", EVERYTHING),
        ("NOT id = 7", EVERYTHING),
        ("id = 7 + 1", EVERYTHING),
        ("id = '7'", EVERYTHING),
        ("id = -7", EVERYTHING),
        ("who = 'it''s'", EVERYTHING),
        ("who < 'b'", EVERYTHING),
        ("amount = 7", EVERYTHING),
        ("id BETWEEN 1 AND 2", EVERYTHING),
        ("id <=> 7", EVERYTHING),
        ("(id = 7)", EVERYTHING),
    ],
)
def test_bounds_are_met_by_every_matching_row(condition: str, bounds: Predicate) -> None:
    types = {"id": "bigint", "who": "string", "amount": "double"}
    assert bounds_of(condition, types) == bounds
