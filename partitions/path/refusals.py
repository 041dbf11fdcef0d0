"""What a path watermark does not go together with, beyond the table in ``partitions.supported``."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.refusal import Refusal
from partitions.sources.definition import SourceDefinition
from partitions.target import Target

_APPENDED = "no such key (files above a path watermark are appended)"


def refusals(source: SourceDefinition, target: Target, schedule: str | None) -> Iterator[Refusal]:
    """Yield keys that a path watermark has no use for."""
    yield from source.path_refusals()
    if target.replace_by_watermark:
        yield Refusal(("target", "replace_by_watermark"), "true", _APPENDED)
    if target.merge_keys:
        yield Refusal(("target", "merge_keys"), ", ".join(target.merge_keys), _APPENDED)
    if schedule:
        yield Refusal(("schedule",), "one", "no schedule (a path watermark has a sensor)")
