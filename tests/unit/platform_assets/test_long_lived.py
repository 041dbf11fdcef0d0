"""The collector of cycles while a location is made: paused inside, and spared the parts of many dataflows after."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from platform_assets.long_lived import MANY, collection_paused, long_lived


@pytest.fixture(autouse=True)
def nothing_is_frozen() -> Iterator[None]:
    yield
    gc.unfreeze()


@pytest.mark.parametrize("dataflows", [MANY, MANY + 1])
def test_the_parts_of_many_dataflows_are_left_to_it_no_more(dataflows: int) -> None:
    before = gc.get_freeze_count()
    with long_lived(dataflows):
        assert not gc.isenabled()
        parts = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    assert gc.isenabled()
    assert (gc.get_freeze_count() - before >= len(parts)) is (dataflows > MANY)


def test_it_works_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="of the user"), long_lived(MANY + 1):
        raise ValueError("of the user")
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, 0)


def test_a_function_pauses_it_and_leaves_it_off_if_it_was_off() -> None:
    @collection_paused()
    def is_enabled() -> bool:
        return gc.isenabled()

    assert (is_enabled(), gc.isenabled()) == (False, True)
    with collection_paused():
        assert (is_enabled(), gc.isenabled()) == (False, False)
