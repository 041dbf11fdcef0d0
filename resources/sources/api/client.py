"""Fetch single pages of an API, with limits on time and size, and with retries.

No text from this module contains a secret: the connection masks addresses, and errors of the HTTP library
are not kept. See docs/reference/apis.md, Failures.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar
from urllib.parse import parse_qsl, urljoin, urlsplit

from partitions.api.document import DocumentError
from partitions.api.paging import Position
from partitions.api.requests import ApiRequest
from partitions.api.values import as_json
from partitions.errors import SourceError, SourceUnreachable
from resources.background import in_background
from resources.connections.api import ApiConnection
from resources.retries import retry_attempts
from resources.sources.api.answers import Answer, AnswerReader, TransientFailure
from resources.sources.api.no_answer import describe_connection_failure, untrusted_server_error
from resources.sources.api.tokens import TransientRefusal, bearer_token
from resources.sources.api.unpacking import NotCompressed

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

_CONNECT_SECONDS = 10.0
_SENDING_SECONDS = 0.001
"""How long sending a prepared request takes."""
_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})


class PageRequest(NamedTuple):
    """A page to request.

    Attributes:
        request: the request that returns the page.
        position: the page's position; its parameters are in the request.
        number: the page's number, from 1, for errors.
        ignored_statuses: HTTP statuses that mean that there are no records.
        remedy: what to do if the API refuses the page; None: the remedy for any page.
        is_past_end: whether the page comes after page ``number`` and is only inspected to prove the end.
    """

    request: ApiRequest
    position: Position
    number: int
    ignored_statuses: Collection[int] = ()
    remedy: str | None = None
    is_past_end: bool = False


@dataclass(frozen=True)
class PrefetchedPage(Generic[T]):
    """A page that was requested once, in the background.

    Attributes:
        page: the page.
        read: converts the answer.
        answer: the future result of ``read``.
    """

    page: PageRequest
    read: Callable[[Answer], T]
    answer: Future[T]


class ApiClient:
    """A client of one API that keeps connections open and sends one request at a time.

    Use it as a context.
    """

    def __init__(
        self,
        connection: ApiConnection,
        max_page_bytes: int,
        *,
        retry_for: timedelta | None = None,
        without_retries: bool = False,
    ) -> None:
        """Configure the client, without opening anything yet.

        Args:
            connection: how to reach the API.
            max_page_bytes: the largest page, uncompressed.
            retry_for: the longest time for one page, including retries; None: the connection's.
            without_retries: whether each page is requested only once.
        """
        import requests

        _silence_address_logs()
        self.connection = connection
        self._retry_for = min(retry_for or connection.retry_for, connection.retry_for)
        self._attempts = 1 if without_retries else None
        self._timeout = min(retry_for or connection.timeout, connection.timeout)
        self._answers = AnswerReader(connection, max_page_bytes, self._timeout)
        self._session = requests.Session()
        self._session.headers["Accept-Encoding"] = "gzip, deflate"  # both mark the end of a body
        self._session.headers.update(connection.sent_headers)
        # Else a .netrc file of the machine would override the connection.
        self._session.auth = lambda request: request
        self._pending: Future[Any] | None = None

    def __enter__(self) -> Self:
        """Open nothing yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the pending request, unless the process is ending, and close the connections."""
        if kind is None or issubclass(kind, Exception):
            self._await_pending()
        self._session.close()

    def fetch(self, page: PageRequest, read: Callable[[Answer], T]) -> T:
        """Return what ``read`` makes of a page, after waiting for the pending request.

        Args:
            page: the page.
            read: raises DocumentError for an unexpected answer; a truncated one is requested again.

        Raises:
            SourceError: the API refuses, or sends an unexpected answer.
            SourceUnreachable: all attempts failed to return a complete page.
        """
        self._await_pending()
        return self._fetch_with_retries(page, read)

    def prefetch(self, page: PageRequest, read: Callable[[Answer], T]) -> PrefetchedPage[T]:
        """Request a page once, in the background; :meth:`await_prefetched` returns the result.

        Only one request is pending at a time. This usually returns once the request is sent: otherwise the
        caller's next work would delay sending, since threads wait 5 ms for each other and sending takes
        several turns.
        """
        self._await_pending()
        is_prepared = Event()
        answer = in_background(partial(self._fetch_once, page, read, is_prepared.set), "next page of an API")
        self._pending = answer
        answer.add_done_callback(lambda _: is_prepared.set())
        is_prepared.wait()
        wait([answer], _SENDING_SECONDS)
        return PrefetchedPage(page, read, answer)

    def await_prefetched(self, prefetched: PrefetchedPage[T]) -> T:
        """Return the result of a prefetched page; a transient failure counts as the first attempt.

        Raises:
            SourceError, SourceUnreachable: as :meth:`fetch`.
        """
        try:
            return prefetched.answer.result()
        except TransientFailure as failure:
            return self._fetch_with_retries(prefetched.page, prefetched.read, failure)

    def contents_error(self, page: PageRequest, error: DocumentError) -> SourceError:
        """Return the error for a complete page with unexpected contents."""
        return SourceError(
            f"{self.where(page)}: {self.connection.hide(str(error))}. {error.remedy[0].upper()}{error.remedy[1:]}",
            code="source_answer",
        )

    def where(self, page: PageRequest) -> str:
        """Return the request and the page, for errors."""
        return self._address(page)[1]

    def _await_pending(self) -> None:
        if self._pending is not None:
            wait([self._pending])
            self._pending = None

    def _address(self, page: PageRequest) -> tuple[str, str]:
        """Return the address of a page, and its description for errors."""
        url = page.position.link or self.connection.url(page.request.path)
        displayed_url = self.connection.redact_url(self._prepare(page, url).url or url)
        return (
            url,
            f"API {page.request.method} {displayed_url}, {'after ' if page.is_past_end else ''}page {page.number}",
        )

    def _fetch_with_retries(
        self, page: PageRequest, read: Callable[[Answer], T], failure: TransientFailure | None = None
    ) -> T:
        attempts = retry_attempts(
            self._retry_decision,
            attempts=self._attempts,
            timeout=self._retry_for,
            wait_initial=1.0,
            wait_max=30.0,
            wait_jitter=0.5,
        )
        try:
            for attempt in attempts:
                with attempt:
                    if failure is not None:
                        first, failure = failure, None
                        raise first
                    return self._fetch_once(page, read)
        except TransientFailure as error:
            raise SourceUnreachable(f"{error}{self._describe_attempts(error)}") from None
        raise AssertionError("a try either returns or raises")

    def _describe_attempts(self, failure: TransientFailure) -> str:
        """Return how long a page was retried, and what to do."""
        seconds = self._retry_for.total_seconds()
        if failure.pause is not None and failure.pause > seconds:
            return (
                f", which is longer than retry_for ({seconds:g} s). Run again after that, or raise retry_for of the "
                "connection in platform.yaml"
            )
        attempt_notice = "" if self._attempts else f". Strandline retried for {seconds:g} s"
        return f"{attempt_notice}. Check that the API runs and that this machine reaches it; the next run tries again"

    def _retry_decision(self, error: Exception) -> bool | float:
        """Return whether to retry a page, or the seconds to wait if the API names them.

        False if they exceed ``retry_for``.
        """
        if not isinstance(error, TransientFailure):
            return False
        if not error.pause:  # a pause of 0 would retry hundreds of times a second
            return True
        return error.pause if error.pause <= self._retry_for.total_seconds() else False

    def _fetch_once(
        self,
        page: PageRequest,
        read: Callable[[Answer], T],
        before_sending: Callable[[], None] = lambda: None,
    ) -> T:
        import requests
        from urllib3.exceptions import HTTPError

        url, where = self._address(page)
        deadline = time.monotonic() + self._timeout.total_seconds()
        try:
            answer = self._send_following_redirects(page, url, where, deadline, before_sending)
        except TransientRefusal as refusal:
            raise TransientFailure(str(refusal)) from None
        except requests.exceptions.SSLError:
            raise untrusted_server_error(where, "base_url") from None
        except NotCompressed as error:
            raise SourceError(
                f"{where}: expected a body compressed by {error.names}, as its Content-Encoding says, found a body "
                "that is not. Make the API, or the proxy in front of it, send the right Content-Encoding",
                code="source_answer",
            ) from None
        except (requests.RequestException, HTTPError, OSError) as error:
            # Their messages quote the address, and may quote headers.
            raise TransientFailure(
                f"{where}: expected an answer, found none ({describe_connection_failure(error)})"
            ) from None
        try:
            return read(answer)
        except DocumentError as error:
            if error.is_truncated:
                raise TransientFailure(f"{where}: {self.connection.hide(str(error))}") from None
            raise self.contents_error(page, error) from None

    def _send_following_redirects(
        self, page: PageRequest, url: str, where: str, deadline: float, before_sending: Callable[[], None]
    ) -> Answer:
        for _ in range(_REDIRECTS + 1):
            prepared = self._prepare(page, url)
            if self.connection.token_url is not None:
                prepared.headers["Authorization"] = f"Bearer {bearer_token(self.connection, self._session)}"
            settings = self._session.merge_environment_settings(prepared.url or url, {}, True, None, None)
            remaining_seconds = max(0.001, deadline - time.monotonic())
            before_sending()
            with self._session.send(
                prepared,
                timeout=(min(_CONNECT_SECONDS, remaining_seconds), remaining_seconds),
                allow_redirects=False,
                **settings,
            ) as response:
                if response.status_code not in _MOVED:
                    return self._answers.read(
                        response, where, deadline, ignored_statuses=page.ignored_statuses, remedy=page.remedy
                    )
                url = self._redirect_target(response, prepared.url or url, where)
                page = page._replace(position=Position({}, url))
                if response.status_code == 303:
                    page = page._replace(request=ApiRequest("GET", page.request.path))
        raise SourceError(
            f"{where}: expected an answer, found more than {_REDIRECTS} redirects. Set base_url or path to the "
            "address that answers",
            code="source_answer",
        )

    def _prepare(self, page: PageRequest, url: str) -> requests.PreparedRequest:
        import requests

        request, position = page.request, page.position
        self._check_host(url, f"the next link of page {page.number - 1} of {request.method} {request.path}")
        params = {**request.params, **self.connection.params}
        if position.link:  # a link has all parameters but the connection's credentials
            present_names = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
            params = {
                name: value for name, value in self.connection.params.items() if name not in present_names
            }
        body = None if request.body is None else as_json(request.body)
        headers = {"Accept": "application/json", "User-Agent": "strandline"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection_headers = {name.lower() for name in self.connection.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in connection_headers}
        try:
            return self._session.prepare_request(
                requests.Request(request.method, url, params=params, data=body, headers=headers)
            )
        except (requests.RequestException, ValueError):
            raise SourceError(
                f"API {self.connection}, {request.method} {request.path}, page {page.number}: expected a valid URL, "
                f"found an invalid one in {'the next link' if position.link else 'path or params of the source'}. "
                "Correct it",
                code="source_refused",
            ) from None

    def _redirect_target(self, response: requests.Response, url: str, where: str) -> str:
        location = response.headers.get("Location")
        if not location:
            raise SourceError(
                f"{where}: expected a redirect with an address, found HTTP {response.status_code} without one. Set "
                "base_url or path to the address that answers",
                code="source_answer",
            )
        target = urljoin(url, location)
        self._check_host(target, f"a redirect of {where}")
        return target

    def _check_host(self, url: str, subject: str) -> None:
        if not self.connection.trusts(url):
            parts = urlsplit(url)
            raise SourceError(
                f"API {self.connection}: expected {subject} to stay on its host, found {parts.scheme}://"
                f"{parts.hostname}. Strandline sent nothing to that host. If it may get the connection's credentials, "
                "name it in `hosts` of the connection",
                code="source_other_host",
            )


class _BelowErrorFilter(logging.Filter):
    """Drops what urllib3 logs below ERROR: it quotes addresses, whose queries may contain an API key."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR


_FILTER = _BelowErrorFilter()


def _silence_address_logs() -> None:
    for name in ("urllib3.connectionpool", "urllib3.connection"):
        logging.getLogger(name).addFilter(_FILTER)
