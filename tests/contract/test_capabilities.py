"""docs/reference/capabilities.md says what the suites of the contracts say."""

from __future__ import annotations

from tests.contract.capabilities import PAGE, SUITES, page


def test_the_page_of_capabilities_is_written_from_the_suites() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.contract.capabilities`"


def test_what_an_implementation_cannot_do_is_a_rule_of_its_suite() -> None:
    for suite in SUITES:
        rules = suite.rules()
        assert [rule for rule, _ in suite.cannot if rule not in rules] == []
