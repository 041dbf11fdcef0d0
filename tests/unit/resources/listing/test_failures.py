from __future__ import annotations

import socket

import pytest
from obstore.exceptions import (
    BaseError,
    GenericError,
    InvalidPathError,
    PermissionDeniedError,
    UnauthenticatedError,
)

from partitions.errors import SourceError
from partitions.path.listing_positions import FromBeginning
from resources.connections.places import Place, S3Connection
from resources.listing import list_above
from resources.listing.failures import folder_failure, store_failures

_REQUEST = "Generic S3 error: Error performing list request: Error performing GET http://user:word@host/b?list-type=2 in 2ms"


def _answer(status: int, code: str) -> str:
    return f"{_REQUEST} - Server returned non-2xx status code: {status} X: <Error><Code>{code}</Code><Message>m</Message></Error>"


@pytest.mark.parametrize(
    ("error", "code", "transient"),
    [
        (GenericError(_answer(404, "NoSuchBucket")), "source_missing", False),
        (FileNotFoundError("Object at location x not found"), "source_missing", False),
        (GenericError(_answer(403, "SignatureDoesNotMatch")), "source_denied", False),
        (GenericError(_answer(400, "ExpiredToken")), "source_denied", False),
        (GenericError(f"{_REQUEST} PUT http://169.254.169.254/latest/api/token: HTTP error"), "source_denied", False),
        (PermissionDeniedError("lacked the privileges"), "source_denied", False),
        (UnauthenticatedError("no"), "source_denied", False),
        (GenericError(_answer(400, "AuthorizationHeaderMalformed")), "source_unreadable", False),
        (GenericError(_answer(301, "PermanentRedirect")), "source_unreadable", False),
        (GenericError(_answer(429, "SlowDown")), "source_unreachable", True),
        (GenericError(_answer(503, "SlowDown")), "source_unreachable", True),
        (GenericError(f"{_REQUEST}, after 4 retries - HTTP error: error sending request"), "source_unreachable", True),
        (InvalidPathError('Error parsing Path "a\nb": Encountered illegal'), "source_bad_name", False),
        (ValueError('Could not parse path: Path "a//b" contained empty path segment'), "source_bad_name", False),
    ],
)  # fmt: skip
def test_store_failures_show_no_request(error: BaseError | Exception, code: str, transient: bool) -> None:
    with pytest.raises(SourceError) as caught, store_failures("s3://b/p"):
        raise error
    assert (caught.value.code, caught.value.transient) == (code, transient)
    assert caught.value.message.startswith("s3://b/p: ")
    assert "http" not in caught.value.message
    assert "word" not in caught.value.message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("folder", "error", "code", "transient"),
    [
        ("", FileNotFoundError(), "source_missing", False),
        ("a", FileNotFoundError(), "source_moved", True),
        ("", NotADirectoryError(), "source_not_folder", False),
        ("a", PermissionError(), "source_denied", False),
        ("a", OSError(5, "Input/output error"), "source_unreadable", False),
    ],
)
def test_failures_of_a_folder_are_told_apart(folder: str, error: OSError, code: str, transient: bool) -> None:
    failure = folder_failure(folder, "/landing", error)
    assert (failure.code, failure.transient) == (code, transient)
    assert failure.message.startswith(f"/landing/{folder}" if folder else "/landing")


def test_an_endpoint_that_does_not_answer_is_told_apart() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        place = Place("s3://bucket", S3Connection(f"http://127.0.0.1:{port}", "us-east-1", "key", "secret"))
        with pytest.raises(SourceError) as caught:
            list_above(place, FromBeginning(), (".json",))
    assert (caught.value.code, caught.value.transient) == ("source_unreachable", True)
