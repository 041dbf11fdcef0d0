"""Check that data files which a log names exist before they are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

from partitions.errors import NeedsDecision, TargetError
from resources.connections.places import Place

_MAX_READERS = 16


def check_files_exist(place: Place, files: Collection[tuple[int, str]]) -> None:
    """Raise NeedsDecision, code ``versions_gone``, if a file below a place is missing.

    Args:
        place: place of the table.
        files: version and path, as the log spells it, of each file. Absolute paths are not checked.
    """
    relative = [(version, path) for version, path in sorted(files) if not _is_absolute(path)]
    if place.local is not None:
        folder = place.local
        exist = [(folder / unquote(path)).exists() for _, path in relative]
    else:
        with ThreadPoolExecutor(_MAX_READERS) as pool:
            exist = list(pool.map(lambda file: _has_object(place, unquote(file[1])), relative))
    missing = [file for file, exists in zip(relative, exist, strict=True) if not exists]
    if missing:
        raise missing_files_error(place, missing[0][0], [path for _, path in missing])


def missing_files_error(place: Place, version: int, paths: Sequence[str]) -> NeedsDecision:
    """Return the error for files that a version needs and that are gone."""
    more = f" and {len(paths) - 1:,} more" if len(paths) > 1 else ""
    return NeedsDecision(
        f"table {place}: expected the files that version {version} reads, found that {paths[0]}{more} were "
        "cleaned before they were read, such as by VACUUM",
        code="versions_gone",
    )


def check_same_files(place: Place, existing: Collection[str], expected: Collection[str]) -> None:
    """Raise TargetError if a version lacks files that were listed before."""
    if missing := sorted(set(expected) - set(existing)):
        raise TargetError(
            f"table {place}: expected file {missing[0]} in the version as it was listed, found none: the table's "
            "log has changed. Run again"
        )


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "file:")) or "://" in path


def _has_object(place: Place, path: str) -> bool:
    from obstore.exceptions import NotFoundError

    try:
        place.store.head(path)
    except (NotFoundError, FileNotFoundError):
        return False
    return True
