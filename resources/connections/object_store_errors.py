"""Classify failures of an object store, for the source, the watermark store and the lake alike.

A failure gives its place, its cause in the words of the store or the network, and what to do. It leaves
out the text of a request and its URL. For the same reason callers never chain a store's error: an address
may contain a password.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from partitions.errors import shorten_to_line
from resources.connections.not_a_store import NotAStoreError
from resources.connections.places import Place

_STATUS = re.compile(r"status code(?:: |\s+\W*)(\d{3})")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_PATH = re.compile(r'[Pp]ath "(.*?)"(?::| contained)', re.DOTALL)
_NO_CREDENTIALS = re.compile(r"169\.254\.169\.254|169\.254\.170\.2|metadata\.google|[Cc]redential")
_DENIED = re.compile(r"ExpiredToken|InvalidToken|TokenRefreshRequired|AccessDenied|AuthFailure")
_SYSTEM = re.compile(r'\b(?:message|error): "([^"]+)"')
"""The system's message within obstore's error text."""
_TIMEOUT = re.compile(r"kind: Timeout|TimedOut|timed out")
_TREE = re.compile(r"(?:\x1b\[\d+m)*↳(?:\x1b\[\d+m)*")
_OS_ERROR = re.compile(r" \(os error \d+\)$")
_URL = re.compile(r"https?://\S+")
_BUSY = ("408", "429")
_S3A_ANSWER = re.compile(r"([^\n:]*?) \(Service: S3, Status Code: (\d{3})")
_S3A_SILENT = re.compile(
    r"Unable to execute HTTP request[^\n]*?(?=:\s{2,}|\n|$)|(?:Connect|UnknownHost|SocketTimeout)Exception: [^\n]*s3[^\n]*"
)
_S3A_PLACE = re.compile(r"s3a://([^\s:'`]+)")
_AGAIN = "Check the endpoint and that the store runs, or try again later"
_CORRECT = "Create it, or correct the name"


class StoreErrorKind(Enum):
    """The class of a failure."""

    BAD_NAME = "bad_name"
    DENIED = "denied"
    MISSING = "missing"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class StoreFailure:
    """One failure.

    Attributes:
        summary: the event and its cause.
        todo: what to do about it.
    """

    kind: StoreErrorKind
    summary: str
    todo: str

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed later."""
        return self.kind is StoreErrorKind.UNREACHABLE

    def __str__(self) -> str:
        """Return the summary and what to do."""
        return f"{self.summary}. {self.todo}"


def store_failure(place: object, error: Exception) -> StoreFailure:
    """Classify an error of obstore or deltalake at a place of an object store."""
    text = str(error)
    if isinstance(error, NotAStoreError):
        return StoreFailure(
            StoreErrorKind.UNREACHABLE, f"no usable answer{_endpoint(place)} ({text})", _AGAIN
        )
    status, code, message = (
        match[1] if (match := pattern.search(text)) else "" for pattern in (_STATUS, _CODE, _MESSAGE)
    )
    status = status or _status_of(error, code)
    cause = _cause_of(error, status, code, message)
    if type(error).__name__ == "InvalidPathError" or isinstance(error, ValueError):
        name = match[1] if (match := _PATH.search(text)) else shorten_to_line(text)
        return StoreFailure(
            StoreErrorKind.BAD_NAME,
            f"the key {name!r} is not a valid path",
            "Expected names without control characters and without empty, . or .. components; rename or remove the object",
        )
    if _NO_CREDENTIALS.search(text):
        return _denied(f"found no credentials ({cause})")
    if status in ("401", "403") or _DENIED.search(code):
        return _denied(cause)
    if isinstance(error, FileNotFoundError) or status == "404":
        missing_thing = "an object" if code == "NoSuchKey" else "a bucket"
        todo = "It existed a moment ago: try again" if code == "NoSuchKey" else _CORRECT
        return StoreFailure(StoreErrorKind.MISSING, f"expected {missing_thing}, found none ({cause})", todo)
    if status.startswith(("3", "4")) and status not in _BUSY:
        return StoreFailure(
            StoreErrorKind.REFUSED, f"the store refuses ({cause})", "Check endpoint and region"
        )
    return StoreFailure(
        StoreErrorKind.UNREACHABLE,
        f"no usable answer{_endpoint(place)} ({cause})",
        _AGAIN,
    )


def spark_failure(text: str) -> tuple[str, StoreFailure] | None:
    """Return place and failure from Spark's text about an object store, or None for other texts."""
    answered, silent = _S3A_ANSWER.search(text), _S3A_SILENT.search(text)
    if not answered and not silent:
        return None
    place = _S3A_PLACE.search(text)
    where = f"s3://{place[1].rstrip('.')}" if place else "the store"
    if answered is None:
        cause = shorten_to_line(silent[0] if silent else "").rstrip(".")
        return where, StoreFailure(StoreErrorKind.UNREACHABLE, f"no usable answer ({cause})", _AGAIN)
    cause, status = f"HTTP {answered[2]}: {shorten_to_line(answered[1]).rstrip('.')}", answered[2]
    if status in ("401", "403"):
        return where, _denied(cause)
    if "NoSuchBucket" in text:
        return where, StoreFailure(
            StoreErrorKind.MISSING, f"expected a bucket, found none ({cause})", _CORRECT
        )
    if status.startswith("4") and status not in _BUSY:
        return where, StoreFailure(
            StoreErrorKind.REFUSED, f"the store refuses ({cause})", "Check endpoint and region"
        )
    return where, StoreFailure(StoreErrorKind.UNREACHABLE, f"no usable answer ({cause})", _AGAIN)


def is_missing_bucket(error: Exception) -> bool:
    """Return whether an object is missing because its bucket is."""
    return "NoSuchBucket" in str(error)


def _denied(cause: str) -> StoreFailure:
    return StoreFailure(
        StoreErrorKind.DENIED,
        f"not allowed to list, read or write ({cause})",
        "Check key, secret and policy, of its connection in platform.yaml or of the AWS_* variables",
    )


def _status_of(error: Exception, code: str) -> str:
    """Return the HTTP status that an error class stands for."""
    if type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        return "403"
    if "lacked the necessary privileges" in str(error) or code in (
        "SignatureDoesNotMatch",
        "InvalidAccessKeyId",
    ):
        return "403"
    return "404" if code == "NoSuchBucket" else ""


def _cause_of(error: Exception, status: str, code: str, message: str) -> str:
    """Return the cause: the store's answer, or why there was none."""
    text = str(error)
    answered = [f"HTTP {status}" if status else "", code]
    if any(answered):
        answer = ", ".join(filter(None, answered))
        return f"{answer}: {_URL.sub('…', shorten_to_line(message)).rstrip('.')}" if message else answer
    if causes := _SYSTEM.findall(text):
        return str(causes[-1])
    if _TIMEOUT.search(text):
        return "timed out"
    tree = [shorten_to_line(part) for part in _TREE.split(text)]
    return _OS_ERROR.sub("", _URL.sub("…", tree[-1])) if len(tree) > 1 else type(error).__name__


def _endpoint(place: object) -> str:
    """Return the endpoint from the project's settings, in words; such an endpoint contains no password."""
    connection = place.connection if isinstance(place, Place) else None
    return f" from {connection.endpoint}" if connection and connection.endpoint else ""
