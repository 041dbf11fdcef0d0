"""All of the model runs without a JVM."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.jvmless import jvmless


@pytest.fixture(scope="session", autouse=True)
def _jvmless() -> Iterator[None]:
    with jvmless():
        yield
