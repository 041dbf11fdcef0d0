"""What names and first bytes say of files."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from partitions.sources.first_draft import (
    begins_with_event,
    count_elements_inside_root,
    ending_of,
    format_of_ending,
    infer_json_format,
    infer_row_tag,
    infer_separator,
    is_code,
    looks_like_a_date,
    main_format,
    split_datasets,
)


@pytest.mark.parametrize(
    ("path", "ending"),
    [
        ("a/b.csv", ".csv"),
        ("b.CSV.gz", ".CSV.gz"),
        ("2024.01.02.ndjson", ".ndjson"),
        ("b", ""),
        (".hidden", ""),
        ("b.gz", ".gz"),
        ("a.d/b", ""),
    ],
)
def test_an_ending_is_that_of_the_name_with_its_compression(path: str, ending: str) -> None:
    assert ending_of(path) == ending


@pytest.mark.parametrize(
    ("ending", "form"),
    [
        (".csv", "csv"),
        (".TSV.GZ", "csv"),
        (".jsonl", "ndjson"),
        (".parquet.gz", None),
        (".txt", None),
        ("", None),
    ],
)
def test_an_ending_stands_for_a_format_in_whatever_case(ending: str, form: str | None) -> None:
    assert format_of_ending(ending) == form


def test_the_format_is_that_of_most_files() -> None:
    assert main_format(["a.csv", "b.csv", "c.parquet", "_SUCCESS"]) == (
        "csv",
        {".csv": 2, ".parquet": 1, "": 1},
    )
    assert main_format(["readme.txt"])[0] is None


@pytest.mark.parametrize(
    ("head", "form"),
    [
        ('{"a": 1}\n{"a": 2}\n', "ndjson"),
        ('\n{"a": 1}', "ndjson"),
        ('[{"a": 1}]', "json"),
        ('{\n  "a": 1\n}', "json"),
        ("", "json"),
    ],
)
def test_json_is_lines_if_the_first_one_is_an_object(head: str, form: str) -> None:
    assert infer_json_format(head) == form


def test_the_form_of_json_is_told_however_deep_its_first_line_is() -> None:
    assert [infer_json_format("[" * 200_000), infer_json_format('{"a":' * 200_000)] == ["json", "ndjson"]


@pytest.mark.parametrize(
    ("header", "separator"),
    [("a,b", ","), ("a;b;c,d", ";"), ("a\tb", "\t"), ('"a;b;c",d', ","), ("a|b", "|"), ("alone", ",")],
)
def test_a_separator_is_what_stands_most_often_outside_of_quotes(header: str, separator: str) -> None:
    assert infer_separator(header) == separator


@pytest.mark.parametrize(
    ("text", "elements", "tag"),
    [
        ("<?xml version='1.0'?><!-- <a> --><r><o id='1'><x/><x/></o></r>", {"o": 1}, "o"),
        ("<r><meta><v/><v/><v/></meta><i>&lt;m></i><i/><![CDATA[<m>]]></r>", {"meta": 1, "i": 2}, "i"),
        ("<r><a/><b/><b/><a/></r>", {"a": 2, "b": 2}, "a"),
        ("<r><m/><größe/><größe><x", {"m": 1, "größe": 2}, "größe"),
        ("<r/>", {}, None),
    ],
)
def test_xml_records_are_what_repeats_most(text: str, elements: dict[str, int], tag: str | None) -> None:
    assert (count_elements_inside_root(text), infer_row_tag(elements)) == (elements, tag)


@pytest.mark.parametrize(
    ("paths", "folders", "loose"),
    [
        (["orders/2024/a.csv", "customers/a.csv"], ["orders", "customers"], []),
        (
            ["orders/a.csv", "customers/a.csv", "b.csv", "c.json", "README.md"],
            ["orders", "customers"],
            ["b.csv", "c.json"],
        ),
        (["date=2024-01-01/a.csv"], [""], []),
        (["2024/a.csv", "2025/a.csv"], [""], []),
        (["orders/a.csv", "b.csv"], ["orders"], ["b.csv"]),
        (["old/a.csv", "b.csv", "c.csv"], [""], []),
        (["a.csv", "b.csv"], [""], []),
    ],
)
def test_folders_with_plain_names_are_datasets_of_their_own(
    paths: Sequence[str], folders: Sequence[str], loose: Sequence[str]
) -> None:
    datasets, others = split_datasets(paths)
    assert (list(datasets), list(others)) == (folders, loose)


def test_only_iso_days_look_like_dates() -> None:
    assert looks_like_a_date(["2024-01-28", "2024-01-29"])
    assert not looks_like_a_date(["2024-01-28", "all"])
    assert not looks_like_a_date([])


@pytest.mark.parametrize(
    ("value", "code"), [("007", True), ("00", True), ("0", False), ("0.5", False), ("70", False), ("", False)]
)
def test_digits_behind_a_zero_are_a_code(value: str, code: bool) -> None:
    assert is_code(value) is code


@pytest.mark.parametrize(
    ("head", "is_event"),
    [
        ('{"op":"c","after":{},"source":{}}\n', True),
        ('{"schema":{},"payload":{"op":"d","before":{},"source":{}}}\n', True),
        ('{"schema":{},"payload":null}\n', False),
        ('{"op":"c","source":"web"}\n', False),
        ("[1]", False),
        ("{", False),
    ],
)
def test_change_events_are_told_by_their_envelope(head: str, is_event: bool) -> None:
    assert begins_with_event(head) == is_event
