"""Read one answer of an API: whole, within its size and time, as JSON (docs/reference/apis.md, Failures)."""

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
from resources.sources.api.unpacking import Unpacking

if TYPE_CHECKING:
    import requests

_CHUNK = 1 << 16
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_QUOTED = 300
"""Characters of an answer that an error quotes."""


class PassingFailure(Exception):
    """What may be gone the next time. Its text shows no secret.

    Attributes:
        pause: seconds that the API asks to wait; None: it names none.
    """

    def __init__(self, text: str, pause: float | None = None) -> None:
        super().__init__(text)
        self.pause = pause


class Answer(NamedTuple):
    """An answer that was read to its end.

    Attributes:
        url: that gave it, after redirects.
        text: of its body.
        is_lines: whether each line is a document.
        next_link: of its header ``Link``.
        headers: all of them, whatever their case.
        is_empty: whether it says by its status that there is nothing.
        proves_end: whether it was sent so that a connection that is cut would show.
    """

    url: str
    text: str
    is_lines: bool
    next_link: str | None
    headers: Mapping[str, str]
    is_empty: bool = False
    proves_end: bool = True


class AnswerReader:
    """Reads answers of one API."""

    def __init__(self, connection: ApiConnection, max_bytes: int, timeout: timedelta) -> None:
        """Set the limits of one page: bytes, unpacked, and the time that it may take."""
        self._connection, self._max_bytes, self._timeout = connection, max_bytes, timeout

    def read(
        self,
        response: requests.Response,
        where: str,
        deadline: float,
        *,
        ignored: Collection[int] = (),
        remedy: str | None = None,
    ) -> Answer:
        """Return an answer that was read to its end.

        Args:
            response: whose body is not read yet.
            where: which page it is, for errors.
            deadline: until when it must be here whole, by the monotonic clock.
            ignored: statuses that mean that there is nothing.
            remedy: what to do if the page is refused.

        Raises:
            PassingFailure: it may be another one the next time.
            SourceError: the API refuses, or sends something else than JSON.
        """
        status = response.status_code
        if status == 401 and forget_token(self._connection):
            raise PassingFailure(f"{where}: expected to be let in, found HTTP 401: the token has ended")
        if status < 400:
            self._connection.access_token.is_accepted = True
        if status == 204 or status in ignored:
            return Answer(response.url, "", False, None, response.headers, is_empty=True)
        pause = requested_pause(status, response.headers, datetime.now(UTC))
        if status in _PASSING or (status == 403 and pause is not None):
            wait_notice = f", which asks to wait {_shown_pause(pause)}" if pause is not None else ""
            raise PassingFailure(f"{where}: expected a page, found HTTP {status}{wait_notice}", pause)
        if status != 200:
            raise self._refused(response, where, deadline, remedy)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if not _is_json(kind):
            raise SourceError(
                f"{where}: expected JSON, found an answer of type {shorten_to_line(kind, 100)}. Check base_url and path, and that credentials are accepted",
                code="source_content_type",
            )
        body = self._body(response, where, deadline, self._max_bytes)
        try:
            text = body.decode(json.detect_encoding(body))
        except UnicodeDecodeError as error:
            packed = response.headers.get("Content-Encoding")
            raise SourceError(
                f"{where}: expected JSON in UTF-8, found bytes that are none at byte {error.start + 1}. The API has to send UTF-8, as JSON says"
                if packed is None
                else f"{where}: expected a body packed by gzip or deflate, or not packed, as was asked for, found one that is packed by"
                f" {shorten_to_line(packed, 100)}. Have the API, or the proxy in front of it, heed Accept-Encoding",
                code="source_answer",
            ) from None
        is_lines = "ndjson" in kind or "jsonl" in kind
        return Answer(
            response.url,
            text.removeprefix("\ufeff"),
            is_lines,
            next_link(response.headers.get("Link", "")),
            response.headers,
            proves_end=_proves_end(response),
        )

    def _body(self, response: requests.Response, where: str, deadline: float, most: int) -> bytes:
        """All of an answer. A server may send for ever, or a byte at a time."""
        chunks: list[bytes] = []
        size, unpacking = 0, Unpacking(response.headers.get("Content-Encoding", ""))
        while packed := response.raw.read1(_CHUNK, decode_content=False):
            chunk = unpacking.add(packed)
            chunks.append(chunk)
            size += len(chunk)
            if size > most:
                raise SourceError(
                    f"{where}: expected a page of at most {most} bytes (max_page_bytes), found more. Ask for smaller pages (paging.size), or raise it",
                    code="source_page_too_large",
                )
            if time.monotonic() > deadline:
                raise PassingFailure(
                    f"{where}: expected a whole page within {self._timeout.total_seconds():g} s, found {size} bytes and no end"
                )
        missing = response.raw.length_remaining
        if missing:
            raise PassingFailure(f"{where}: expected a whole page, found one that lacks {missing} bytes")
        unpacking.end()
        return b"".join(chunks)

    def _refused(
        self, response: requests.Response, where: str, deadline: float, remedy: str | None
    ) -> SourceError:
        status = response.status_code
        try:
            text = self._body(response, where, deadline, 1 << 20).decode(errors="replace")
        except Exception:  # noqa: BLE001 - the status says enough
            text = ""
        shown_text = self._connection.hide(shorten_to_line(text, _QUOTED))
        answer = f"HTTP {status}{f': {shown_text}' if shown_text else ''}".rstrip(".")
        if status in (401, 403, 407):
            return SourceError(
                f"{where}: expected to be let in, found {answer}. Correct the credentials of its connection in platform.yaml",
                code="source_denied",
            )
        if status in (404, 410):
            return SourceError(
                f"{where}: expected something there, found {answer}. {remedy or 'Correct source.path, or base_url of its connection'}",
                code="source_missing",
            )
        return SourceError(
            f"{where}: expected a page, found {answer}. {remedy or 'Correct path, params or body of the source'}",
            code="source_refused",
        )


def _proves_end(response: requests.Response) -> bool:
    """Whether a body that was read to its end has a length, ends with an empty chunk, or is packed; else it ends where the connection does."""
    packed = Unpacking(response.headers.get("Content-Encoding", "")).proves_end
    return packed or "Content-Length" in response.headers or bool(getattr(response.raw, "chunked", False))


def _is_json(kind: str) -> bool:
    """Whether a type may hold JSON; that of an answer without one, or of plain text, is for the parser to say."""
    return kind in ("", "text/plain", "text/json", "application/octet-stream") or "json" in kind


def _shown_pause(seconds: float) -> str:
    """How long to wait, and until when if that is not at once."""
    if seconds < 1:
        return f"{seconds:g} s"
    until = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ceil(seconds))
    return f"{ceil(seconds)} s, until {until:%Y-%m-%d %H:%M:%S} UTC"
