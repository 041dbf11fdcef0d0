"""An outline tells what the parsed document does, or nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.api.document import parse_document
from resources.sources.api.outline import DocumentOutline
from tests.unit.partitions.api.test_document import RECORDS, VALUES


@given(
    RECORDS, VALUES, st.sampled_from(["next", "data.x", "data.y", "data.items", "data.none.x", "before.a"])
)
def test_an_outline_tells_what_the_document_does(records: list[Any], beside: Any, path: str) -> None:
    text = json.dumps({"before": beside, "data": {"x": beside, "items": records, "y": 1}, "next": beside})
    outline = DocumentOutline.of(text)
    assert outline is not None
    assert outline.at(path) == (
        parse_document(text, "data.items").at(path) if path != "data.items" else records
    )


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1,}', '{"a": 1} {}', '{"a": NaN}', '{"a": "\n"}', "[" * 9000]
)
def test_what_is_not_one_whole_document_has_no_outline(text: str) -> None:
    assert DocumentOutline.of(text) is None
