"""The stores that a watermark log may lie in: every test of the contract runs on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.places import Place


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty store."""
    if request.param == "local":
        yield Place(str(tmp_path / "state"))
        return
    with request.getfixturevalue("seaweed").bucket() as bucket:
        yield bucket.child("some/prefix")
