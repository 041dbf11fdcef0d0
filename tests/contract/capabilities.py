"""What an implementation of a contract cannot do, with the reason; ``python -m tests.contract.capabilities`` writes docs/reference/capabilities.md from it.

A rule of a suite that an implementation cannot follow is marked here, and nowhere else:

- ``never``: it makes no sense for it, or its nature rules it out.
- ``notyet``: nobody has built it.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/capabilities.md"


@dataclass(frozen=True)
class Cannot:
    """Why a rule does not hold for an implementation."""

    kind: Literal["never", "notyet"]
    reason: str


@dataclass(frozen=True)
class Suite:
    """One contract.

    Attributes:
        module: of its tests.
        title: in the page.
        subjects: the implementations that it runs on.
        cannot: by rule (the name of the test) and implementation.
    """

    module: str
    title: str
    subjects: tuple[str, ...]
    cannot: dict[tuple[str, str], Cannot]

    def params(self, rule: str) -> list[object]:
        """The implementations that a rule runs on."""
        return [subject for subject in self.subjects if (rule, subject) not in self.cannot]

    def rules(self) -> list[str]:
        """The names of its tests, in their order."""
        functions = inspect.getmembers(import_module(f"tests.contract.{self.module}"), inspect.isfunction)
        tests = [function for name, function in functions if name.startswith("test_")]
        return [test.__name__ for test in sorted(tests, key=lambda test: test.__code__.co_firstlineno)]

    def page(self) -> str:
        """Its table: a line a rule, a column an implementation."""
        head = (
            f"## {self.title}\n\n| rule | {' | '.join(self.subjects)} |\n|---|{'---|' * len(self.subjects)}\n"
        )
        lines = [
            f"| {_words(rule)} | {' | '.join(self._cell(rule, subject) for subject in self.subjects)} |"
            for rule in self.rules()
        ]
        return head + "\n".join(lines) + "\n"

    def _cell(self, rule: str, subject: str) -> str:
        cannot = self.cannot.get((rule, subject))
        return (
            "yes" if cannot is None else f"{'no' if cannot.kind == 'never' else 'not yet'}: {cannot.reason}"
        )


_NO_VERSION = "files have no versions; each is compared with what was listed"

_NO_KEYS = "whole files are replaced; nothing finds a row by its keys"
_BY_KEYS = (
    "test_an_upsert_updates_the_rows_of_its_keys_and_adds_the_others",
    "test_a_null_key_is_a_key_like_any_other",
    "test_an_upsert_leaves_rows_that_are_later_by_its_guard",
    "test_an_upsert_wins_over_later_rows_outside_of_those_that_it_guards",
    "test_an_upsert_deletes_the_rows_that_it_was_told_to_and_does_not_have",
    "test_a_replace_by_keys_deletes_the_rows_of_its_keys_and_adds_all_of_its_own",
    "test_a_load_by_keys_without_rows_records_its_number_and_changes_nothing",
    "test_a_number_of_a_load_by_keys_that_is_there_or_below_is_skipped_in_silence",
    "test_a_fenced_number_keeps_a_load_by_keys_out",
    "test_a_row_of_a_key_whose_partition_changed_is_moved",
    "test_columns_of_a_load_by_keys_are_matched_by_name_and_a_missing_one_is_null",
    "test_a_table_takes_new_columns_and_wider_types_with_rows_by_keys",
    "test_versions_of_a_key_follow_each_other_and_the_last_is_current",
    "test_a_late_or_corrected_version_moves_the_ends_of_its_neighbours",
    "test_versions_that_are_there_change_nothing_and_a_skipped_number_adds_none",
)
"""Rules of loads that find rows by their keys."""

SUITES = (
    Suite(
        "test_table",
        "Table formats",
        ("delta", "iceberg", "parquet"),
        {
            **{(rule, "parquet"): Cannot("never", _NO_KEYS) for rule in _BY_KEYS},
            ("test_a_table_aside_is_removed_whole_and_can_be_made_again", "parquet"): Cannot(
                "never", "a reader of the folder would see a part of what a promote puts in place"
            ),
            ("test_statistics_tell_the_span_of_files_by_a_column_of_one_value_each", "parquet"): Cannot(
                "notyet", "nothing asks for it yet"
            ),
            ("test_rows_that_others_append_undo_nothing", "parquet"): Cannot(
                "never", "rows are those of the lists; files of others stop the run (`foreign_files`)"
            ),
        },
    ),
    Suite("test_shared_table", "Table formats, for dataflows that share a table", ("delta", "iceberg"), {}),
    Suite(
        "test_source",
        "Sources",
        ("files", "jdbc", "api", "python", "table", "iceberg"),
        {
            ("test_a_version_is_read_again_as_it_was", "files"): Cannot("never", _NO_VERSION),
            ("test_a_version_is_read_again_as_it_was", "jdbc"): Cannot("never", "a database has no versions that could be read again"),
            ("test_a_version_is_read_again_as_it_was", "api"): Cannot("never", "an API has no versions that could be read again"),
            ("test_a_version_is_read_again_as_it_was", "python"): Cannot("never", "a function has no versions"),
            ("test_a_changed_column_is_refused", "python"): Cannot(
                "never", "a declared schema is compared with the pinned one; each batch is checked when it is yielded"
            ),
            ("test_a_changed_column_is_refused", "files"): Cannot(
                "never", "a declared schema is compared with the pinned one; each file is checked when it is read"
            ),
            ("test_a_changed_column_is_refused", "api"): Cannot(
                "never", "a declared schema is compared with the pinned one; each record is checked when it is read"
            ),
        },
    ),
    Suite(
        "test_above",
        "Sources of rows above a column watermark",
        ("postgresql", "mariadb", "api", "python", "table", "iceberg", "files"),
        {
            ("test_the_highest_value_of_an_indexed_column_is_known", "api"): Cannot("never", "an API has no indexes"),
            ("test_a_range_is_cut_into_parts_of_about_as_many_rows", "api"): Cannot(
                "never", "an API does not count its rows; watermark_param_range cuts by time"
            ),
            ("test_a_source_that_is_gone_is_an_error_when_it_is_observed", "api"): Cannot(
                "never", "nothing is asked of an API to observe it"
            ),
            ("test_the_highest_value_of_an_indexed_column_is_known", "files"): Cannot("never", "files have no indexes"),
            ("test_a_range_is_cut_into_parts_of_about_as_many_rows", "files"): Cannot("never", "only a scan of all files would tell where"),
            ("test_the_highest_value_of_an_indexed_column_is_known", "table"): Cannot(
                "never", "statistics of files are rounded, and know nothing of deleted rows"
            ),
            ("test_the_highest_value_of_an_indexed_column_is_known", "iceberg"): Cannot(
                "never", "statistics of files are rounded, and know nothing of deleted rows"
            ),
            ("test_a_column_without_an_index_is_neither_scanned_nor_cut", "iceberg"): Cannot(
                "never", "a table of the lake has no indexes; its files tell"
            ),
            ("test_the_highest_value_of_an_indexed_column_is_known", "python"): Cannot(
                "never", "a function has no indexes; its function `highest` tells it of any column"
            ),
            ("test_a_range_is_cut_into_parts_of_about_as_many_rows", "python"): Cannot("never", "only its rows would tell where"),
            ("test_a_column_without_an_index_is_neither_scanned_nor_cut", "python"): Cannot("never", "a function has no indexes"),
            ("test_a_column_without_an_index_is_neither_scanned_nor_cut", "table"): Cannot(
                "never", "a table of the lake has no indexes; its files tell"
            ),
        },
    ),
    Suite(
        "test_kind",
        "Kinds of watermark",
        ("path", "column", "window", "stream", "offset"),
        {
            ("test_a_slice_knows_its_own_bad_parts", "offset"): Cannot("never", "a commit is read whole, or not at all"),
            ("test_a_slice_knows_its_own_bad_parts", "column"): Cannot("never", "a range of rows is read whole, or not at all"),
        },
    ),
)  # fmt: skip


def suite(module: str) -> Suite:
    """The suite of a module of tests."""
    return next(suite for suite in SUITES if suite.module == module.rpartition(".")[2])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each rule on the implementations that can follow it; a module of a contract imports this."""
    made = suite(metafunc.module.__name__)
    metafunc.parametrize("subject", made.params(metafunc.function.__name__), indirect=True)


def page() -> str:
    """docs/reference/capabilities.md."""
    head = (
        "# Capabilities\n\nWhat each table format, source and kind of watermark can do. The suites in `tests/contract` run every rule on every\n"
        "implementation; this page is written from them (`python -m tests.contract.capabilities`), and a test compares the two.\n\n"
    )
    return head + "\n".join(suite.page() for suite in SUITES)


def _words(rule: str) -> str:
    return rule.removeprefix("test_").replace("_", " ")


if __name__ == "__main__":
    PAGE.write_text(page())
