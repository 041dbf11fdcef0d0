"""What went wrong with a source, told apart so that a user knows whom to ask (spec 09, Exit codes).

Messages hold the place, the class of the failure and the store's own error code. They never hold the text of a request
or a URL, which is why the store's error is not chained to ours either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from partitions.errors import SourceError, SourceUnreachable

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_PATH = re.compile(r'[Pp]ath "(.*?)"(?::| contained)', re.DOTALL)
_NO_CREDENTIALS = re.compile(r"169\.254\.169\.254|169\.254\.170\.2|metadata\.google|[Cc]redential")
_DENIED = re.compile(r"ExpiredToken|InvalidToken|TokenRefreshRequired|AccessDenied|AuthFailure")

_BUSY = ("408", "429")


@contextmanager
def store_failures(place: object) -> Iterator[None]:
    """Turn what obstore raises into one of our errors.

    Raises:
        SourceError: with the code that ``resources.listing.list_above`` names.
    """
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise _told_apart(place, error) from None


def _told_apart(place: object, error: Exception) -> SourceError:
    text = str(error)
    kind = type(error).__name__
    status, code = (found[1] if (found := pattern.search(text)) else "" for pattern in (_STATUS, _CODE))
    said = f"{kind}{f', HTTP {status}' if status else ''}{f', {code}' if code else ''}"
    if kind == "InvalidPathError" or isinstance(error, ValueError):
        name = found[1] if (found := _PATH.search(text)) else text.splitlines()[0][:200]
        return SourceError(
            f"{place}: a key cannot be represented: {name!r}. Expected names without control characters and without empty,"
            " . or .. components; rename or remove the object",
            code="source_bad_name",
        )
    if _NO_CREDENTIALS.search(text):
        return _denied(place, f"{said}: found no credentials")
    if (
        status in ("401", "403")
        or _DENIED.search(code)
        or kind in ("PermissionDeniedError", "UnauthenticatedError")
    ):
        return _denied(place, said)
    if isinstance(error, FileNotFoundError) or status == "404":
        return SourceError(
            f"{place}: expected a bucket, found none ({said}). Make it, or correct the name",
            code="source_missing",
        )
    if status.startswith(("3", "4")) and status not in _BUSY:
        return SourceError(
            f"{place}: the store refuses to list ({said}). Check endpoint and region",
            code="source_unreadable",
        )
    return SourceUnreachable(f"{place}: no usable answer ({said}). Check the endpoint, or try again later")


def _denied(place: object, said: str) -> SourceError:
    return SourceError(
        f"{place}: not allowed to list or read ({said}). Check key, secret and policy", code="source_denied"
    )


def folder_failure(folder: str, root: str, error: OSError) -> SourceError:
    """Tell apart why a folder did not list.

    Args:
        folder: relative to the root; ``""`` is the root itself.
        root: for the message.
        error: what the system said.
    """
    where = f"{root}/{folder}" if folder else root
    match error:
        case FileNotFoundError() if folder:
            return SourceUnreachable(
                f"{where}: the folder vanished while it was being listed; nothing of this listing is used",
                code="source_moved",
            )
        case FileNotFoundError():
            return SourceError(
                f"{where}: expected a folder, found none. Make it, or correct the path", code="source_missing"
            )
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
