"""Turn failures of a listing into errors that show a user whom to ask.

See docs/reference/cli.md, exit codes. ``resources.connections.object_store_errors`` classifies failures of
an object store; here they become errors of a source.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from partitions.errors import SourceError, SourceMissing, SourceUnreachable
from resources.connections.object_store_errors import StoreErrorKind, StoreFailure, store_failure

_CODES = {
    StoreErrorKind.BAD_NAME: "source_bad_name",
    StoreErrorKind.DENIED: "source_denied",
    StoreErrorKind.REFUSED: "source_unreadable",
}


@contextmanager
def store_failures(place: object) -> Iterator[None]:
    """Turn obstore's errors into errors of the source.

    Raises:
        SourceError: with a code that ``resources.listing.list_above`` names.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise _error_of(place, store_failure(place, error)) from None


def _error_of(place: object, failure: StoreFailure) -> SourceError:
    message = f"{place}: {failure}"
    if failure.transient:
        return SourceUnreachable(message)
    if failure.kind is StoreErrorKind.MISSING:
        return SourceMissing(f"{place}: {failure.summary}", failure.todo)
    return SourceError(message, code=_CODES[failure.kind])


def folder_failure(folder: str, root: str, error: OSError) -> SourceError:
    """Return the error for a folder that cannot be listed.

    Args:
        folder: relative to the root; ``""`` is the root itself.
        root: the root of the listing, for the message.
        error: the system's error.
    """
    where = f"{root}/{folder}" if folder else root
    match error:
        case FileNotFoundError() if folder:
            return SourceUnreachable(
                f"{where}: the folder vanished while it was being listed; nothing of this listing is used",
                code="source_moved",
            )
        case FileNotFoundError():
            return SourceMissing(f"{where}: expected a folder, found none", "Create it, or correct the path")
        case NotADirectoryError():
            return SourceError(f"{where}: expected a folder, found something else", code="source_not_folder")
        case PermissionError():
            return SourceError(
                f"{where}: not allowed to list or read it. Check owner and mode", code="source_denied"
            )
        case _:
            return SourceError(
                f"{where}: cannot be listed: {error.strerror or type(error).__name__}",
                code="source_unreadable",
            )
