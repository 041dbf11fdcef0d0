"""Offset watermarks in words."""

from __future__ import annotations

from partitions.offset.state import OffsetState
from partitions.plan import pluralize


def state_in_words(state: OffsetState) -> str:
    """Return up to where the log is read."""
    if state.position is None:
        return "none"
    reach = state.position.words
    if state.snapshot is not None:
        done, files = state.snapshot.files_done, pluralize(state.snapshot.files, "file")
        reach = f"{done:,} of {files} of {state.position.words}"
    return reach if state.accepted is None else f"{reach}; changes up to {state.accepted.words} are accepted"
