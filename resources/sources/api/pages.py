"""All pages of one request, one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urljoin

from partitions.api.document import Document, DocumentError, parse_document, parse_lines
from partitions.api.paging import (
    Cursor,
    NextLink,
    NumberedPaging,
    PageInfo,
    PagingError,
    Position,
    RecordLimitReached,
)
from partitions.api.requests import Request
from partitions.api.walk import PageWalk
from partitions.errors import SourceError
from partitions.sources import ApiSource
from partitions.sources.api import NEVER_EMPTY
from resources.sources.api.answers import Answer
from resources.sources.api.client import ApiClient, Asked, Begun
from resources.sources.api.outline import Outline

_NOT_THERE = frozenset(range(400, 500)) - NEVER_EMPTY
"""Statuses of a page that is only looked at, and need not be there."""


class TooManyRecords(SourceError):
    """A request has as many records as the API gives at most, so that there may be more."""

    code = RecordLimitReached.code

    def not_cut(self, why: str) -> SourceError:
        """Return the error for a request that cannot be cut into smaller ones."""
        said, _, remedy = self.message.partition(". Nothing")
        return SourceError(f"{said}, and it cannot be cut in halves: {why}. Nothing{remedy}", code=self.code)


class Page(NamedTuple):
    """A page that was read.

    Attributes:
        number: from 1.
        document: what it holds.
        where: the request and the page, for errors.
    """

    number: int
    document: Document
    where: str


class _Read(NamedTuple):
    """A page whose records are known."""

    document: Document
    seen: PageInfo


class _Received(NamedTuple):
    """A page that has come whole, of which it is known where it seems to lead."""

    answer: Answer
    seems: PageInfo


def pages(client: ApiClient, source: ApiSource, request: Request, *, ahead: bool = False) -> Iterator[Page]:
    """Yield the pages of a request.

    Args:
        client: of the API.
        source: what is asked.
        request: without its pages.
        ahead: whether the next page is asked for while one is in use, for who reads all of them; at most two are in memory, and one request is
            under way. By a cursor or a link it is asked for before the records of the page that has come are read: these take longer.

    Raises:
        SourceError: the API refuses, answers with something else than expected, or its pages do not end.
        SourceUnreachable: it does not answer.
    """
    return iter(_Pages(client, source, request, ahead=ahead))


class _Pages:
    """The walk over the pages of one request, and the page that is asked for while another one is in use."""

    def __init__(self, client: ApiClient, source: ApiSource, request: Request, *, ahead: bool) -> None:
        self._client, self._source, self._request, self._ahead = client, source, request, ahead
        self._in_body = source.paging is not None and source.paging.location == "body"
        self._walk = PageWalk(
            source.paging,
            source.max_pages,
            total=_total_place(source),
            max_records=source.max_records,
            fixed_parameters=frozenset(client.connection.params),
        )
        self._coming: Begun[_Read | _Received] | None = None
        self._asked_ahead: Position | None = None

    def __iter__(self) -> Iterator[Page]:
        walk = self._walk
        while walk.position is not None:
            page = self._current_page()
            read = self._answer(page)
            failure: SourceError | None = None
            try:
                counts = walk.advance(read.seen)
            except RecordLimitReached as error:
                counts, failure = True, _failure(self._client, page, error)
            except PagingError as error:
                raise _failure(self._client, page, error) from None
            self._ask_ahead(ends=failure is not None)
            document, number, where = read.document, page.number, self._client.where(page)
            del read, page  # two pages are in memory, not three
            if counts:
                yield Page(number, document, where)
            if failure is not None:
                raise failure
            del document

    def _current_page(self) -> Asked:
        walk = self._walk
        assert walk.position is not None
        return self._page(walk.position, walk.number, is_promised=walk.is_promised, is_look=walk.is_probe)

    def _page(self, position: Position, number: int, *, is_promised: bool, is_look: bool = False) -> Asked:
        source = self._source
        ignored = () if is_promised else source.ignore_http_codes
        return Asked(
            self._request.at(position, in_body=self._in_body),
            position,
            number,
            _NOT_THERE if is_look else ignored,
            _behind_last(source, number) if not is_promised else None,
            is_look,
        )

    def _answer(self, page: Asked) -> _Read:
        """Return a page. If it tells where the next one is before its records are read, the next one is asked for at once."""
        coming, self._coming, self._asked_ahead = self._coming, None, None
        answer = self._client.ask(page, self._received) if coming is None else self._client.end(coming)
        if isinstance(answer, _Read):
            return answer
        self._asked_ahead = self._walk.leads_to(answer.seems)
        if self._asked_ahead is not None:
            following = self._page(self._asked_ahead, page.number + 1, is_promised=True)
            self._coming = self._client.begin(following, self._received)
        try:
            return _read(self._source, answer.answer)
        except DocumentError as error:
            raise self._client.refusal(page, error) from None

    def _ask_ahead(self, *, ends: bool) -> None:
        """Ask for the page that follows, unless that is under way, or none follows."""
        following = self._walk.position if self._ahead and not ends else None
        if following is None:
            self._coming = None
        elif following != self._asked_ahead:
            self._coming = self._client.begin(self._current_page(), self._received)

    def _received(self, answer: Answer) -> _Read | _Received:
        early = _received(self._source, answer) if self._ahead else None
        return early or _read(self._source, answer)


def _failure(client: ApiClient, page: Asked, error: PagingError) -> SourceError:
    """The error for pages that do not lead to all records."""
    said = client.connection.hide(str(error))
    text = f"{client.where(page)}: {said}. Nothing of this slice was saved; {error.remedy}"
    return (
        TooManyRecords(text) if isinstance(error, RecordLimitReached) else SourceError(text, code=error.code)
    )


def _behind_last(source: ApiSource, number: int) -> str | None:
    """What to do about a refusal of a page that may lie behind the last."""
    if number == 1 or not isinstance(source.paging, NumberedPaging):
        return None
    return (
        "The page before it came, so it may lie behind the last: have the walk end there by the number of all records (total: meta.total), or with"
        " the first page that is not full (paging.ends: short, beside paging.size); or name the status in ignore_http_codes"
    )


def _received(source: ApiSource, answer: Answer) -> _Received | None:
    """The page, and where it seems to lead; None if its records must be read to know that it is whole, or where it leads."""
    if answer.is_empty or answer.is_lines or not isinstance(source.paging, Cursor | NextLink):
        return None
    outline = Outline.of(answer.text)
    return _Received(answer, _seen(source, answer, outline.at, PageInfo(0))) if outline else None


def _document(source: ApiSource, answer: Answer) -> Document:
    if answer.is_empty:
        return Document((), None)
    if answer.is_lines:
        if not answer.proves_end and _total_place(source) is None:
            raise DocumentError(
                "lines whose end is proved, by a Content-Length, chunks or gzip",
                "some that end where the connection does, so that a part may be missing",
                remedy="have the API send one of these; or name the header with the number of all records as source.total_header",
            )
        return parse_lines(answer.text, errors=source.errors)
    return parse_document(
        answer.text, source.records, errors=source.errors, is_optional=source.records_optional
    )


def _read(source: ApiSource, answer: Answer) -> _Read:
    document = _document(source, answer)
    seen = PageInfo(len(document.records))
    if source.paging is not None:
        seen = replace(seen, records=frozenset(hash(record.text) for record in document.records))
    return _Read(document, _seen(source, answer, document.at, seen))


def _seen(source: ApiSource, answer: Answer, at: Callable[[str], Any], seen: PageInfo) -> PageInfo:
    """What an answer says of all pages, beside its records.

    Args:
        source: what is asked.
        answer: of the API.
        at: the value at a dotted path of the answer.
        seen: what is known of its records.
    """
    paging = source.paging
    if _total_place(source) is not None:
        total = answer.headers.get(source.total_header) if source.total_header else at(source.total or "")
        seen = replace(seen, total=0 if answer.is_empty and total is None else total)
    if paging is None:
        return seen
    if isinstance(paging, NextLink):
        link = at(paging.next) if paging.next is not None else answer.next_link
        following = urljoin(answer.url, link) if isinstance(link, str) and link else link
        seen = replace(seen, next=following, address=answer.url)
    elif isinstance(paging, Cursor):
        cursor = answer.headers.get(paging.header) if paging.header else at(paging.next or "")
        seen = replace(seen, next=cursor)
    return replace(
        seen,
        more=at(paging.more) if paging.more is not None else None,
        end=at(paging.end) if paging.end is not None else None,
    )


def _total_place(source: ApiSource) -> str | None:
    """Where answers say how many records there are, for people; None: nowhere."""
    return source.total or (source.total_header and f"the header {source.total_header}")
