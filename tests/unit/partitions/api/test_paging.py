"""Pages: every row once, an end always, and no loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from partitions.api.paging import PageSeen, PageWalk, Paging, PagingError

ADAPTER: TypeAdapter[Any] = TypeAdapter(Paging)


def paging(**given: Any) -> Any:
    """A way of paging."""
    return ADAPTER.validate_python(given)


PAGES = {"type": "page", "param": "page"}
OFFSET = {"type": "offset", "param": "offset"}
CURSOR = {"type": "cursor", "param": "cursor", "next": "next"}
LINK = {"type": "link", "next": "link"}


def collected(way: Any, rows: int, size: int, *, flag: bool | None = True) -> list[int]:
    """Walk through the pages of an API with so many rows; the server decides on the size of a page, and gives a flag or none."""
    walk, found = PageWalk(way, 1000), list[int]()
    while (position := walk.position) is not None:
        start = _start(position, way, size)
        page = list(range(start, min(start + size, rows)))
        more = start + size < rows
        found += page
        following: Any = f"/rows?at={start + size}" if way.type == "link" else start + size
        walk.advance(
            PageSeen(len(page), repr(page).encode(), following if more else None, more if flag else None)
        )
    return found


def _start(position: Any, way: Any, size: int) -> int:
    if position.link is not None:
        return int(position.link.partition("=")[2])
    if way.type == "link":
        return 0
    value = int(position.parameters.get(way.param, 0))
    return (value - 1) * size if way.type == "page" else value


@given(
    st.sampled_from([PAGES, OFFSET, CURSOR, LINK]),
    st.booleans(),
    st.integers(0, 40),
    st.integers(1, 7),
)
def test_every_row_comes_once_in_its_order(given: dict[str, Any], flag: bool, rows: int, size: int) -> None:
    more = {"more": "more"} if flag and given is not LINK else {}
    assert collected(paging(**given, **more), rows, size) == list(range(rows))


@given(st.integers(0, 40), st.integers(1, 7))
def test_a_short_page_is_the_last_if_the_definition_says_so(rows: int, size: int) -> None:
    walk = PageWalk(paging(**OFFSET, size_param="limit", size=size, ends="short"), 100)
    requests = 0
    while (position := walk.position) is not None:
        start = position.parameters["offset"]
        count = max(0, min(size, rows - start))
        walk.advance(PageSeen(count, str(start).encode()))
        requests += 1
    assert requests == rows // size + 1


def test_an_api_that_gives_fewer_rows_than_asked_for_loses_none() -> None:
    way = paging(**OFFSET, size_param="limit", size=100)
    assert collected(way, 20, 7) == list(range(20))


def test_pages_may_count_from_0() -> None:
    walk = PageWalk(paging(**PAGES, start=0, size_param="size", size=5), 10)
    assert walk.position is not None
    assert walk.position.parameters == {"page": 0, "size": 5}


@pytest.mark.parametrize("given", [CURSOR, LINK])
def test_the_same_cursor_or_link_twice_is_a_loop(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 1000)
    for cursor in ("/a", "/b"):
        walk.advance(PageSeen(1, next=cursor))
    with pytest.raises(PagingError, match="a loop"):
        walk.advance(PageSeen(1, next="/a"))


@pytest.mark.parametrize("given", [PAGES, OFFSET])
def test_the_same_rows_twice_in_a_row_are_an_api_that_takes_no_notice(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 1000)
    walk.advance(PageSeen(3, b"same"))
    with pytest.raises(PagingError, match="seems to ignore"):
        walk.advance(PageSeen(3, b"same"))


@pytest.mark.parametrize("given", [PAGES, OFFSET, CURSOR, LINK])
def test_pages_without_end_are_an_error(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 50)
    for number in range(49):
        walk.advance(PageSeen(1, str(number).encode(), f"/{number}", True))
    with pytest.raises(PagingError, match="at most 50 pages"):
        walk.advance(PageSeen(1, b"50", "/50", True))


@given(st.sampled_from([PAGES, OFFSET, CURSOR]), st.integers(0, 40), st.integers(1, 7))
def test_a_flag_that_no_answer_has_ends_no_pages_early(given: dict[str, Any], rows: int, size: int) -> None:
    assert collected(paging(**given, more="mistyped"), rows, size, flag=None) == list(range(rows))


@pytest.mark.parametrize("value", ["false", [], 2])
@pytest.mark.parametrize("given", [PAGES, OFFSET, CURSOR])
def test_a_flag_that_is_neither_true_nor_false_is_an_error(given: dict[str, Any], value: Any) -> None:
    walk = PageWalk(paging(**given, more="data.more"), 10)
    with pytest.raises(PagingError, match=r"expected true or false at data\.more, found"):
        walk.advance(PageSeen(3, b"a", "x", value))


def test_more_pages_behind_one_without_a_row_are_an_error() -> None:
    walk = PageWalk(paging(**OFFSET, more="more"), 10)
    with pytest.raises(PagingError, match="found none"):
        walk.advance(PageSeen(0, more=True))


@pytest.mark.parametrize("value", [{"a": 1}, [1], True])
def test_a_cursor_is_text_or_a_number_and_a_link_is_text(value: Any) -> None:
    for way in (CURSOR, LINK):
        with pytest.raises(PagingError, match="another value"):
            PageWalk(paging(**way), 10).advance(PageSeen(1, next=value))


def test_without_paging_there_is_one_page() -> None:
    walk = PageWalk(None, 10)
    walk.advance(PageSeen(3))
    assert walk.position is None


@pytest.mark.parametrize(
    "given",
    [OFFSET | {"size_param": "limit"}, OFFSET | {"ends": "short"}, CURSOR | {"next": ""}, {"type": "pages"}],
)
def test_paging_that_cannot_work_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        paging(**given)


@pytest.mark.parametrize("given", [PAGES, OFFSET, CURSOR, LINK])
def test_pages_that_begin_again_under_other_cursors_are_a_loop(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 1000)
    for number, digest in enumerate((b"a", b"b", b"c")):
        walk.advance(PageSeen(2, digest, f"x{number}"))
    with pytest.raises(PagingError, match="other records than on page 1, found the same"):
        walk.advance(PageSeen(2, b"a", "x9"))


@pytest.mark.parametrize("given", [CURSOR, LINK])
def test_single_records_that_are_alike_are_no_loop_behind_different_cursors(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 1000)
    for number in range(3):
        walk.advance(PageSeen(1, b"a", f"x{number}"))
    assert walk.number == 4


@pytest.mark.parametrize("value", [None, ""])
def test_more_pages_without_a_cursor_to_them_are_an_error(value: Any) -> None:
    walk = PageWalk(paging(**CURSOR, more="more"), 1000)
    with pytest.raises(PagingError, match="expected a cursor at next on a page behind which there are more"):
        walk.advance(PageSeen(3, b"a", value, True))
