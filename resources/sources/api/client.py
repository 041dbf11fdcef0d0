"""One page of an API, fetched: within its time and size, tried again if what failed may pass (docs/reference/apis.md, Failures).

No text that this module gives away shows a secret: addresses are shown by the connection, and no error of the HTTP library is kept.
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
from partitions.api.requests import Request
from partitions.api.values import as_json
from partitions.errors import SourceError, SourceUnreachable
from resources.background import in_background
from resources.connections.api import ApiConnection
from resources.retries import retry_attempts
from resources.sources.api.answers import Answer, AnswerReader, PassingFailure
from resources.sources.api.no_answer import why_no_answer
from resources.sources.api.tokens import PassingRefusal, bearer_token
from resources.sources.api.unpacking import NotPacked

if TYPE_CHECKING:
    import requests

T = TypeVar("T")

_CONNECT_SECONDS = 10.0
_SENDING_SECONDS = 0.001
"""That a request which is prepared takes to be sent."""
_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})


class Asked(NamedTuple):
    """A page that is asked for.

    Attributes:
        request: which it belongs to.
        position: of the page; its parameters are in the request.
        number: of the page, from 1, for errors.
        ignored: statuses that mean that there is nothing.
        remedy: what to do if it is refused; None: what to do about any page.
        is_look: whether it is none of the request's pages, and is looked at behind the one of this number.
    """

    request: Request
    position: Position
    number: int
    ignored: Collection[int] = ()
    remedy: str | None = None
    is_look: bool = False


@dataclass(frozen=True)
class Begun(Generic[T]):
    """A page that was asked for once, in the background.

    Attributes:
        page: which one.
        read: what is made of its answer.
        answer: of that.
    """

    page: Asked
    read: Callable[[Answer], T]
    answer: Future[T]


class ApiClient:
    """Asks one API, over connections that are kept, one request at a time. Use it as a context."""

    def __init__(
        self,
        connection: ApiConnection,
        max_page_bytes: int,
        *,
        retry_for: timedelta | None = None,
        once: bool = False,
    ) -> None:
        """Use an API; nothing is opened yet.

        Args:
            connection: how it is reached.
            max_page_bytes: of one page, unpacked.
            retry_for: how long a page is waited for at most, and asked for again if it fails in passing; None: as the connection says.
            once: ask for no page again.
        """
        import requests

        _be_quiet()
        self.connection = connection
        self._retry_for = min(retry_for or connection.retry_for, connection.retry_for)
        self._attempts = 1 if once else None
        self._timeout = min(retry_for or connection.timeout, connection.timeout)
        self._answers = AnswerReader(connection, max_page_bytes, self._timeout)
        self._session = requests.Session()
        self._session.headers["Accept-Encoding"] = "gzip, deflate"  # whose ends can be proved
        self._session.headers.update(connection.sent_headers)
        # Else a .netrc of the machine would replace what the connection says.
        self._session.auth = lambda request: request
        self._under_way: Future[Any] | None = None

    def __enter__(self) -> Self:
        """Open nothing yet."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for the request that is under way, unless the process is to end, and close the connections."""
        if kind is None or issubclass(kind, Exception):
            self._let_end()
        self._session.close()

    def ask(self, page: Asked, read: Callable[[Answer], T]) -> T:
        """Return what ``read`` makes of a page.

        Args:
            page: which one.
            read: raises DocumentError if the answer does not hold what was expected; if it is broken, it is asked for again.

        Raises:
            SourceError: the API refuses, or answers with something else than expected.
            SourceUnreachable: it does not answer, or not with a whole page, however often it is asked.
        """
        self._let_end()
        return self._patiently(page, read)

    def begin(self, page: Asked, read: Callable[[Answer], T]) -> Begun[T]:
        """Ask for a page once, in the background; :meth:`end` returns what ``read`` makes of it. No two requests are under way at the same time.

        It returns once the request is on its way, as a rule: what the caller does next would keep Python from sending it, since threads wait
        5 ms for each other, and sending takes several turns.
        """
        self._let_end()
        is_prepared = Event()
        answer = in_background(partial(self._once, page, read, is_prepared.set), "next page of an API")
        self._under_way = answer
        answer.add_done_callback(lambda _: is_prepared.set())
        is_prepared.wait()
        wait([answer], _SENDING_SECONDS)
        return Begun(page, read, answer)

    def end(self, begun: Begun[T]) -> T:
        """Return what became of a page that was begun. If it failed in passing, that was the first of the attempts at it.

        Raises:
            SourceError, SourceUnreachable: as :meth:`ask`.
        """
        try:
            return begun.answer.result()
        except PassingFailure as failure:
            return self._patiently(begun.page, begun.read, failure)

    def refusal(self, page: Asked, error: DocumentError) -> SourceError:
        """The error of a page that came whole, and does not hold what was expected."""
        return SourceError(
            f"{self.where(page)}: {self.connection.hide(str(error))}. {error.remedy[0].upper()}{error.remedy[1:]}",
            code="source_answer",
        )

    def where(self, page: Asked) -> str:
        """Return which page it is, for errors."""
        return self._address(page)[1]

    def _let_end(self) -> None:
        if self._under_way is not None:
            wait([self._under_way])
            self._under_way = None

    def _address(self, page: Asked) -> tuple[str, str]:
        """Where a page is, and what it is in words, for errors."""
        url = page.position.link or self.connection.url(page.request.path)
        shown = self.connection.redact_url(self._prepared(page, url).url or url)
        return (
            url,
            f"API {page.request.method} {shown}, {'behind ' if page.is_look else ''}page {page.number}",
        )

    def _patiently(
        self, page: Asked, read: Callable[[Answer], T], failure: PassingFailure | None = None
    ) -> T:
        tries = retry_attempts(
            self._pause,
            attempts=self._attempts,
            timeout=self._retry_for,
            wait_initial=1.0,
            wait_max=30.0,
            wait_jitter=0.5,
        )
        try:
            for attempt in tries:
                with attempt:
                    if failure is not None:
                        first, failure = failure, None
                        raise first
                    return self._once(page, read)
        except PassingFailure as error:
            raise SourceUnreachable(f"{error}{self._what_was_tried(error)}") from None
        raise AssertionError("a try either returns or raises")

    def _what_was_tried(self, failure: PassingFailure) -> str:
        """How long a page was asked for, and what to do."""
        seconds = self._retry_for.total_seconds()
        if failure.pause is not None and failure.pause > seconds:
            return f", and so for longer than it is asked again ({seconds:g} s). Run again then; or raise retry_for of the connection in platform.yaml"
        asked = "" if self._attempts else f"; it was asked for {seconds:g} s"
        return f"{asked}. Check that the API runs and can be reached; the next run asks again"

    def _pause(self, error: Exception) -> bool | float:
        """Whether a page is asked for again, and in how many seconds if the API says so. What is longer than the patience is not waited for."""
        if not isinstance(error, PassingFailure):
            return False
        if not error.pause:  # at once would be hundreds of times a second
            return True
        return error.pause if error.pause <= self._retry_for.total_seconds() else False

    def _once(
        self, page: Asked, read: Callable[[Answer], T], before_sending: Callable[[], None] = lambda: None
    ) -> T:
        import requests
        from urllib3.exceptions import HTTPError

        url, where = self._address(page)
        deadline = time.monotonic() + self._timeout.total_seconds()
        try:
            answer = self._answer(page, url, where, deadline, before_sending)
        except PassingRefusal as refusal:
            raise PassingFailure(str(refusal)) from None
        except requests.exceptions.SSLError:
            raise SourceError(
                f"{where}: expected a certificate that can be trusted, found another, or TLS that does not fit. Correct base_url, or name the"
                " authority's file in the variable REQUESTS_CA_BUNDLE",
                code="source_tls",
            ) from None
        except NotPacked as error:
            raise SourceError(
                f"{where}: expected a body packed by {error.names}, as its Content-Encoding says, found one that is not. Have the API, or the proxy in"
                " front of it, send the header that fits",
                code="source_answer",
            ) from None
        except (requests.RequestException, HTTPError, OSError) as error:
            # Their texts quote the address, and may quote headers.
            raise PassingFailure(
                f"{where}: expected an answer, found none ({why_no_answer(error)})"
            ) from None
        try:
            return read(answer)
        except DocumentError as error:
            if error.is_truncated:
                raise PassingFailure(f"{where}: {self.connection.hide(str(error))}") from None
            raise self.refusal(page, error) from None

    def _answer(
        self, page: Asked, url: str, where: str, deadline: float, before_sending: Callable[[], None]
    ) -> Answer:
        for _ in range(_REDIRECTS + 1):
            prepared = self._prepared(page, url)
            if self.connection.token_url is not None:
                prepared.headers["Authorization"] = f"Bearer {bearer_token(self.connection, self._session)}"
            settings = self._session.merge_environment_settings(prepared.url or url, {}, True, None, None)
            left = max(0.001, deadline - time.monotonic())
            before_sending()
            with self._session.send(
                prepared, timeout=(min(_CONNECT_SECONDS, left), left), allow_redirects=False, **settings
            ) as response:
                if response.status_code not in _MOVED:
                    return self._answers.read(
                        response, where, deadline, ignored=page.ignored, remedy=page.remedy
                    )
                url = self._target(response, prepared.url or url, where)
                page = page._replace(position=Position({}, url))
                if response.status_code == 303:
                    page = page._replace(request=Request("GET", page.request.path))
        raise SourceError(
            f"{where}: expected an answer, found more than {_REDIRECTS} redirects. Correct base_url or path to the address that answers",
            code="source_answer",
        )

    def _prepared(self, page: Asked, url: str) -> requests.PreparedRequest:
        import requests

        request, position = page.request, page.position
        self._check_host(url, f"the next link of page {page.number - 1} of {request.method} {request.path}")
        params = {**request.params, **self.connection.params}
        if position.link:  # an address that was given is whole, but for what lets us in
            known = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
            params = {name: value for name, value in self.connection.params.items() if name not in known}
        body = None if request.body is None else as_json(request.body)
        headers = {"Accept": "application/json", "User-Agent": "strandline"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        own = {name.lower() for name in self.connection.headers}
        headers = {name: value for name, value in headers.items() if name.lower() not in own}
        try:
            return self._session.prepare_request(
                requests.Request(request.method, url, params=params, data=body, headers=headers)
            )
        except (requests.RequestException, ValueError):
            raise SourceError(
                f"API {self.connection}, {request.method} {request.path}, page {page.number}: expected an address that a request can be made of, found"
                f" another in {'the next link' if position.link else 'path or params of the source'}. Correct it",
                code="source_refused",
            ) from None

    def _target(self, response: requests.Response, url: str, where: str) -> str:
        location = response.headers.get("Location")
        if not location:
            raise SourceError(
                f"{where}: expected an address to go on at, found HTTP {response.status_code} without. Correct base_url or path to the address that answers",
                code="source_answer",
            )
        target = urljoin(url, location)
        self._check_host(target, f"a redirect of {where}")
        return target

    def _check_host(self, url: str, what: str) -> None:
        if not self.connection.trusts(url):
            parts = urlsplit(url)
            raise SourceError(
                f"API {self.connection}: expected {what} to stay there, found {parts.scheme}://{parts.hostname}. Nothing was sent to it. If it"
                " may get the connection's credentials, name it in `hosts` of the connection",
                code="source_other_host",
            )


class _NoAddresses(logging.Filter):
    """The library logs each address with its query, which may hold an API key."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.ERROR


_FILTER = _NoAddresses()


def _be_quiet() -> None:
    for name in ("urllib3.connectionpool", "urllib3.connection"):
        logging.getLogger(name).addFilter(_FILTER)
