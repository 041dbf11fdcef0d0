"""All pages of one request, one after another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from urllib.parse import urljoin

from partitions.api.document import Document, parsed, parsed_lines
from partitions.api.paging import NextLink, PageSeen, PageWalk, PagingError, Position
from partitions.api.requests import Request
from partitions.errors import SourceError
from partitions.sources import ApiSource
from resources.background import in_background
from resources.sources.api.client import Answer, ApiClient


class Page(NamedTuple):
    """A page that was read.

    Attributes:
        number: from 1.
        document: what it holds.
    """

    number: int
    document: Document


class _Read(NamedTuple):
    document: Document
    seen: PageSeen


def pages(client: ApiClient, source: ApiSource, request: Request, *, ahead: bool = False) -> Iterator[Page]:
    """Yield the pages of a request.

    Args:
        client: of the API.
        source: what is asked.
        request: without its pages.
        ahead: whether the next page is asked for while one is in use, for who reads all of them; at most two are in memory.

    Raises:
        SourceError: the API refuses, answers with something else than expected, or its pages do not end.
        SourceUnreachable: it does not answer.
    """
    walk = PageWalk(source.paging, source.max_pages)
    in_body = source.paging is not None and source.paging.location == "body"

    def ask(position: Position) -> _Read:
        asked = request.at(position, in_body=in_body)
        ignored = () if walk.is_promised else source.ignore_http_codes
        return client.ask(
            asked, position, f"page {walk.number}", lambda answer: _read(source, answer), ignored=ignored
        )

    coming: Future[_Read] | None = None
    while (position := walk.position) is not None:
        number, read = walk.number, coming.result() if coming else ask(position)
        try:
            walk.advance(read.seen)
        except PagingError as error:
            raise SourceError(
                f"API {source.shown}, behind page {number}: {error}. Nothing of this slice was saved; correct source.paging, or raise max_pages",
                code="source_paging",
            ) from None
        following = walk.position if ahead else None
        coming = in_background(partial(ask, following), "next page of an API") if following else None
        yield Page(number, read.document)


def _document(source: ApiSource, answer: Answer) -> Document:
    if answer.is_empty:
        return Document((), None)
    return parsed_lines(answer.text) if answer.is_lines else parsed(answer.text, source.records)


def _read(source: ApiSource, answer: Answer) -> _Read:
    document = _document(source, answer)
    paging = source.paging
    seen = PageSeen(len(document.records))
    if paging is None:
        return _Read(document, seen)
    digest = hashlib.blake2b(digest_size=16)
    for record in document.records:
        digest.update(record.text.encode())
    seen = replace(seen, digest=digest.digest())
    if isinstance(paging, NextLink):
        link = document.at(paging.next) if paging.next is not None else answer.next_link
        following = urljoin(answer.url, link) if isinstance(link, str) and link else link
        return _Read(document, replace(seen, next=following))
    if paging.type == "cursor":
        cursor = answer.headers.get(paging.header) if paging.header else document.at(paging.next or "")
        seen = replace(seen, next=cursor)
    return _Read(document, replace(seen, more=document.at(paging.more)) if paging.more is not None else seen)
