"""A test follows each remedy that an error names: it runs the command, and checks the rows (mark ``remedy``)."""

from __future__ import annotations

from functools import cache

import pytest

from platform_assets.installation import ROOT
from tests.support.remedies import Code, Remedy, command_of, commands_of, marked_remedies

NOT_FOLLOWED = {
    Remedy("newer_state", "pip install"): "an upgrade is another version's",
    Remedy("held", "watch"): "the name of the holder, which waits or ends",
    Remedy(
        "configuration", "dev"
    ): "`strandline dev` is one way to start a Connect server: tests/e2e/test_dev.py starts it",
    Remedy("engine_lost", "dev"): "as before",
    Remedy("source", "dev"): "as before",
    Remedy("spark", "dev"): "as before",
    Remedy("died", "run"): "a note of a run in Dagster; the run is any other one",
    Remedy("dagster", "run"): "as before",
    Remedy(
        "decision", "state reset --replace"
    ): "the code is that of another error: versions_gone, source_replaced",
    Remedy("dev", "dev"): "the command that failed, once its cause is away",
    Remedy("unknown_upstream", "validate"): "lists the errors of files, which a person corrects",
    Remedy("spark", "doctor"): "shows what is missing; each check has its own test",
    Remedy("engine_lost", "doctor"): "as before",
}
"""Remedies that no test follows, each with the reason."""

WITHOUT_TEST = """
configuration: run --force
configuration: state reset
configuration: validate
engine_lost: run
failed_units: ledger
plan: state reset --replace
predicate: delete
query: state reset --replace
schema: state accept
source: state reset --replace
target: maintain
target: relocate
target: state reset --replace
"""
"""Remedies that have no test yet."""


@cache
def code() -> Code:
    return Code(ROOT)


def without_test() -> set[Remedy]:
    return {Remedy(*line.split(": ")) for line in WITHOUT_TEST.split("\n") if line}


def test_a_test_follows_each_remedy_that_an_error_names() -> None:
    marked = marked_remedies(ROOT / "tests")
    missing = {
        f"{remedy.code}: {remedy.command}": places
        for remedy, places in code().remedies.items()
        if remedy not in marked and remedy not in NOT_FOLLOWED and remedy not in without_test()
    }
    assert missing == {}


def test_a_mark_names_a_remedy_that_an_error_names() -> None:
    marked = marked_remedies(ROOT / "tests")
    assert {remedy: places for remedy, places in marked.items() if remedy not in code().remedies} == {}


def test_a_remedy_without_a_test_is_one_that_an_error_names_and_no_test_follows() -> None:
    not_followed = {*NOT_FOLLOWED, *without_test()}
    assert not_followed - (set(code().remedies) - set(marked_remedies(ROOT / "tests"))) == set()


def test_the_choices_of_every_error_can_be_read_from_the_source() -> None:
    assert code().unread == []


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("strandline state reset flow --replace --reason TEXT", ["state reset --replace"]),
        ("strandline state rewind {} --to 3 --replace --gone keep", ["state rewind --gone keep"]),
        ("Run `strandline run flow`, or `strandline doctor`", ["run", "doctor"]),
        ("strandline replay flow --start 1 --replace", ["replay"]),
        ("move _strandline away", []),
    ],
)
def test_a_command_is_named_by_its_words_and_the_options_that_change_it(
    text: str, commands: list[str]
) -> None:
    assert list(commands_of(text)) == commands


def test_a_command_that_runs_has_the_name_of_the_one_that_was_offered() -> None:
    words = ["state", "accept", "flow", "--below", "late", "--reason", "because", "--yes"]
    assert command_of(words) == "state accept --below late"
