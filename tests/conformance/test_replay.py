"""replay.json."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.replay.chunks import Chunk, chunk_column, chunks, chunks_above
from tests.conformance.common import Case, answer, decode, fails, same

_OPERATORS = {"lower_operator": ">=", "upper_operator": "<"}


@pytest.mark.cases("replay", "replay_chunks")
def test_replay_chunks(case: Case) -> None:
    given = decode(case["input"])
    planned = answer(case, lambda: chunks("at", given["start"], given["end"], given["chunk_interval"]))
    if not fails(case):
        found = {"chunks": [[chunk.lower, chunk.upper] for chunk in planned], **_OPERATORS}
        assert same(found, decode(case["expected"]))


@pytest.mark.cases("replay", "replay_run")
def test_replay_run(case: Case) -> None:
    given = decode(case["input"])
    result = answer(case, lambda: _run(given))
    if not fails(case):
        assert same(result, decode(case["expected"]))


def _run(given: dict[str, Any]) -> dict[str, Any]:
    replay, stored = given["replay"], given["stored_watermark"]
    column = chunk_column(replay["chunk_column"], given["watermark_columns"])
    planned = chunks(column, replay["start"], replay["end"], replay["chunk_interval"])
    due = chunks_above(planned, stored) if replay["save_watermark"] else planned
    run: list[dict[str, Any]] = []
    for chunk, outcome in zip(due, given["chunk_outcomes"] or ["succeeded"] * len(due), strict=False):
        saved = None
        if replay["save_watermark"] and outcome == "succeeded":
            saved = stored = {**(stored or {}), chunk.column: chunk.upper}
        run.append(_shown(chunk, outcome, saved))
        if outcome == "failed":
            break
    outcomes = {chunk["outcome"] for chunk in run}
    status = "failed" if "failed" in outcomes else "succeeded" if "succeeded" in outcomes else "skipped"
    return {"status": status, "chunks_run": run}


def _shown(chunk: Chunk, outcome: str, saved: dict[str, Any] | None) -> dict[str, Any]:
    bounds = {"column": chunk.column, "lower": chunk.lower, "upper": chunk.upper, **_OPERATORS}
    return {**bounds, "outcome": outcome, "saved_watermark": saved}
