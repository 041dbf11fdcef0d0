"""Which errors of Delta's writer say that another writer's commit came first, so that the same write may succeed now."""

from __future__ import annotations

import re

_CONFLICT = re.compile(
    r"DELTA_(?:CONCURRENT_(?!TRANSACTION)|METADATA_CHANGED|PROTOCOL_CHANGED)"
    r"|(?:Concurrent(?:Append|DeleteRead|DeleteDelete|Write)|MetadataChanged|ProtocolChanged)Exception"
)
"""Not that of a tag which the table knows: the number is taken then, and nothing is to be tried again."""


def is_conflict(error: Exception) -> bool:
    """Return whether Delta refused a commit because of another one that it had not seen."""
    return _CONFLICT.search(str(error)) is not None
