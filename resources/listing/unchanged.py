"""Check that listed files are unchanged (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from partitions.errors import BadFile
from partitions.path.bad_files import FILE_CHANGED, FILE_VANISHED
from partitions.path.order import key_before
from partitions.path.source import SourceFile, in_pair_order
from resources.connections.places import Place
from resources.listing.failures import store_failures
from resources.listing.objects import head_object, to_source_file
from resources.listing.pages import PAGE, list_pages

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_AT_ONCE = 16


def check_objects(place: Place, files: Sequence[SourceFile]) -> None:
    """Look up every object again.

    Raises:
        BadFile: for the first file in pair order that differs from the listing.
        SourceError: the store does not answer.
    """
    now = stat_objects(place, [file.path for file in files])
    for file in in_pair_order(files):
        require_unchanged(file, now.get(file.path))


def stat_objects(place: Place, paths: Sequence[str]) -> dict[str, SourceFile]:
    """Return the current state of these objects; missing ones are left out.

    They mostly lie side by side, so a LIST call from the next missing one shows up to 1,000 of them. After
    len(paths) / 1,000 + 2 such calls the rest, scattered among others, is looked up one by one.

    Raises:
        SourceError: the store does not answer.
    """
    with store_failures(place):
        store = place.store
    now = _by_listing(store, place, sorted(paths)) if place.ordered else {}
    unseen = [path for path in paths if path not in now]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        single_files = pool.map(lambda path: head_object(store, place, path), unseen)
        return now | {path: file for path, file in zip(unseen, single_files, strict=True) if file is not None}


def _by_listing(store: ObjectStore, place: Place, keys: Sequence[str]) -> dict[str, SourceFile]:
    key_set, files = set(keys), dict[str, SourceFile]()
    index, calls = 0, len(keys) // PAGE + 2
    while index < len(keys) and calls:
        page = next(list_pages(store, place, key_before(keys[index])))
        calls -= 1
        files |= {meta["path"]: to_source_file(meta) for meta in page.objects if meta["path"] in key_set}
        if not page.more:
            break
        index += 1
        while index < len(keys) and keys[index] <= page.reached:
            index += 1
    return files


def require_unchanged(then: SourceFile, now: SourceFile | None) -> None:
    """Raise if a file differs from the listing.

    Raises:
        BadFile: ``file_vanished`` or ``file_changed``.
    """
    if now is None:
        why = "was listed and has vanished since"
        raise BadFile(f"{then.path}: {why}", path=then.path, why=why, code=FILE_VANISHED)
    if (now.size, now.version) != (then.size, then.version):
        why = f"changed since it was listed: {then.size} bytes then, {now.size} now"
        raise BadFile(
            f"{then.path}: {why}. Files must be complete when they appear: rename them into place, or set settle",
            path=then.path,
            why=why,
            code=FILE_CHANGED,
        )
