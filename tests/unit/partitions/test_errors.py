from __future__ import annotations

from partitions.errors import shorten_to_line


def test_a_text_of_several_lines_is_told_in_one() -> None:
    assert (
        shorten_to_line("connection failed\n\n\tIs the server running?\n")
        == "connection failed; Is the server running?"
    )


def test_a_long_text_keeps_its_end_where_the_cause_stands() -> None:
    told = shorten_to_line("beginning " + "x" * 5000 + " caused by the end", 100)
    assert len(told) <= 100
    assert told.startswith("beginning ")
    assert " … " in told
    assert told.endswith(" caused by the end")


def test_a_text_within_the_limit_is_told_whole() -> None:
    assert shorten_to_line("x" * 2000) == "x" * 2000
