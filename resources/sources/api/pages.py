"""All pages of one request, one after another."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urljoin

from partitions.api.document import Document, DocumentError, parsed, parsed_lines
from partitions.api.paging import Cursor, NextLink, PageSeen, PageWalk, Paging, PagingError, Position
from partitions.api.requests import Request
from partitions.errors import SourceError
from partitions.sources import ApiSource
from resources.sources.api.client import Answer, ApiClient, Asked, Begun
from resources.sources.api.outline import Outline


class Page(NamedTuple):
    """A page that was read.

    Attributes:
        number: from 1.
        document: what it holds.
    """

    number: int
    document: Document


class _Read(NamedTuple):
    """A page whose records are known."""

    document: Document
    seen: PageSeen


class _Received(NamedTuple):
    """A page that has come whole, of which it is known where it seems to lead."""

    answer: Answer
    seems: PageSeen


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
    walk = PageWalk(source.paging, source.max_pages)
    in_body = source.paging is not None and source.paging.location == "body"

    def asked(position: Position, number: int, *, is_promised: bool) -> Asked:
        ignored = () if is_promised else source.ignore_http_codes
        return Asked(request.at(position, in_body=in_body), position, number, ignored)

    def received(answer: Answer) -> _Read | _Received:
        return (_received(source, answer) if ahead else None) or _read(source, answer)

    coming: Begun[_Read | _Received] | None = None
    while (position := walk.position) is not None:
        number = walk.number
        page = asked(position, number, is_promised=walk.is_promised)
        found = client.end(coming) if coming is not None else client.ask(page, received)
        coming = likely = None
        if isinstance(found, _Received):
            likely = walk.leads_to(found.seems)
            if likely is not None:
                coming = client.begin(asked(likely, number + 1, is_promised=True), received)
            try:
                read = _read(source, found.answer)
            except DocumentError as error:
                raise client.refusal(page, error) from None
        else:
            read = found
        try:
            walk.advance(read.seen)
        except PagingError as error:
            raise SourceError(
                f"API {source.shown}, behind page {number}: {error}. Nothing of this slice was saved; correct source.paging, or raise max_pages",
                code="source_paging",
            ) from None
        following = walk.position if ahead else None
        if following is None:
            coming = None
        elif following != likely:
            coming = client.begin(asked(following, walk.number, is_promised=walk.is_promised), received)
        document = read.document
        del found, read, page  # two pages are in memory, not three
        yield Page(number, document)
        del document


def _received(source: ApiSource, answer: Answer) -> _Received | None:
    """The page, and where it seems to lead; None if its records must be read to know that it is whole, or where it leads."""
    if answer.is_empty or answer.is_lines or not isinstance(source.paging, Cursor | NextLink):
        return None
    outline = Outline.of(answer.text)
    return _Received(answer, _seen(source.paging, answer, outline.at, PageSeen(0))) if outline else None


def _document(source: ApiSource, answer: Answer) -> Document:
    if answer.is_empty:
        return Document((), None)
    if answer.is_lines:
        return parsed_lines(answer.text, errors=source.errors)
    return parsed(answer.text, source.records, errors=source.errors, is_optional=source.records_optional)


def _read(source: ApiSource, answer: Answer) -> _Read:
    document = _document(source, answer)
    seen = PageSeen(len(document.records))
    if source.paging is None:
        return _Read(document, seen)
    digest = hashlib.blake2b(digest_size=16)
    for record in document.records:
        digest.update(record.text.encode())
    return _Read(document, _seen(source.paging, answer, document.at, replace(seen, digest=digest.digest())))


def _seen(paging: Paging, answer: Answer, at: Callable[[str], Any], seen: PageSeen) -> PageSeen:
    """What an answer says of the pages behind it, beside its records.

    Args:
        paging: of the source.
        answer: of the API.
        at: the value at a dotted path of the answer.
        seen: what is known of its records.
    """
    if isinstance(paging, NextLink):
        link = at(paging.next) if paging.next is not None else answer.next_link
        following = urljoin(answer.url, link) if isinstance(link, str) and link else link
        return replace(seen, next=following)
    if paging.type == "cursor":
        cursor = answer.headers.get(paging.header) if paging.header else at(paging.next or "")
        seen = replace(seen, next=cursor)
    return replace(seen, more=at(paging.more)) if paging.more is not None else seen
