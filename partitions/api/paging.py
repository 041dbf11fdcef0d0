"""Pages of an answer: how each is asked for, and what an answer says of those behind it (docs/reference/apis.md, Pages).

Belongs here: the ways of paging. Does not belong here: the walk over the pages of a request (:mod:`partitions.api.walk`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import Field, model_validator

from partitions.api.values import as_text
from partitions.model import Model

Name = Annotated[str, Field(min_length=1)]
Location = Literal["params", "body"]


class PagingError(ValueError):
    """Pages that do not lead on, or not to all records.

    Attributes:
        remedy: what to do.
        code: of the error that it becomes.
    """

    code = "source_paging"

    def __init__(self, expected: str, found: str, remedy: str = "correct source.paging") -> None:
        """Keep what to do; the text has the rest."""
        super().__init__(f"expected {expected}, found {found}")
        self.remedy = remedy


class Incomplete(PagingError):
    """Fewer records than there are."""

    code = "source_incomplete"


class AtMost(Incomplete):
    """As many records as a query has at most, so that there may be more."""


class _Flagged(Model):
    """Pages whose answers may have flags.

    Attributes:
        more: dotted path of a flag in the answer, true as long as there are more.
        end: dotted path of a flag in the answer, true on the last page.
    """

    more: Name | None = None
    end: Name | None = None

    def flag(self, page: PageSeen) -> bool | None:
        """Return whether the flags of a page say that there are more; None if they do not, since a mistyped path must not end the pages early.

        Raises:
            PagingError: a flag is neither true nor false, nor 1 or 0; or they say two things.
        """
        more, end = _truth(self.more, page.more), _truth(self.end, page.end)
        if more is not None and more == end:
            raise PagingError(
                f"another value at {self.end} than at {self.more}", f"{str(more).lower()} at both"
            )
        return more if end is None else not end


class Counted(_Flagged):
    """Pages that are asked for by a number.

    Attributes:
        param: of the number.
        size_param: of the records that a page shall have; None: the API decides.
        size: records of a page.
        ends: the last page: the first without a record, or the first with fewer than ``size``.
        location: where the parameters stand.
    """

    param: Name
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
    ends: Literal["empty", "short"] = "empty"
    location: Location = "params"

    @model_validator(mode="after")
    def _size_is_known(self) -> Counted:
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
        return self.flag(page) is True

    def has_more(self, page: PageSeen) -> bool:
        """Whether there may be a page behind one.

        Raises:
            PagingError: a flag is none.
        """
        flag = self.flag(page)
        if flag is not None:
            return flag
        return page.count > 0 and not (self.ends == "short" and self.is_short(page))

    def is_short(self, page: PageSeen) -> bool:
        """Whether a page has fewer records than it was asked for."""
        return self.size is not None and page.count < self.size


class PageNumbers(Counted):
    """Pages by their number.

    Attributes:
        start: the number of the first.
    """

    type: Literal["page"]
    start: Annotated[int, Field(ge=0, strict=True)] = 1

    def first(self) -> Position:
        """The first page."""
        return Position({self.param: self.start, **self._sizes})

    def at(self, position: Position, pages: int) -> Position:
        """The page so many behind one."""
        return position.moved(self.param, pages)

    def after(self, position: Position, page: PageSeen) -> Position | None:
        """The page behind one; None if that was the last.

        Raises:
            PagingError: a flag is none.
        """
        return self.at(position, 1) if self.has_more(page) else None


class Offsets(Counted):
    """Pages by the number of records before them.

    Attributes:
        start: the number of records before the first.
    """

    type: Literal["offset"]
    start: Annotated[int, Field(ge=0, strict=True)] = 0

    def first(self) -> Position:
        """The first page."""
        return Position({self.param: self.start, **self._sizes})

    def at(self, position: Position, records: int) -> Position:
        """The page that begins so many records behind the beginning of one."""
        return position.moved(self.param, records)

    def after(self, position: Position, page: PageSeen) -> Position | None:
        """The page behind one, by its size, or by the records that came if it has none; None if that was the last.

        Raises:
            PagingError: it says that there are more, and has no record; or a flag is none.
        """
        if not self.has_more(page):
            return None
        if self.size is None and not page.count:
            raise PagingError("records on a page behind which there are more", "none")
        return self.at(position, self.size or page.count)


class Cursor(_Flagged):
    """Pages by a value that the answer before gives.

    Attributes:
        param: of the value.
        next: its dotted path in the answer; the last page has none, or null, false or an empty text.
        header: the header of the answer that it stands in instead.
        size_param: of the records that a page shall have.
        size: records of a page.
        location: where the parameters stand.
    """

    type: Literal["cursor"]
    param: Name
    next: Name | None = None
    header: Name | None = None
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
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
        flag = self.flag(page)
        following = self.leads_to(position, page)
        if following is None and flag:
            raise PagingError(f"a cursor at {self._place} on a page behind which there are more", "none")
        return None if flag is False else following

    def leads_to(self, position: Position, page: PageSeen) -> Position | None:
        """The page that the cursor of one leads to, whatever flags say.

        Raises:
            PagingError: the cursor is no text or number.
        """
        if _is_nowhere(page.next):
            return None
        if isinstance(page.next, bool) or not isinstance(page.next, str | int | float):
            raise PagingError(f"text or a number as the cursor at {self._place}", "another value")
        return Position({**position.parameters, self.param: page.next})

    def promises(self, _page: PageSeen) -> bool:
        """A cursor leads to a page."""
        return True

    @property
    def _place(self) -> str:
        return self.next or f"the header {self.header}"


class NextLink(_Flagged):
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

    def after(self, position: Position, page: PageSeen) -> Position | None:
        """The page behind one; None if that was the last.

        Raises:
            PagingError: the address is no text; or there is none, and the page says that there are more.
        """
        flag = self.flag(page)
        following = self.leads_to(position, page)
        if following is None and flag:
            raise PagingError(f"a link at {self._place} on a page behind which there are more", "none")
        return None if flag is False else following

    def leads_to(self, _position: Position, page: PageSeen) -> Position | None:
        """The page that the link of one leads to, whatever flags say.

        Raises:
            PagingError: the address is no text.
        """
        if _is_nowhere(page.next):
            return None
        if not isinstance(page.next, str):
            raise PagingError(f"an address as text at {self._place}", "another value")
        return Position({}, page.next)

    def promises(self, _page: PageSeen) -> bool:
        """A link leads to a page."""
        return True

    @property
    def _place(self) -> str:
        return self.next or "the header Link"


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

    def moved(self, param: str, by: int) -> Position:
        """Return the position with a higher number."""
        return Position({**self.parameters, param: self.parameters[param] + by})

    def identity(self, own: frozenset[str] = frozenset()) -> tuple[Any, ...]:
        """Return what tells it from others: of an address neither the order of its parameters nor how they are escaped.

        Args:
            own: parameters that each request has, such as a key, whether the address names them or not.
        """
        if self.link is None:
            return (None, *sorted((name, as_text(value)) for name, value in self.parameters.items()))
        parts = urlsplit(self.link)
        pairs = [pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in own]
        return (f"{parts.scheme}://{parts.netloc}".lower(), parts.path, urlencode(sorted(pairs)))

    def __str__(self) -> str:
        """For people."""
        if self.link is not None:
            return "the same next link"
        return ", ".join(f"{name}={str(value)[:100]}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class PageSeen:
    """What an answer says, beside its records.

    Attributes:
        count: of its records.
        records: what tells its records from others, the same for the same records.
        next: the cursor or the address of the next page.
        more: what it says of whether there are more.
        end: what it says of whether it is the last.
        total: how many records there are on all pages.
        address: that gave it, of pages by links.
    """

    count: int
    records: frozenset[int] = frozenset()
    next: Any = None
    more: Any = None
    end: Any = None
    total: Any = None
    address: str | None = None


def _is_nowhere(value: Any) -> bool:
    """Whether an answer says by what stands in the place of a cursor or an address that there is none; 0 is a cursor."""
    return value is None or value is False or value == ""


def _truth(path: str | None, value: Any) -> bool | None:
    """A flag; None if an answer has none.

    Raises:
        PagingError: it is neither true nor false, nor 1 or 0.
    """
    if path is None or value is None:
        return None
    if value in (True, False):
        return bool(value)
    raise PagingError(f"true or false at {path}", repr(value)[:100])


def names_of(paging: PageNumbers | Offsets | Cursor | NextLink) -> Iterator[str]:
    """Yield the parameters that a page is asked for by."""
    if not isinstance(paging, NextLink):
        yield paging.param
    if paging.size_param is not None:
        yield paging.size_param
