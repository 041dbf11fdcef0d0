"""Recognize the errors of Delta's writer that mean a conflict, so that the same write may succeed now."""

from __future__ import annotations

import re

_CONFLICT = re.compile(
    r"DELTA_(?:CONCURRENT_(?!TRANSACTION)|METADATA_CHANGED|PROTOCOL_CHANGED)"
    r"|(?:Concurrent(?:Append|DeleteRead|DeleteDelete|Write)|MetadataChanged|ProtocolChanged)Exception"
)
"""Errors of a conflict, except that of a taken tag: a retry would not help there."""


def is_conflict(error: Exception) -> bool:
    """Return whether Delta refused a commit because another one came first."""
    return _CONFLICT.search(str(error)) is not None
