"""Checksums of local files, computed while others are; object stores have theirs in the etag."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from partitions.path.source import SourceFile
from resources.connections.places import Place

_AT_ONCE = 4


def checksums_of(root: Place, files: Sequence[SourceFile]) -> dict[str, str]:
    """Return the SHA-256 of each local file by path, as ``sha256:…``.

    Missing files, files of 0 bytes and those of a bucket are left out.
    """
    folder = root.local
    if folder is None:
        return {}
    paths = [file.path for file in files if file.size]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        digests = pool.map(lambda path: _digest(Path(folder) / path), paths)
        return {path: digest for path, digest in zip(paths, digests, strict=True) if digest}


def _digest(file: Path) -> str | None:
    try:
        with file.open("rb") as stream:
            return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"
    except OSError:  # the check of the files names it
        return None
