"""LIST calls of an object store, page by page, including keys that are no paths.

obstore lists fast, but fails on a page with a key that is no path (``a//b``, a control character). boto3,
which accepts any key, then lists that page again; its paths are kept, and obstore continues after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

from partitions.errors import SourceError, SourceUnreachable
from partitions.path.order import key_before
from partitions.path.skipped import fault_of_key
from resources.connections.places import Place, S3Connection
from resources.listing.failures import store_failures

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ObjectStore

PAGE = 1000
"""The most keys of one LIST call; obstore requests the next page only when this one was consumed."""

_REPLACED = "\ufffd"
"""The character that a store writes for one that XML cannot hold."""


class ListedObject(TypedDict):
    """An object in a LIST response."""

    path: str
    size: int
    last_modified: datetime
    e_tag: str | None


@dataclass(frozen=True)
class ListPage:
    """The response to one LIST call.

    Attributes:
        objects: objects whose keys are paths.
        more: whether the store has more keys.
        reached: the key to continue from; "" for an empty page.
        faults: by key, why it is no path. A key that ends in a slash stands for a folder, and is left out
        unless it has contents.
        folders: for a listing of one folder alone: its folders.
        calls: number of LIST calls.
    """

    objects: Sequence[ObjectMeta | ListedObject]
    more: bool
    reached: str
    faults: Mapping[str, str]
    folders: Sequence[str] = ()
    calls: int = 1


def list_pages(
    store: ObjectStore, place: Place, offset: str, folder: str = "", endings: tuple[str, ...] = ()
) -> Iterator[ListPage]:
    """Yield the keys after an offset, or of a folder, page by page; at least one page, even if empty.

    Each page is one LIST call.

    Raises:
        SourceError: as in ``resources.listing.list_above``.
    """
    while True:
        try:
            for page in _plain_pages(store, place, offset, folder, endings):
                yield page
                offset = page.reached
        except SourceError as error:
            if error.code != "source_bad_name" or place.bucket is None:
                raise
        else:
            return
        page = _any_page(place, offset, folder)
        yield page
        if not page.more:
            return
        offset = page.reached


def list_folder(store: ObjectStore, place: Place, folder: str) -> ListPage:
    """List one folder, without the contents of its folders."""
    try:
        with store_failures(place):
            content = store.list_with_delimiter(folder or None)
        objects, folders = content["objects"], content["common_prefixes"]
        if not any(_REPLACED in path for path in [*folders, *(meta["path"] for meta in objects)]):
            calls = max(1, -(-(len(objects) + len(folders)) // PAGE))
            return ListPage(objects, False, "", {}, folders, calls)
    except SourceError as error:
        if error.code != "source_bad_name" or place.bucket is None:
            raise
    page, folder_pages = _any_page(place, "", folder, delimiter="/"), list[ListPage]()
    while True:
        folder_pages.append(page)
        if not page.more:
            break
        page = _any_page(place, page.reached, folder, delimiter="/")
    return ListPage(
        [meta for page_ in folder_pages for meta in page_.objects],
        False,
        "",
        {key: fault for page_ in folder_pages for key, fault in page_.faults.items()},
        [path for page_ in folder_pages for path in page_.folders],
        sum(page_.calls for page_ in folder_pages),
    )


def _plain_pages(
    store: ObjectStore, place: Place, offset: str, folder: str, endings: tuple[str, ...]
) -> Iterator[ListPage]:
    """Yield obstore's pages.

    Raises:
        SourceError: ``source_bad_name``: the next page has a key that is no path.
    """
    with store_failures(place):
        stream = iter(store.list(folder or None, offset=offset or None, chunk_size=PAGE))
    first = True
    while True:
        with store_failures(place):
            metas: Sequence[ObjectMeta] = next(stream, ())
        if not metas and not first:
            return
        if any(_REPLACED in meta["path"] for meta in metas) or (
            first and not offset and _begins_with_a_slash(store, place, folder, metas)
        ):
            raise SourceError(f"{place}: a key is not a valid path", code="source_bad_name")
        yield ListPage(metas, len(metas) == PAGE, _reached(metas[-1], endings) if metas else "", {})
        if len(metas) < PAGE:
            return
        first = False


def _begins_with_a_slash(store: ObjectStore, place: Place, folder: str, metas: Sequence[ObjectMeta]) -> bool:
    """Return whether the first keys of a bucket may start with a slash, which obstore drops.

    Then no object exists under the shortened key.
    """
    if folder or place.bucket is None or place.url != f"s3://{place.bucket}":
        return False
    index_of_slash = next((index for index, meta in enumerate(metas) if meta["path"] > "/"), len(metas))
    # Keys that begin with a slash stand here; without it the last or the first of them does.
    for meta in metas[max(0, index_of_slash - 1) : index_of_slash + 1]:
        with store_failures(place):
            try:
                if meta["size"]:
                    store.head(meta["path"])
            except FileNotFoundError:
                return True
    return False


def _reached(last: ObjectMeta, endings: tuple[str, ...]) -> str:
    """Return the key to continue from.

    After a folder's own key SeaweedFS skips the folder's contents, and obstore drops the slash at its end.
    """
    path = last["path"]
    return path if last["size"] or (endings and path.endswith(endings)) else key_before(path)


def _any_page(place: Place, offset: str, folder: str, delimiter: str = "") -> ListPage:
    """Ask S3 for a page, whatever its keys are."""
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, prefix = place.bucket or "", place.url.removeprefix(f"s3://{place.bucket}").strip("/")
    root = f"{prefix}/" if prefix else ""
    within = f"{root}{folder}/" if folder else root
    try:
        answer: Mapping[str, Any] = _client(place.connection).list_objects_v2(
            Bucket=bucket,
            Prefix=within,
            Delimiter=delimiter,
            StartAfter=f"{root}{offset}" if offset else "",
            MaxKeys=PAGE,
        )
    except (BotoCoreError, ClientError) as error:
        raise SourceUnreachable(
            f"{place}: the store did not list the keys that are not valid paths ({error}). Try again later"
        ) from None
    objects, faults, key = list[ListedObject](), dict[str, str](), ""
    for item in answer.get("Contents", ()):
        key = str(item["Key"])[len(root) :]
        if key.endswith("/") and not item["Size"]:
            continue  # a folder's own key
        if fault := fault_of_key(key):
            faults[key] = f"the key has {fault}, which no path can have"
            continue
        objects.append(
            ListedObject(
                path=key,
                size=int(item["Size"]),
                last_modified=item["LastModified"],
                e_tag=item.get("ETag"),
            )
        )
    folders = [str(folder_path["Prefix"])[len(root) : -1] for folder_path in answer.get("CommonPrefixes", ())]
    last = max([key, *(f"{folder_path}/" for folder_path in folders)], default="")
    reached = key_before(last) if last.endswith("/") and not delimiter else last
    if delimiter and last.endswith("/"):
        reached = f"{last}\U0010ffff"
    sound = [folder_path for folder_path in folders if fault_of_key(folder_path) is None]
    calls = 1 if fault_of_key(offset or "a") else 2  # obstore asked before, unless it cannot start there
    return ListPage(objects, bool(answer.get("IsTruncated")), reached, faults, sound, calls)


@cache
def _client(connection: S3Connection | None) -> Any:
    """Return a boto3 client, which takes missing settings from the standard AWS_* variables."""
    import boto3
    from botocore.config import Config

    settings = connection or S3Connection()
    return boto3.client(
        "s3",
        endpoint_url=settings.endpoint,
        region_name=settings.region,
        aws_access_key_id=settings.access_key_id,
        aws_secret_access_key=settings.secret_access_key,
        aws_session_token=settings.session_token,
        config=Config(
            s3={"addressing_style": "path" if settings.endpoint else "auto"},
            connect_timeout=5,
            read_timeout=20,
            retries={"total_max_attempts": 4, "mode": "standard"},
        ),
    )
