"""A note beside the log of the warnings that runs have given, so that new ones are told from old ones."""

from __future__ import annotations

import re
from collections.abc import Sequence

from partitions.errors import StrandlineError
from resources.watermarks.log import WatermarkLog

_SAID = "said"
_MAX_SAID = 200
"""The most warnings that the note keeps; the oldest are forgotten first."""

_SAMPLE = re.compile(r"'[^']*'|(?<![\w:.,-])\d[\d,]*(?![\w:.-])")
"""The parts of a warning that change from run to run: counts and examples."""


def repeated_warnings(log: WatermarkLog, dataflow: str, warnings: Sequence[str]) -> frozenset[str]:
    """Return the warnings that earlier runs gave, whatever their numbers and examples; note the others."""
    if not warnings:
        return frozenset()
    try:
        stored = (log.note(dataflow, _SAID) or {}).get("warnings")
        given_before = (
            [warning for warning in stored if isinstance(warning, str)] if isinstance(stored, list) else []
        )
        new = [warning for warning in dict.fromkeys(map(_kind, warnings)) if warning not in given_before]
        if new:
            log.put_note(dataflow, _SAID, {"warnings": [*given_before, *new][-_MAX_SAID:]})
    except StrandlineError:
        return frozenset()
    return frozenset(warning for warning in warnings if _kind(warning) not in new)


def _kind(warning: str) -> str:
    return _SAMPLE.sub("#", warning)
