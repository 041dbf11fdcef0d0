"""Ways of paging: how to request each page, and what an answer reveals about further pages.

Belongs here: the ways. Does not belong here: the walk over the pages of a request
(:mod:`partitions.api.walk`). See docs/reference/apis.md, Pages.
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
    """Pages that lead nowhere, or not to all records.

    Attributes:
        remedy: what to do.
        code: the code of the resulting error.
    """

    code = "source_paging"

    def __init__(self, expected: str, actual: str, remedy: str = "correct source.paging") -> None:
        """Store the remedy; the message has the rest."""
        super().__init__(f"expected {expected}, found {actual}")
        self.remedy = remedy


class IncompleteRecords(PagingError):
    """Fewer records arrived than exist."""

    code = "source_incomplete"


class RecordLimitReached(IncompleteRecords):
    """A query returned as many records as it can, so that there may be more."""


class _FlaggedPaging(Model):
    """Pages whose answers may have flags.

    Attributes:
        more: the dotted path of a flag that is true while there are more pages.
        end: the dotted path of a flag that is true on the last page.
    """

    more: Name | None = None
    end: Name | None = None

    def flag(self, page: PageInfo) -> bool | None:
        """Return whether a page's flags announce more pages; None if it has no flags.

        None rather than False: a mistyped path must not end the pages early.

        Raises:
            PagingError: a flag is not true, false, 1 or 0; or the two flags contradict each other.
        """
        more, end = _parse_flag(self.more, page.more), _parse_flag(self.end, page.end)
        if more is not None and more == end:
            raise PagingError(
                f"opposite values at {self.end} and {self.more}", f"{str(more).lower()} at both"
            )
        return more if end is None else not end


class NumberedPaging(_FlaggedPaging):
    """Pages that are requested by a number.

    Attributes:
        param: the parameter for the number.
        start: the number of the first page.
        size_param: the parameter for the page size; None: the API decides.
        size: the records of a page.
        ends: the last page: the first without records, or the first with fewer than ``size``.
        location: where the parameters go.
    """

    param: Name
    start: Annotated[int, Field(ge=0, strict=True)]
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
    ends: Literal["empty", "short"] = "empty"
    location: Location = "params"

    @model_validator(mode="after")
    def _size_is_set(self) -> NumberedPaging:
        if self.size_param is not None and self.size is None:
            raise ValueError("size_param: expected size with it, found nothing")
        if self.ends == "short" and self.size is None:
            raise ValueError(
                "ends: short: expected size with it (without a size no page is short), found nothing"
            )
        return self

    def first(self) -> Position:
        """Return the position of the first page."""
        sizes = {self.size_param: self.size} if self.size_param is not None else {}
        return Position({self.param: self.start, **sizes})

    def at(self, position: Position, distance: int) -> Position:
        """Return the position whose number is ``distance`` above another's."""
        return position.shifted(self.param, distance)

    def promises_next_page(self, page: PageInfo) -> bool:
        """Return whether a flag announces a page after this one; a number alone promises none."""
        return self.flag(page) is True

    def has_more(self, page: PageInfo) -> bool:
        """Return whether a page may follow this one.

        Raises:
            PagingError: a flag is invalid.
        """
        flag = self.flag(page)
        if flag is not None:
            return flag
        return page.count > 0 and not (self.ends == "short" and self.is_short(page))

    def is_short(self, page: PageInfo) -> bool:
        """Return whether a page has fewer records than requested."""
        return self.size is not None and page.count < self.size


class PageNumbers(NumberedPaging):
    """Pages by their number."""

    type: Literal["page"]
    start: Annotated[int, Field(ge=0, strict=True)] = 1

    def after(self, position: Position, page: PageInfo) -> Position | None:
        """Return the position after a page; None if it was the last.

        Raises:
            PagingError: a flag is invalid.
        """
        return self.at(position, 1) if self.has_more(page) else None


class Offsets(NumberedPaging):
    """Pages by the number of records before them.

    Attributes:
        start: the number of records before the first page.
    """

    type: Literal["offset"]
    start: Annotated[int, Field(ge=0, strict=True)] = 0

    def after(self, position: Position, page: PageInfo) -> Position | None:
        """Return the position after a page; None if it was the last.

        The offset advances by the page size, or by the received records if there is no size.

        Raises:
            PagingError: a flag is invalid, or announces more pages after a page without records.
        """
        if not self.has_more(page):
            return None
        if self.size is None and not page.count:
            raise PagingError("records, since a flag announces more pages", "none")
        return self.at(position, self.size or page.count)


class Cursor(_FlaggedPaging):
    """Pages by a value from the previous answer.

    Attributes:
        param: the parameter for the value.
        next: the value's dotted path in the answer; on the last page it is missing, null, false or empty.
        header: the header of the answer with the value instead.
        size_param: the parameter for the page size.
        size: the records of a page.
        location: where the parameters go.
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
            actual = "neither" if self.next is None else "both"
            raise ValueError(f"expected next (the cursor's path in the answer) or header, found {actual}")
        return self

    def first(self) -> Position:
        """Return the position of the first page, which needs no cursor."""
        return Position({self.size_param: self.size} if self.size_param is not None else {})

    def after(self, position: Position, page: PageInfo) -> Position | None:
        """Return the position after a page; None if it was the last.

        Raises:
            PagingError: the cursor is neither text nor a number, or is missing although a flag announces
            more pages.
        """
        flag = self.flag(page)
        next_position = self.leads_to(position, page)
        if next_position is None and flag:
            raise PagingError(f"a cursor at {self._place}, since a flag announces more pages", "none")
        return None if flag is False else next_position

    def leads_to(self, position: Position, page: PageInfo) -> Position | None:
        """Return the position that a page's cursor leads to, regardless of flags; None if it has none.

        Raises:
            PagingError: the cursor is neither text nor a number.
        """
        if _has_no_next(page.next):
            return None
        if isinstance(page.next, bool) or not isinstance(page.next, str | int | float):
            raise PagingError(f"text or a number as the cursor at {self._place}", "a value of another type")
        return Position({**position.parameters, self.param: page.next})

    def promises_next_page(self, _page: PageInfo) -> bool:
        """Return True: a cursor always leads to a page."""
        return True

    @property
    def _place(self) -> str:
        return self.next or f"the header {self.header}"


class NextLink(_FlaggedPaging):
    """Pages by the address of the next one.

    Attributes:
        next: the address's dotted path in the answer; None: it is in the header ``Link`` with
        ``rel="next"``.
        size_param: the parameter for the page size, for the first page.
        size: the records of a page.
    """

    type: Literal["link"]
    next: Name | None = None
    size_param: Name | None = None
    size: Annotated[int, Field(ge=1, strict=True)] | None = None
    location: Location = "params"

    def first(self) -> Position:
        """Return the position of the first page, at the address of the request."""
        return Position({self.size_param: self.size} if self.size_param is not None else {})

    def after(self, position: Position, page: PageInfo) -> Position | None:
        """Return the position after a page; None if it was the last.

        Raises:
            PagingError: the address is no text, or is missing although a flag announces more pages.
        """
        flag = self.flag(page)
        next_position = self.leads_to(position, page)
        if next_position is None and flag:
            raise PagingError(f"a link at {self._place}, since a flag announces more pages", "none")
        return None if flag is False else next_position

    def leads_to(self, _position: Position, page: PageInfo) -> Position | None:
        """Return the position that a page's link leads to, regardless of flags; None if it has none.

        Raises:
            PagingError: the address is no text.
        """
        if _has_no_next(page.next):
            return None
        if not isinstance(page.next, str):
            raise PagingError(f"an address as text at {self._place}", "a value of another type")
        return Position({}, page.next)

    def promises_next_page(self, _page: PageInfo) -> bool:
        """Return True: a link always leads to a page."""
        return True

    @property
    def _place(self) -> str:
        return self.next or "the header Link"


Paging = Annotated[PageNumbers | Offsets | Cursor | NextLink, Field(discriminator="type")]


@dataclass(frozen=True)
class Position:
    """The position of one page.

    Attributes:
        parameters: in addition to those of the request.
        link: the page's address instead, from the previous answer.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    link: str | None = None

    def shifted(self, param: str, by: int) -> Position:
        """Return the position with an increased number."""
        return Position({**self.parameters, param: self.parameters[param] + by})

    def identity(self, fixed_parameters: frozenset[str] = frozenset()) -> tuple[Any, ...]:
        """Return a key that is equal for equal positions.

        The order of an address's parameters and their escaping do not count.

        Args:
            fixed_parameters: parameters of every request, such as a key, which an address may contain or
            not.
        """
        if self.link is None:
            return (None, *sorted((name, as_text(value)) for name, value in self.parameters.items()))
        parts = urlsplit(self.link)
        pairs = [
            pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] not in fixed_parameters
        ]
        return (f"{parts.scheme}://{parts.netloc}".lower(), parts.path, urlencode(sorted(pairs)))

    def __str__(self) -> str:
        """Return the position for an error message."""
        if self.link is not None:
            return "the same next link"
        return ", ".join(f"{name}={str(value)[:100]}" for name, value in self.parameters.items())


@dataclass(frozen=True)
class PageInfo:
    """The contents of an answer beside its records.

    Attributes:
        count: the number of its records.
        records: hashes of its records.
        next: the cursor or address of the next page.
        more: the flag that is true while there are more pages.
        end: the flag that is true on the last page.
        total: the number of records on all pages.
        address: the address of the page, if pages have links.
    """

    count: int
    records: frozenset[int] = frozenset()
    next: Any = None
    more: Any = None
    end: Any = None
    total: Any = None
    address: str | None = None


def _has_no_next(value: Any) -> bool:
    """Return whether the value of a cursor or an address means that there is none; 0 is a cursor."""
    return value is None or value is False or value == ""


def _parse_flag(path: str | None, value: Any) -> bool | None:
    """Return a flag; None if an answer has none.

    Raises:
        PagingError: it is not true, false, 1 or 0.
    """
    if path is None or value is None:
        return None
    if value in (True, False):
        return bool(value)
    raise PagingError(f"true or false at {path}", repr(value)[:100])


def parameter_names(paging: PageNumbers | Offsets | Cursor | NextLink) -> Iterator[str]:
    """Yield the names of the parameters by which a page is requested."""
    if not isinstance(paging, NextLink):
        yield paging.param
    if paging.size_param is not None:
        yield paging.size_param
