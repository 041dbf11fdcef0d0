from __future__ import annotations

from typing import Any

import pytest

from partitions.kinds import KINDS
from partitions.state_of_kind import holds_nothing
from partitions.watermark_state import WatermarkState
from partitions.window.state import WindowState


@pytest.mark.parametrize("kind", [*(definition.kind() for definition in KINDS), "another"])
@pytest.mark.parametrize("watermark", [None, {}, {"path": None}])
def test_an_empty_watermark_counts_nothing_as_loaded(kind: str, watermark: dict[str, Any] | None) -> None:
    assert holds_nothing(kind, watermark)


@pytest.mark.parametrize("state", sorted({rules.state for rules in KINDS.values()}, key=str))
@pytest.mark.parametrize(
    "watermark",
    [None, {}, {"path": None}, {"paths": None, "closed_before": None}, {"grid": None, "units": None}],
)
def test_an_empty_watermark_is_the_state_of_a_new_source(
    state: type[WatermarkState], watermark: dict[str, Any] | None
) -> None:
    assert state.of(watermark) == state()


def test_a_state_without_any_window_is_an_empty_watermark() -> None:
    assert WindowState().watermark() == {}


@pytest.mark.parametrize(
    ("kind", "watermark", "nothing"),
    [
        ("path", {"path": "a"}, False),
        ("window", {"grid": "daily UTC", "units": {}, "stale": {"{}": [[0, 1]]}}, True),
        ("window", {"grid": "daily UTC", "units": {}, "failed": {"{}": {}}}, False),
        ("window", {"grid": "daily UTC", "units": {"{}": [[0, 1]]}, "stale": {}}, False),
    ],
)
def test_after_a_reset_old_windows_may_be_known(kind: str, watermark: dict[str, Any], nothing: bool) -> None:
    assert holds_nothing(kind, watermark) is nothing
