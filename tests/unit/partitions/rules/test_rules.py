"""Rules of rows: their forms, names, limits, and when a slice breaks them (docs/how-to/rules-for-rows.md)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from partitions.rules.counts import RuleCounts, broken_in_words, broken_rules
from partitions.rules.definition import LONGEST_NAME, Rule, rule_refusals
from partitions.rules.limits import exceeds, share_in_words


@pytest.mark.parametrize(
    ("declared", "label", "demand"),
    [
        ({"name": "amount_positive", "expect": "amount >= 0"}, "amount_positive", "amount >= 0"),
        ({"not_null": ["id", "Name"]}, "not_null_id_name", "id, Name not NULL"),
        ({"not_null": "id"}, "not_null_id", "id not NULL"),
        ({"unique": ["a b"]}, "unique_a_b", "a b unique"),
        (
            {"accepted": {"status": ["new", 1, True]}},
            "accepted_status",
            "status in (new, 1, True)",
        ),
        (
            {"references": {"customer_id": "bronze/customers.id"}},
            "references_customer_id",
            "customer_id in bronze/customers.id",
        ),
        ({"unique": ["x" * 99]}, f"unique_{'x' * 99}"[:LONGEST_NAME], f"{'x' * 99} unique"),
    ],
)
def test_a_rule_has_a_name_and_a_demand(declared: dict[str, Any], label: str, demand: str) -> None:
    rule = Rule.model_validate(declared)
    assert (rule.label, rule.demand, rule.check, rule.on_fail) == (label, demand, f"rule_{label}", "reject")


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ({"name": "a"}, "expected one of expect, not_null, unique, accepted, references, found none of them"),
        ({"expect": "a > 0"}, "expected a name beside expect"),
        ({"name": "a", "expect": "a > 0", "not_null": ["a"]}, "found expect and not_null"),
        ({"name": "A", "not_null": ["a"]}, "small letters"),
        ({"not_null": []}, "at least 1 item"),
        ({"accepted": {"a": []}}, "at least 1 item"),
        ({"references": {"a": "customers.id"}}, "expected <layer>/<table>.<column>"),
        ({"not_null": ["a"], "max": "101%"}, "a share from 0% to 100%"),
        ({"not_null": ["a"], "max": -1}, "expected a number of rows"),
        ({"not_null": ["a"], "max": 0.5}, "expected a number of rows"),
        ({"not_null": ["a"], "max": True}, "expected a number of rows"),
        ({"not_null": ["a"], "on_fail": "fail", "max": 3}, "expected no max beside on_fail: fail"),
        ({"not_null": ["a"], "on_fail": "drop"}, "'reject', 'fail' or 'warn'"),
    ],
)
def test_a_rule_that_says_nothing_exact_is_refused(declared: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why.replace("(", r"\(")):
        Rule.model_validate(declared)


def test_rules_with_one_name_or_a_changing_condition_are_refused() -> None:
    rules = [
        Rule(not_null=("id",)),
        Rule(name="not_null_id", unique=("id",)),
        Rule(name="fresh", expect="at < now()"),
    ]
    assert [(refusal.key, refusal.actual) for refusal in rule_refusals(rules)] == [
        (("rules", 1, "name"), "not_null_id, as rule 1 is called"),
        (("rules", 2, "expect"), "now() in 'at < now()'"),
    ]


def test_a_stored_rule_is_the_same_rule() -> None:
    rules = [
        Rule(name="a", expect="a > 0", max="1%", on_fail="warn"),
        Rule(accepted={"s": (1, "x", 2.5)}),
        Rule(references={"c": "bronze/c.id"}),
    ]
    stored = [rule.model_dump(mode="json", exclude_none=True) for rule in rules]
    assert [Rule.model_validate(text) for text in stored] == rules


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_share_is_exceeded_by_the_first_row_above_it(rows: int, failed: int, thousandths: int) -> None:
    failed = min(failed, rows)
    limit = f"{min(thousandths, 1000) / 10}%"
    share = Fraction(min(thousandths, 1000), 1000)
    assert exceeds(limit, failed, rows) == (failed > share * rows)


@given(st.integers(0, 100), st.integers(0, 100))
def test_a_count_is_exceeded_by_one_more_row(limit: int, failed: int) -> None:
    assert exceeds(str(limit), failed, 1000) == (failed > limit)
    assert not exceeds(None, failed, failed)


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_words_never_round_a_share_to_none_or_all(rows: int, failed: int) -> None:
    failed = min(failed, rows)
    shown = share_in_words(failed, rows).partition("(")[2].removesuffix("%)")
    assert (float(shown) == 0) == (failed == 0)
    assert (float(shown) == 100) == (failed == rows)


def test_a_slice_breaks_rules_that_fail_and_limits_that_are_exceeded() -> None:
    rules = [
        Rule(name="none", expect="a > 0", on_fail="fail"),
        Rule(name="few", expect="b > 0", max="10%"),
        Rule(name="many", expect="c > 0"),
        Rule(name="two", expect="d > 0", on_fail="warn", max=2),
    ]
    counts = RuleCounts(20, 9, {"none": 0, "few": 2, "many": 9, "two": 2})
    assert broken_rules(rules, counts) == []
    counts = RuleCounts(20, 9, {"none": 1, "few": 3, "many": 9, "two": 3})
    assert [broken_in_words(rule, counts) for rule in broken_rules(rules, counts)] == [
        "rule none: 1 of 20 rows (5%) fail 'a > 0', none may (on_fail: fail)",
        "rule few: 3 of 20 rows (15%) fail 'b > 0', at most 10% may (max)",
        "rule two: 3 of 20 rows (15%) fail 'd > 0', at most 2 may (max)",
    ]
    assert broken_rules(rules, RuleCounts(0, 0, {})) == []
