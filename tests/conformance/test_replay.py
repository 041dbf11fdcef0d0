"""replay.json."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.replay.chunks import Chunk, chunk_column, chunks, chunks_above
from tests.conformance.common import Case, answer, decode, fails, same

_OPERATORS = {"lower_operator": ">=", "upper_operator": "<"}


@pytest.mark.cases("replay", "replay_chunks")
def test_replay_chunks(case: Case) -> None:
    inputs = decode(case["input"])
    planned = answer(case, lambda: chunks("at", inputs["start"], inputs["end"], inputs["chunk_interval"]))
    if not fails(case):
        result = {"chunks": [[chunk.lower, chunk.upper] for chunk in planned], **_OPERATORS}
        assert same(result, decode(case["expected"]))


@pytest.mark.cases("replay", "replay_run")
def test_replay_run(case: Case) -> None:
    inputs = decode(case["input"])
    result = answer(case, lambda: _run(inputs))
    if not fails(case):
        assert same(result, decode(case["expected"]))


def _run(inputs: dict[str, Any]) -> dict[str, Any]:
    replay, stored = inputs["replay"], inputs["stored_watermark"]
    column = chunk_column(replay["chunk_column"], inputs["watermark_columns"])
    planned = chunks(column, replay["start"], replay["end"], replay["chunk_interval"])
    due = chunks_above(planned, stored) if replay["save_watermark"] else planned
    run: list[dict[str, Any]] = []
    for chunk, outcome in zip(due, inputs["chunk_outcomes"] or ["succeeded"] * len(due), strict=False):
        saved = None
        if replay["save_watermark"] and outcome == "succeeded":
            saved = stored = {**(stored or {}), chunk.column: chunk.upper}
        run.append(_chunk_document(chunk, outcome, saved))
        if outcome == "failed":
            break
    outcomes = {chunk["outcome"] for chunk in run}
    status = "failed" if "failed" in outcomes else "succeeded" if "succeeded" in outcomes else "skipped"
    return {"status": status, "chunks_run": run}


def _chunk_document(chunk: Chunk, outcome: str, saved: dict[str, Any] | None) -> dict[str, Any]:
    bounds = {"column": chunk.column, "lower": chunk.lower, "upper": chunk.upper, **_OPERATORS}
    return {**bounds, "outcome": outcome, "saved_watermark": saved}
