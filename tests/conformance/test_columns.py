"""lookback.json and predicates.json."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import ValidationError

from partitions.column.lookback import parse_look_back
from partitions.column.predicates import ColumnRange, replaced_rows, rows_in_ranges
from partitions.column.refusals import replace_by_watermark_refusals
from partitions.column.state import next_state
from partitions.errors import ConfigurationError
from partitions.predicate import AnyOf, Between, Predicate, matches
from partitions.target import Target
from tests.conformance.common import Case, answer, decode, fails, same


@pytest.mark.cases("lookback", "backward")
def test_backward(case: Case) -> None:
    inputs = case["input"]

    def effective() -> Any:
        block = parse_look_back(inputs["source_configure"]) or parse_look_back(inputs["connection_configure"])
        now, watermark = datetime.fromisoformat(inputs["now"]), decode(inputs["watermark"])
        if watermark is None or block is None:
            return watermark
        return {name: block.lower_bound(value, now) for name, value in watermark.items()}

    result = answer(case, effective)
    if not fails(case):
        assert same(result, decode(case["expected"]["effective"]))


@pytest.mark.cases("lookback", "backward_config")
def test_backward_config(case: Case) -> None:
    block = answer(case, lambda: parse_look_back(case["input"]))
    if not fails(case):
        assert (block and block.units) == case["expected"]


@pytest.mark.cases("predicates", "window")
def test_window(case: Case) -> None:
    inputs = {name: decode(value) for name, value in case["input"].items()}
    lower, upper = inputs["watermark_effective"] or {}, inputs["watermark_after"] or {}
    ranges = [ColumnRange(name, lower.get(name), upper.get(name)) for name in lower | upper]
    deleted = replaced_rows(ranges) if inputs["replace_by_watermark"] else None
    window = {part.column: [part.lower, part.upper] for part in _parts(deleted)} if deleted else None
    assert same(window, decode(case["expected"]["window"]))


@pytest.mark.cases("predicates", "window_delete")
def test_window_delete(case: Case) -> None:
    ranges = [ColumnRange(name, lower, upper) for name, (lower, upper) in case["input"]["window"].items()]
    deleted = replaced_rows(ranges)
    ids = [row["id"] for row in case["input"]["target_rows"] if deleted and matches(deleted, row)]
    assert sorted(ids) == sorted(case["expected"]["deleted_ids"])


@pytest.mark.cases("predicates", "window_validation")
def test_window_validation(case: Case) -> None:
    inputs = case["input"]

    def validated() -> dict[str, str]:
        declared = {"load": inputs["load_type"], "replace_by_watermark": inputs["replace_by_watermark"]}
        try:
            target = Target.model_validate(declared)
        except ValidationError as error:
            raise ConfigurationError(str(error)) from error
        for refused in replace_by_watermark_refusals(target, parse_look_back(inputs["source_configure"])):
            raise ConfigurationError(str(refused))
        return {"result": "ok"}

    result = answer(case, validated)
    if not fails(case):
        assert result == case["expected"]


@pytest.mark.cases("predicates", "row_filter")
def test_row_filter(case: Case) -> None:
    inputs = case["input"]
    start, end = inputs["watermark_start"] or {}, inputs["watermark_end"] or {}
    ranges = [
        ColumnRange(
            name,
            start.get(name),
            end.get(name),
            inputs["start_operator"] == ">=",
            inputs["end_operator"] == "<=",
        )
        for name in inputs["watermark_columns"]
    ]
    kept_rows = [row["id"] for row in inputs["rows"] if matches(rows_in_ranges(ranges), row)]
    assert sorted(kept_rows) == sorted(case["expected"]["kept_ids"])


@pytest.mark.cases("predicates", "next_watermark")
def test_next_watermark(case: Case) -> None:
    inputs = {name: decode(value) for name, value in case["input"].items()}
    read = next_state(inputs["stored"] or {}, inputs["rows_read_max"])
    status = {"ok": "succeeded", "fails": "failed"}.get(inputs["write"] or "", "skipped")
    saved = read if status == "succeeded" else None
    assert {"saved": saved, "status": status} == case["expected"]


def _parts(deleted: Predicate) -> list[Between]:
    parts = deleted.parts if isinstance(deleted, AnyOf) else (deleted,)
    return [part for part in parts if isinstance(part, Between)]
