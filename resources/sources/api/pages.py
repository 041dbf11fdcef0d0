"""Iterate over all pages of one request."""

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
from partitions.api.requests import ApiRequest
from partitions.api.walk import PageWalk
from partitions.errors import SourceError
from partitions.sources import ApiSource
from partitions.sources.api import NEVER_EMPTY
from resources.sources.api.answers import Answer
from resources.sources.api.client import ApiClient, PageRequest, PrefetchedPage
from resources.sources.api.outline import DocumentOutline

_MISSING_PAGE_STATUSES = frozenset(range(400, 500)) - NEVER_EMPTY
"""Statuses that mean that a probed page does not exist."""


class TooManyRecords(SourceError):
    """A request returned as many records as the API allows, so that there may be more."""

    code = RecordLimitReached.code

    def with_reason(self, why: str) -> SourceError:
        """Return the error for a request that cannot be halved, with the reason."""
        text_start, _, remedy = self.message.partition(". Nothing")
        return SourceError(
            f"{text_start}, and Strandline cannot halve the request: {why}. Nothing{remedy}", code=self.code
        )


class AnswerPage(NamedTuple):
    """A page that was read.

    Attributes:
        number: the page's number, from 1.
        document: its contents.
        where: the request and the page, for errors.
    """

    number: int
    document: Document
    where: str


class _ParsedPage(NamedTuple):
    """A page with parsed records."""

    document: Document
    info: PageInfo


class _UnparsedPage(NamedTuple):
    """A complete page before its records are parsed, with the page that it seems to lead to."""

    answer: Answer
    outline_info: PageInfo


def iterate_pages(
    client: ApiClient, source: ApiSource, request: ApiRequest, *, prefetches: bool = False
) -> Iterator[AnswerPage]:
    """Yield the pages of a request.

    Args:
        client: the API's client.
        source: the definition of the source.
        request: the request, without its pages.
        prefetches: whether the next page is requested while one is in use, for callers that read all
        pages. At most two pages are in memory, and one request is pending. A cursor or link is followed
        before the records of its page are parsed, since parsing takes longer.

    Raises:
        SourceError: the API refuses, sends an unexpected answer, or its pages do not end.
        SourceUnreachable: it does not answer.
    """
    return iter(_PageIterator(client, source, request, prefetches=prefetches))


class _PageIterator:
    """The walk over the pages of one request, with the page that is prefetched meanwhile."""

    def __init__(
        self, client: ApiClient, source: ApiSource, request: ApiRequest, *, prefetches: bool
    ) -> None:
        self._client, self._source, self._request, self._prefetches = client, source, request, prefetches
        self._in_body = source.paging is not None and source.paging.location == "body"
        self._walk = PageWalk(
            source.paging,
            source.max_pages,
            total=_total_location(source),
            max_records=source.max_records,
            fixed_parameters=frozenset(client.connection.params),
        )
        self._prefetched: PrefetchedPage[_ParsedPage | _UnparsedPage] | None = None
        self._prefetched_position: Position | None = None

    def __iter__(self) -> Iterator[AnswerPage]:
        walk = self._walk
        while walk.position is not None:
            page = self._current_page()
            read = self._answer(page)
            failure: SourceError | None = None
            try:
                counts = walk.advance(read.info)
            except RecordLimitReached as error:
                counts, failure = True, _failure(self._client, page, error)
            except PagingError as error:
                raise _failure(self._client, page, error) from None
            self._prefetch_next(ends=failure is not None)
            document, number, where = read.document, page.number, self._client.where(page)
            del read, page  # two pages are in memory, not three
            if counts:
                yield AnswerPage(number, document, where)
            if failure is not None:
                raise failure
            del document

    def _current_page(self) -> PageRequest:
        walk = self._walk
        assert walk.position is not None
        return self._page(
            walk.position, walk.number, is_promised=walk.is_promised, is_past_end=walk.is_past_end
        )

    def _page(
        self, position: Position, number: int, *, is_promised: bool, is_past_end: bool = False
    ) -> PageRequest:
        source = self._source
        ignored = () if is_promised else source.ignore_http_codes
        return PageRequest(
            self._request.at(position, in_body=self._in_body),
            position,
            number,
            _MISSING_PAGE_STATUSES if is_past_end else ignored,
            _past_end_remedy(source, number) if not is_promised else None,
            is_past_end,
        )

    def _answer(self, page: PageRequest) -> _ParsedPage:
        """Return a page; prefetch the next one first if its position is known before parsing."""
        prefetched, self._prefetched, self._prefetched_position = self._prefetched, None, None
        answer = (
            self._client.fetch(page, self._received)
            if prefetched is None
            else self._client.await_prefetched(prefetched)
        )
        if isinstance(answer, _ParsedPage):
            return answer
        self._prefetched_position = self._walk.leads_to(answer.outline_info)
        if self._prefetched_position is not None:
            next_page = self._page(self._prefetched_position, page.number + 1, is_promised=True)
            self._prefetched = self._client.prefetch(next_page, self._received)
        try:
            return _read(self._source, answer.answer)
        except DocumentError as error:
            raise self._client.contents_error(page, error) from None

    def _prefetch_next(self, *, ends: bool) -> None:
        """Prefetch the next page, unless that is pending, or there is none."""
        next_page = self._walk.position if self._prefetches and not ends else None
        if next_page is None:
            self._prefetched = None
        elif next_page != self._prefetched_position:
            self._prefetched = self._client.prefetch(self._current_page(), self._received)

    def _received(self, answer: Answer) -> _ParsedPage | _UnparsedPage:
        unparsed = _received(self._source, answer) if self._prefetches else None
        return unparsed or _read(self._source, answer)


def _failure(client: ApiClient, page: PageRequest, error: PagingError) -> SourceError:
    """Return the error for pages that do not lead to all records."""
    text_start = client.connection.hide(str(error))
    text = f"{client.where(page)}: {text_start}. Nothing of this slice was saved; {error.remedy}"
    return (
        TooManyRecords(text) if isinstance(error, RecordLimitReached) else SourceError(text, code=error.code)
    )


def _past_end_remedy(source: ApiSource, number: int) -> str | None:
    """Return the remedy for a refused page that may lie after the last; None if it cannot."""
    if number == 1 or not isinstance(source.paging, NumberedPaging):
        return None
    return (
        "The page before it exists, so this one may lie after the last page. Name where the number of all "
        "records stands (total: meta.total); or end at the first page that is not full (paging.ends: short, "
        "beside paging.size); or name the status in ignore_http_codes"
    )


def _received(source: ApiSource, answer: Answer) -> _UnparsedPage | None:
    """Return a page with the position that it seems to lead to.

    None if only its parsed records tell whether it is complete, or where it leads.
    """
    if answer.is_empty or answer.is_lines or not isinstance(source.paging, Cursor | NextLink):
        return None
    outline = DocumentOutline.of(answer.text)
    return _UnparsedPage(answer, _page_info(source, answer, outline.at, PageInfo(0))) if outline else None


def _document(source: ApiSource, answer: Answer) -> Document:
    if answer.is_empty:
        return Document((), None)
    if answer.is_lines:
        if not answer.proves_end and _total_location(source) is None:
            raise DocumentError(
                "lines whose end is certain, by a Content-Length, chunks or gzip",
                "lines that end with the connection, so a part may be missing",
                remedy="make the API send one of these, or name the header with the number of all records as "
                "source.total_header",
            )
        return parse_lines(answer.text, errors=source.errors)
    return parse_document(
        answer.text, source.records, errors=source.errors, is_optional=source.records_optional
    )


def _read(source: ApiSource, answer: Answer) -> _ParsedPage:
    document = _document(source, answer)
    info = PageInfo(len(document.records))
    if source.paging is not None:
        info = replace(info, records=frozenset(hash(record.text) for record in document.records))
    return _ParsedPage(document, _page_info(source, answer, document.at, info))


def _page_info(source: ApiSource, answer: Answer, at: Callable[[str], Any], info: PageInfo) -> PageInfo:
    """Return the contents of an answer beside its records.

    Args:
        source: the definition of the source.
        answer: the API's answer.
        at: returns the value at a dotted path of the answer.
        info: what is known about its records.
    """
    paging = source.paging
    if _total_location(source) is not None:
        total = answer.headers.get(source.total_header) if source.total_header else at(source.total or "")
        info = replace(info, total=0 if answer.is_empty and total is None else total)
    if paging is None:
        return info
    if isinstance(paging, NextLink):
        link = at(paging.next) if paging.next is not None else answer.next_link
        next_page = urljoin(answer.url, link) if isinstance(link, str) and link else link
        info = replace(info, next=next_page, address=answer.url)
    elif isinstance(paging, Cursor):
        cursor = answer.headers.get(paging.header) if paging.header else at(paging.next or "")
        info = replace(info, next=cursor)
    return replace(
        info,
        more=at(paging.more) if paging.more is not None else None,
        end=at(paging.end) if paging.end is not None else None,
    )


def _total_location(source: ApiSource) -> str | None:
    """Return where answers report the total number of records, for errors; None: nowhere."""
    return source.total or (source.total_header and f"the header {source.total_header}")
