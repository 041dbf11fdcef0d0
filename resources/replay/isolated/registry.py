"""What a replay aside is for each kind of watermark: one module a kind (docs/replay.md, Aside)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.kinds.column.isolated_replay import AsideColumns
from resources.kinds.path.isolated_replay import AsideFiles
from resources.kinds.window.isolated_replay import AsideWindows
from resources.platform import Platform
from resources.replay.isolated.kind import AsideKind, Begun, Swap

__all__ = ["AsideKind", "Begun", "Swap", "open_aside_kind"]

_KINDS: dict[str, type[AsideKind]] = {"column": AsideColumns, "path": AsideFiles, "window": AsideWindows}


def open_aside_kind(platform: Platform, dataflow: Dataflow) -> AsideKind:
    """Return what replays aside of a dataflow are.

    Raises:
        ConfigurationError: there are none of its kind.
    """
    if dataflow.kind not in _KINDS:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a watermark of type {', '.join(_KINDS)}, found {dataflow.kind}: what a stream has merged is not read apart"
            f" again. Load it anew: strandline state reset {dataflow.name} --replace --reason TEXT"
        )
    return _KINDS[dataflow.kind](platform, dataflow)
