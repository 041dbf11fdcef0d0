"""All pages of one request, one after another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urljoin

from partitions.api.document import Document, parsed, parsed_lines
from partitions.api.paging import NextLink, PageSeen, PageWalk, PagingError
from partitions.api.requests import Request
from partitions.errors import SourceError
from partitions.sources import ApiSource
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


def pages(client: ApiClient, source: ApiSource, request: Request) -> Iterator[Page]:
    """Yield the pages of a request, the next one asked for when the one before was taken.

    Raises:
        SourceError: the API refuses, answers with something else than expected, or its pages do not end.
        SourceUnreachable: it does not answer.
    """
    walk = PageWalk(source.paging, source.max_pages)
    while (position := walk.position) is not None:
        number = walk.number
        in_body = source.paging is not None and source.paging.location == "body"
        asked = request.at(position, in_body=in_body)
        read = client.ask(asked, position, f"page {number}", lambda answer: _read(source, answer))
        try:
            walk.advance(read.seen)
        except PagingError as error:
            raise SourceError(
                f"API {source.shown}, behind page {number}: {error}. Nothing of this slice was saved; correct source.paging, or raise max_pages",
                code="source_paging",
            ) from None
        yield Page(number, read.document)


def _read(source: ApiSource, answer: Answer) -> _Read:
    document = parsed_lines(answer.text) if answer.is_lines else parsed(answer.text, source.records)
    paging = source.paging
    seen = PageSeen(len(document.records))
    if paging is None:
        return _Read(document, seen)
    if isinstance(paging, NextLink):
        link = document.at(paging.next) if paging.next is not None else answer.next_link
        following = urljoin(answer.url, link) if isinstance(link, str) and link else link
        return _Read(document, replace(seen, next=following))
    if paging.type == "cursor":
        seen = replace(seen, next=document.at(paging.next))
    else:
        digest = hashlib.blake2b(digest_size=16)
        for record in document.records:
            digest.update(record.text.encode())
        seen = replace(seen, digest=digest.digest())
    return _Read(document, replace(seen, more=document.at(paging.more)) if paging.more is not None else seen)
