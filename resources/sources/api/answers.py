"""Read one answer of an API completely, within its size and time limits, as JSON.

See docs/reference/apis.md, Failures.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from partitions.api.links import next_link
from partitions.api.retry_after import requested_pause
from partitions.errors import SourceError, shorten_to_line
from resources.connections.api import ApiConnection
from resources.sources.api.tokens import forget_token
from resources.sources.api.unpacking import Decompressor

if TYPE_CHECKING:
    import requests

_CHUNK = 1 << 16
_TRANSIENT_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})
_MAX_QUOTED_LETTERS = 300
"""The most characters of an answer that an error quotes."""


class TransientFailure(Exception):
    """A failure that a retry may cure; its text contains no secret.

    Attributes:
        pause: the seconds that the API asks to wait; None: it names none.
    """

    def __init__(self, text: str, pause: float | None = None) -> None:
        super().__init__(text)
        self.pause = pause


class Answer(NamedTuple):
    """An answer that was read to its end.

    Attributes:
        url: its address, after redirects.
        text: the body.
        is_lines: whether each line is a document.
        next_link: from its header ``Link``.
        headers: all headers, with case-insensitive names.
        is_empty: whether its status means that there are no records.
        proves_end: whether a cut connection would have been noticed.
    """

    url: str
    text: str
    is_lines: bool
    next_link: str | None
    headers: Mapping[str, str]
    is_empty: bool = False
    proves_end: bool = True


class AnswerReader:
    """A reader of one API's answers."""

    def __init__(self, connection: ApiConnection, max_bytes: int, timeout: timedelta) -> None:
        """Set the limits of one page: its uncompressed bytes, and its time."""
        self._connection, self._max_bytes, self._timeout = connection, max_bytes, timeout

    def read(
        self,
        response: requests.Response,
        where: str,
        deadline: float,
        *,
        ignored_statuses: Collection[int] = (),
        remedy: str | None = None,
    ) -> Answer:
        """Return an answer, read to its end.

        Args:
            response: its body is still unread.
            where: the page, for errors.
            deadline: when it must be complete, by the monotonic clock.
            ignored_statuses: HTTP statuses that mean that there are no records.
            remedy: what to do if the page is refused.

        Raises:
            TransientFailure: a retry may succeed.
            SourceError: the API refuses, or sends something other than JSON.
        """
        self._check_access(response, where)
        if response.status_code == 204 or response.status_code in ignored_statuses:
            return Answer(response.url, "", False, None, response.headers, is_empty=True)
        _check_retry(response, where)
        if response.status_code != 200:
            raise self._refusal(response, where, deadline, remedy)
        content_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if not _is_json(content_type):
            raise SourceError(
                f"{where}: expected JSON, found the content type {shorten_to_line(content_type, 100)}. Check base_url "
                "and path, and that the API accepts the credentials",
                code="source_content_type",
            )
        body = self._body(response, where, deadline, self._max_bytes)
        text = _decode(body, where, response.headers.get("Content-Encoding"))
        is_lines = "ndjson" in content_type or "jsonl" in content_type
        return Answer(
            response.url,
            text.removeprefix("\ufeff"),
            is_lines,
            next_link(response.headers.get("Link", "")),
            response.headers,
            proves_end=_proves_end(response),
        )

    def _check_access(self, response: requests.Response, where: str) -> None:
        """Note whether the access token is accepted; raise TransientFailure if it has expired."""
        if response.status_code == 401 and forget_token(self._connection):
            raise TransientFailure(f"{where}: expected access, found HTTP 401: the token has expired")
        if response.status_code < 400:
            self._connection.access_token.is_accepted = True

    def _body(self, response: requests.Response, where: str, deadline: float, max_bytes: int) -> bytes:
        """Return a complete body within the limits: a server may send forever, or a byte at a time."""
        chunks: list[bytes] = []
        size, unpacking = 0, Decompressor(response.headers.get("Content-Encoding", ""))
        while compressed := response.raw.read1(_CHUNK, decode_content=False):
            chunk = unpacking.add(compressed)
            chunks.append(chunk)
            size += len(chunk)
            if size > max_bytes:
                raise SourceError(
                    f"{where}: expected a page of at most {max_bytes} bytes (max_page_bytes), found more. Ask for smaller "
                    "pages (paging.size), or raise max_page_bytes",
                    code="source_page_too_large",
                )
            if time.monotonic() > deadline:
                raise TransientFailure(
                    f"{where}: expected a whole page within {self._timeout.total_seconds():g} s, received {size} bytes and "
                    "no end"
                )
        missing = response.raw.length_remaining
        if missing:
            raise TransientFailure(
                f"{where}: expected a whole page, found one that ends {missing} bytes too early"
            )
        unpacking.end()
        return b"".join(chunks)

    def _refusal(
        self, response: requests.Response, where: str, deadline: float, remedy: str | None
    ) -> SourceError:
        status = response.status_code
        try:
            text = self._body(response, where, deadline, 1 << 20).decode(errors="replace")
        except Exception:  # noqa: BLE001 - the status says enough
            text = ""
        shown_text = self._connection.hide(shorten_to_line(text, _MAX_QUOTED_LETTERS))
        answer = f"HTTP {status}{f': {shown_text}' if shown_text else ''}".rstrip(".")
        if status in (401, 403, 407):
            return SourceError(
                f"{where}: expected access, found {answer}. Correct the credentials of its connection in platform.yaml",
                code="source_denied",
            )
        if status in (404, 410):
            return SourceError(
                f"{where}: expected a resource, found {answer}. {remedy or 'Correct source.path, or base_url of its connection'}",
                code="source_missing",
            )
        return SourceError(
            f"{where}: expected a page, found {answer}. {remedy or 'Correct path, params or body of the source'}",
            code="source_refused",
        )


def _check_retry(response: requests.Response, where: str) -> None:
    """Raise TransientFailure if the status says that a retry may succeed."""
    status = response.status_code
    pause = requested_pause(status, response.headers, datetime.now(UTC))
    if status in _TRANSIENT_STATUSES or (status == 403 and pause is not None):
        wait_notice = f", and asks to wait {_format_pause(pause)}" if pause is not None else ""
        raise TransientFailure(f"{where}: expected a page, found HTTP {status}{wait_notice}", pause)


def _decode(body: bytes, where: str, compressed: str | None) -> str:
    """Return a body's text; ``compressed`` is the header ``Content-Encoding``."""
    try:
        return body.decode(json.detect_encoding(body))
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{where}: expected JSON in UTF-8, found an invalid byte at position {error.start + 1}. Ask the API's "
            "owner to send UTF-8, which JSON requires"
            if compressed is None
            else f"{where}: expected a body that is uncompressed or compressed by gzip or deflate, as requested, found "
            f"one compressed by {shorten_to_line(compressed, 100)}. Make the API, or the proxy in front of it, "
            "respect Accept-Encoding",
            code="source_answer",
        ) from None


def _proves_end(response: requests.Response) -> bool:
    """Return whether the end of a body is certain: it has a length, chunks or compression.

    Any other body ends wherever its connection does.
    """
    compressed = Decompressor(response.headers.get("Content-Encoding", "")).proves_end
    return compressed or "Content-Length" in response.headers or bool(getattr(response.raw, "chunked", False))


def _is_json(content_type: str) -> bool:
    """Return whether a content type may be JSON; the parser decides about plain text and missing types."""
    return (
        content_type in ("", "text/plain", "text/json", "application/octet-stream") or "json" in content_type
    )


def _format_pause(seconds: float) -> str:
    """Return a pause in words, with its end if it is a second or more."""
    if seconds < 1:
        return f"{seconds:g} s"
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ceil(seconds))
    return f"{ceil(seconds)} s, until {until:%Y-%m-%d %H:%M:%S} UTC"
