"""List objects above a position, by ``ListObjectsV2`` with ``StartAfter`` through obstore.

A position gives the range of keys to walk, and the keys that may be jumped over. Both hold in both orders
of ``partitions.path.order``, so SeaweedFS, which lists folder by folder, gives the same files as S3. There
is one exception: SeaweedFS does not show files of ``date=1/h=0/`` while the watermark is in ``date=1-b/``
(folders inside one whose name is the beginning of the watermark's partition); there they are late, not
new.

Directory buckets list in no order, so each tick lists all of them.

A jump over closed partitions also passes other names in the same folder (such as files at the root). One
listing of just that folder, by delimiter, finds them: one call for each 1,000 partitions and files there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.path.hidden import is_hidden_path, key_after_hidden_folder
from partitions.path.listing_positions import ListingStart
from partitions.path.order import is_past
from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.listing.budget import Budget
from resources.listing.failures import store_failures
from resources.listing.pages import ListedObject, ListPage, list_folder, list_pages
from resources.listing.step import Listing, ListingStep

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore


def list_objects(
    place: Place,
    position: ListingStart,
    endings: tuple[str, ...],
    *,
    budget: Budget | None = None,
    resume: str | None = None,
) -> Listing:
    """List the objects above a position.

    Args:
        place: a prefix of a bucket.
        position: the committed position.
        endings: endings of names.
        budget: counts LIST calls; ignored if keys come in no order.
        resume: the start of the earlier steps' range, and the last key they reached, as JSON.

    Raises:
        SourceError: as in ``resources.listing.list_above``.
    """
    with store_failures(place):
        store = place.store
    step = ListingStep(position, endings, budget)
    walk = _KeyWalk(store, place, step)
    if not place.ordered:
        walk.all()
        return step.listing()
    for key in walk.page_by_page(resume):
        if step.used_up(step.calls):
            return step.listing(resume=json.dumps([position.span().after, key]))
    return step.listing()


class _KeyWalk:
    """The walk of one step through a store's keys."""

    def __init__(self, store: ObjectStore, place: Place, step: ListingStep) -> None:
        self._store = store
        self._place = place
        self._step = step
        self._position = step.position
        self._beside: dict[str, ListPage] = {}

    def all(self) -> None:
        """Take every page, whatever its order."""
        for page in list_pages(self._store, self._place, ""):
            self._step.calls += page.calls
            self._take(page)

    def page_by_page(self, resume: str | None) -> Iterator[str]:
        """Take the pages of the position's range; after each but the last, yield the key to continue from."""
        after, until = self._position.span()
        offset: str | None = _start_key(after, resume)
        while offset is not None:
            opened, offset = offset, None
            for page in list_pages(self._store, self._place, opened, endings=self._step.endings):
                self._step.calls += page.calls
                self._take(page)
                if not page.more:
                    return
                key = page.reached
                if until is not None and is_past(key, until):
                    return
                target = key_after_hidden_folder(key) or self._position.seek(key)
                offset = target if is_past(target, key) else None
                if offset is not None:
                    self._list_beside(key, offset)
                yield offset or key
                if offset is not None:
                    break

    def _take(self, page: ListPage) -> None:
        for key, fault in page.faults.items():
            if self._position.is_above(key):
                self._step.skipped.take_unreadable(key, fault)
        for meta in page.objects:
            path = meta["path"]
            if not path.endswith(self._step.endings) or is_hidden_path(path):
                if meta["size"] and self._position.is_above(path):
                    self._step.skipped.take(path)
                continue
            above, root = self._position.is_above(path), "/" not in path
            if (above or root) and not self._is_marker(meta):
                self._step.root_files |= root
                if above:
                    self._step.files.append(to_source_file(meta))

    def _list_beside(self, key: str, target: str) -> None:
        """Take the names that a jump over closed partitions passes: files beside them, and other folders."""
        folder = self._position.passed_folder(key, target)
        if folder is None:
            return
        if folder not in self._beside:
            self._beside[folder] = content = list_folder(self._store, self._place, folder)
            self._step.calls += content.calls
        content = self._beside[folder]
        passed = [meta for meta in content.objects if _between(meta["path"], key, target)]
        faults = {name: fault for name, fault in content.faults.items() if _between(name, key, target)}
        self._take(replace(content, objects=passed, faults=faults))
        for inner in content.folders:
            if not (is_hidden_path(inner) or self._position.may_be_jumped(inner)) and _between(
                inner, key, target
            ):
                self._walk_through(inner)

    def _walk_through(self, folder: str) -> None:
        """Take the whole contents of a folder."""
        for page in list_pages(self._store, self._place, "", folder):
            self._step.calls += page.calls
            self._take(page)

    def _is_marker(self, meta: ObjectMeta | ListedObject) -> bool:
        """Return whether this key stands for a folder: obstore drops the slash at its end."""
        return meta["size"] == 0 and head_object(self._store, self._place, meta["path"]) is None


def _start_key(after: str, resume: str | None) -> str:
    """Return the key to start after: where the earlier steps stopped, or the start of the range.

    A token of another form is only a lost short cut: the listing starts again. The range moves if the
    prefixes of a cold start do, at midnight; then the old key is only usable if every store lists it after
    the new start.
    """
    try:
        span_start, key = json.loads(resume or "")
    except (TypeError, ValueError):
        return after
    return str(key) if span_start == after or is_past(key, after) else after


def _between(path: str, key: str, target: str) -> bool:
    """Return whether a jump passes a path in either of the two orders.

    A path that it does not pass is listed a second time, which does no harm.
    """
    after = path > key or path.split("/") > key.split("/")
    return after and (path <= target or path.split("/") <= target.split("/"))


def head_object(store: ObjectStore, place: Place, path: str) -> SourceFile | None:
    """Return the current state of the object; None if there is none."""
    with store_failures(place):
        try:
            return to_source_file(store.head(path))
        except FileNotFoundError:
            return None


def to_source_file(meta: ObjectMeta | ListedObject) -> SourceFile:
    """Return a listed object as a source file.

    If a store has no etag, the modification time counts, in whole seconds, since HEAD gives no more.
    Quotes are removed: Azure writes them in HEAD but not in LIST.
    """
    modified = round(meta["last_modified"].timestamp() * 1000)
    version = (meta["e_tag"] or str(modified // 1000)).strip('"')
    return SourceFile(meta["path"], meta["size"], version, modified)
