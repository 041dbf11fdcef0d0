"""The stores that a watermark log may lie in: every test of the contract runs on each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resources.connections.places import Place
from resources.connections.postgres import Database


@pytest.fixture(
    params=[
        "local",
        pytest.param("s3", marks=pytest.mark.s3),
        pytest.param("postgres", marks=pytest.mark.postgres),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place | Database]:
    """An empty store."""
    if request.param == "local":
        yield Place(str(tmp_path / "state"))
        return
    if request.param == "postgres":
        yield request.getfixturevalue("postgres").database()
        return
    with request.getfixturevalue("seaweed").bucket() as bucket:
        yield bucket.child("some/prefix")
