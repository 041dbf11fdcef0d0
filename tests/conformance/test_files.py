"""files.json: each case is loaded by one run of the product, and its table read by another reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from partitions.errors import StrandlineError
from resources.spark import SparkEngine
from tests.conformance.common import Case, decode, same
from tests.support.feed import Feed

_CODES = {"configuration_error": "project"}
"""The product's codes where they are others: what is refused in a project's files has one code."""


@pytest.mark.cases("files", "load")
def test_load(case: Case, tmp_path: Path, engine: SparkEngine) -> None:
    asked, expected = case["input"], case["expected"]
    source = {"format": asked["format"], "options": asked["options"], **asked["source"]}
    feed = Feed(tmp_path, engine, {"source": source, "target": asked["target"], **asked["keys"]})
    feed.define(source={"schema": asked["schema"]})
    for file in asked["files"]:
        content = bytes.fromhex(file["hex"]) if "hex" in file else file["text"].encode()
        feed.put_bytes(file["path"], content)
    error = _run(feed)
    if "error" in expected:
        assert error is not None, f"expected {expected['error']}, loaded {_rows(feed)}"
        assert error.code == _CODES.get(expected["error"], expected["error"]), error.message
        missing = [text for text in expected["mentions"] if text not in error.message]
        assert not missing, error.message
    else:
        assert error is None, error.message
    _check(_rows(feed), decode(expected["rows"]))


def _run(feed: Feed) -> StrandlineError | None:
    try:
        return feed.run().error
    except StrandlineError as error:  # of a definition that is refused before anything runs
        return error


def _rows(feed: Feed) -> list[dict[str, Any]]:
    if not (feed.table / "_delta_log").exists():
        return []
    rows: list[dict[str, Any]] = DeltaTable(str(feed.table)).to_pyarrow_table().to_pylist()
    return rows


def _check(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """Compare rows in any order, in the columns that are expected, by type and value."""
    names = list(expected[0]) if expected else []
    remaining = [{name: row.get(name, "no such column") for name in names} for row in rows]
    for row in expected:
        match = next(
            (index for index, other in enumerate(remaining) if same(_plain(other), _plain(row))), None
        )
        assert match is not None, f"expected {row}, found {remaining}"
        del remaining[match]
    assert not remaining


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Instants in UTC: readers name that zone in different ways."""
    return {
        name: value.astimezone(tz=None).isoformat() if getattr(value, "tzinfo", None) else value
        for name, value in row.items()
    }
