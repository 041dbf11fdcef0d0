"""Positions of staged records: an error about a line names the page that the record came with, and its place in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from partitions.api.document import JsonRecord
from resources import staging
from resources.connections.places import Place
from resources.sources.api.positions import LocatedRecord, StagedRecords, with_positions

FIRST, SECOND = "API GET https://a/rows, page 1", "API GET https://a/rows?page=2, page 2"


def _sent(page: int, number: int) -> LocatedRecord:
    return LocatedRecord((FIRST, SECOND)[page - 1], page, number, JsonRecord('{"id": 1}', {"id": 1}))


@pytest.mark.parametrize("lines_of_file", [1, 100])
def test_a_line_tells_its_page_and_its_record_whatever_was_left_out_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines_of_file: int
) -> None:
    monkeypatch.setattr(staging, "_LINES_BYTES", 9 * lines_of_file)
    sent = [_sent(1, 1), _sent(1, 3), _sent(1, 4), _sent(2, 1), _sent(2, 2)]
    with staging.Staging(Place(str(tmp_path))).lines("rows") as lines:
        staged = StagedRecords(lines)
        for each in sent:
            staged.write(each)
    told = [
        with_positions(f"line {line}: wrong", "API GET rows", staged.positions[file.path])
        for file in lines.files
        for line in range(1, 1 + len(sent) // len(lines.files))
    ]
    assert told == [f"{each.where}: record {each.number}: wrong" for each in sent]


def test_several_lines_tell_their_pages_where_these_differ(tmp_path: Path) -> None:
    with staging.Staging(Place(str(tmp_path))).lines("rows") as lines:
        staged = StagedRecords(lines)
        for each in (_sent(1, 7), _sent(1, 8), _sent(2, 1)):
            staged.write(each)
    why = "line 1: field a; line 2: field b; line 3: field c; 3 bad records in all"
    assert with_positions(why, "API GET rows", staged.positions[lines.files[0].path]) == (
        f"{FIRST}: record 7: field a; record 8: field b; page 2, record 1: field c; 3 bad records in all"
    )


def test_without_a_line_the_request_is_named() -> None:
    assert with_positions("it does not read", "API GET rows", ()) == "API GET rows: it does not read"
