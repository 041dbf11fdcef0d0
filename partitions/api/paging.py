"""Pages of an answer: how each is asked for, when there are no more, and when an API goes round in circles (docs/source-api.md, Pages)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from partitions.model import Model

Name = Annotated[str, Field(min_length=1)]
Location = Literal["params", "body"]


class PagingError(ValueError):
    """Pages that do not lead on."""

    def __init__(self, expected: str, found: str) -> None:
        """Keep both; the text has them."""
        super().__init__(f"expected {expected}, found {found}")
        self.expected, self.found = expected, found


class _Counted(Model):
    """Pages that are asked for by a number.

    Attributes:
        param: of the number.
        size_param: of the records that a page shall have; None: the API decides.
        size: records of a page.
        ends: the last page: the first without a record, or the first with fewer than ``size``.
        more: dotted path of a flag in the answer, true as long as there are more; it decides where an answer has it.
        location: where the parameters stand.
    """

    param: Name
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
    ends: Literal["empty", "short"] = "empty"
    more: Name | None = None
    location: Location = "params"

    @model_validator(mode="after")
    def _size_is_known(self) -> _Counted:
        if self.size_param is not None and self.size is None:
            raise ValueError("size_param: expected size beside it, found nothing")
        if self.ends == "short" and self.size is None:
            raise ValueError("ends: short: expected size beside it (else no page is short), found nothing")
        return self

    @property
    def _sizes(self) -> dict[str, Any]:
        return {self.size_param: self.size} if self.size_param is not None else {}

    def promises(self, page: PageSeen) -> bool:
        """Whether a page says that there is one behind it; a number alone may lead to none."""
        return _flag(self.more, page) is True

    def _has_more(self, page: PageSeen) -> bool:
        flag = _flag(self.more, page)
        if flag is not None:
            return flag
        return page.count > 0 and (self.ends == "empty" or page.count >= (self.size or 0))


class PageNumbers(_Counted):
    """Pages by their number.

    Attributes:
        start: the number of the first.
    """

    type: Literal["page"]
    start: Annotated[int, Field(ge=0, strict=True)] = 1

    def first(self) -> Position:
        """The first page."""
        return Position({self.param: self.start, **self._sizes})

    def after(self, position: Position, page: PageSeen) -> Position | None:
        """The page behind one; None if that was the last."""
        if not self._has_more(page):
            return None
        return Position({**position.parameters, self.param: position.parameters[self.param] + 1})


class Offsets(_Counted):
    """Pages by the number of records before them: of those that came, so that an API which gives fewer than it was asked for loses none.

    Attributes:
        start: the number of records before the first.
    """

    type: Literal["offset"]
    start: Annotated[int, Field(ge=0, strict=True)] = 0

    def first(self) -> Position:
        """The first page."""
        return Position({self.param: self.start, **self._sizes})

    def after(self, position: Position, page: PageSeen) -> Position | None:
        """The page behind one; None if that was the last.

        Raises:
            PagingError: it says that there are more, and has no record; or its flag is neither true nor false.
        """
        if not self._has_more(page):
            return None
        if not page.count:
            raise PagingError("records on a page behind which there are more", "none")
        return Position({**position.parameters, self.param: position.parameters[self.param] + page.count})


class Cursor(Model):
    """Pages by a value that the answer before gives.

    Attributes:
        param: of the value.
        next: its dotted path in the answer; the last page has none, or null, or an empty text.
        header: the header of the answer that it stands in instead.
        size_param: of the records that a page shall have.
        size: records of a page.
        more: dotted path of a flag in the answer, true as long as there are more; where an answer has none, the cursor decides.
        location: where the parameters stand.
    """

    type: Literal["cursor"]
    param: Name
    next: Name | None = None
    header: Name | None = None
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
    more: Name | None = None
    location: Location = "params"

    @model_validator(mode="after")
    def _in_one_place(self) -> Cursor:
        if (self.next is None) == (self.header is None):
            found = "neither" if self.next is None else "both"
            raise ValueError(f"expected next, the cursor's path in the answer, or header, found {found}")
        return self

    def first(self) -> Position:
        """The first page, which needs no cursor."""
        return Position({self.size_param: self.size} if self.size_param is not None else {})

    def after(self, position: Position, page: PageSeen) -> Position | None:
        """The page behind one; None if that was the last.

        Raises:
            PagingError: the cursor is no text or number; or there is none, and the page says that there are more.
        """
        flag = _flag(self.more, page)
        if flag is False:
            return None
        if page.next in (None, ""):
            if flag:
                raise PagingError(f"a cursor at {self._place} on a page behind which there are more", "none")
            return None
        if isinstance(page.next, bool) or not isinstance(page.next, str | int | float):
            raise PagingError(f"text or a number as the cursor at {self._place}", "another value")
        return Position({**position.parameters, self.param: page.next})

    def promises(self, page: PageSeen) -> bool:  # noqa: ARG002 - part of what all pages have
        """A cursor leads to a page."""
        return True

    @property
    def _place(self) -> str:
        return self.next or f"the header {self.header}"


class NextLink(Model):
    """Pages by the address of the next one.

    Attributes:
        next: its dotted path in the answer; None: the header ``Link`` with ``rel="next"`` has it.
        size_param: of the records that a page shall have, for the first.
        size: records of a page.
    """

    type: Literal["link"]
    next: Name | None = None
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
    location: Location = "params"

    def first(self) -> Position:
        """The first page, at the address of the request."""
        return Position({self.size_param: self.size} if self.size_param is not None else {})

    def after(self, position: Position, page: PageSeen) -> Position | None:  # noqa: ARG002 - part of what all pages have
        """The page behind one; None if that was the last.

        Raises:
            PagingError: the address is no text.
        """
        if page.next in (None, ""):
            return None
        if not isinstance(page.next, str):
            raise PagingError(f"an address as text at {self.next}", "another value")
        return Position({}, page.next)

    def promises(self, page: PageSeen) -> bool:  # noqa: ARG002 - part of what all pages have
        """A link leads to a page."""
        return True


Paging = Annotated[PageNumbers | Offsets | Cursor | NextLink, Field(discriminator="type")]


@dataclass(frozen=True)
class Position:
    """What one page is asked for by.

    Attributes:
        parameters: beside those of the request.
        link: the address of the page instead, as the answer before gave it.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    link: str | None = None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What tells it from others."""
        return (self.link, *sorted((name, str(value)) for name, value in self.parameters.items()))


@dataclass(frozen=True)
class PageSeen:
    """What an answer says of the pages behind it.

    Attributes:
        count: of its records.
        digest: of its records, the same for the same records; empty if they are not compared.
        next: the cursor or the address of the next page.
        more: what it says of whether there are more.
    """

    count: int
    digest: bytes = b""
    next: Any = None
    more: Any = None


class PageWalk:
    """The way through the pages of one request.

    Attributes:
        position: of the page that is asked for now; None behind the last.
        number: of this page, from 1.
        is_promised: whether the page before leads to it by a cursor, a link or a flag, so that it must be there.
    """

    def __init__(self, paging: PageNumbers | Offsets | Cursor | NextLink | None, most: int) -> None:
        """Begin at the first page.

        Args:
            paging: None: there is one page.
            most: pages that are asked for at most.
        """
        self._paging, self._most = paging, most
        self.number, self.is_promised = 1, False
        self.position: Position | None = paging.first() if paging else Position()
        self._asked = {self.position.identity}
        self._read: dict[bytes, int] = {}

    def advance(self, page: PageSeen) -> None:
        """Go on behind a page.

        Raises:
            PagingError: the page behind it was there already, or there are too many.
        """
        position = self.position
        if position is None or self._paging is None:
            self.position = None
            return
        self._compare(page)
        following = self._paging.after(position, page)
        if following is not None:
            if following.identity in self._asked:
                raise PagingError("a page that was not asked for yet", f"{_shown(following)} again, a loop")
            if self.number >= self._most:
                raise PagingError(f"at most {self._most} pages (max_pages)", "more")
            self._asked.add(following.identity)
            self.number += 1
            self.is_promised = self._paging.promises(page)
        self.position = following

    def leads_to(self, page: PageSeen) -> Position | None:
        """Return where a page leads by its cursor or its link, before its records are known; None if that is nowhere, or not to be asked for.

        :meth:`advance` decides: it may find that the page behind is another, or that there is none.
        """
        position = self.position
        if position is None or not isinstance(self._paging, Cursor | NextLink) or self.number >= self._most:
            return None
        try:
            following = self._paging.after(position, page)
        except PagingError:
            return None
        return following if following is not None and following.identity not in self._asked else None

    def _compare(self, page: PageSeen) -> None:
        """Raise PagingError if another page had the same records. One record alone may be like another, unless its page is told by a number."""
        if not page.count or not page.digest:
            return
        before = self._read.setdefault(page.digest, self.number)
        by_number = isinstance(self._paging, _Counted)
        if before < self.number and (page.count > 1 or (by_number and before == self.number - 1)):
            raise PagingError(
                f"other records than on page {before}",
                "the same: the API seems to ignore what the page is asked for by, or has begun again at another page",
            )


def _flag(path: str | None, page: PageSeen) -> bool | None:
    """Return whether a page says that there are more; None if it does not say, since a mistyped path must not end the pages at the first.

    Raises:
        PagingError: the flag is neither true nor false, nor 1 or 0.
    """
    if path is None or page.more is None:
        return None
    if page.more in (True, False):
        return bool(page.more)
    raise PagingError(f"true or false at {path}", repr(page.more)[:100])


def _shown(position: Position) -> str:
    if position.link is not None:
        return "the same next link"
    return ", ".join(f"{name}={str(value)[:100]}" for name, value in position.parameters.items())


def names_of(paging: PageNumbers | Offsets | Cursor | NextLink) -> Iterator[str]:
    """Yield the parameters that a page is asked for by."""
    if not isinstance(paging, NextLink):
        yield paging.param
    if paging.size_param is not None:
        yield paging.size_param
