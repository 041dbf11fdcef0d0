"""Pages: every row once, an end always, and no loop."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from partitions.api.paging import (
    IncompleteRecords,
    PageInfo,
    Paging,
    PagingError,
    Position,
    RecordLimitReached,
)
from partitions.api.walk import PageWalk

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
        following: Any = f"/rows?at={start + size}" if way.type == "link" else start + size
        if walk.advance(
            PageInfo(len(page), frozenset(page), following if more else None, more if flag else None)
        ):
            found += page
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
        walk.advance(PageInfo(count, frozenset(range(start, start + count))))
        requests += 1
    assert requests == rows // size + 1


def test_an_api_that_gives_fewer_rows_than_asked_for_loses_none() -> None:
    way = paging(**OFFSET, size_param="limit", size=100)
    assert collected(way, 20, 7) == list(range(20))


def test_pages_may_count_from_0() -> None:
    walk = PageWalk(paging(**PAGES, start=0, size_param="size", size=5), 10)
    assert walk.position is not None
    assert walk.position.parameters == {"page": 0, "size": 5}


def seen(*records: int, **more: Any) -> PageInfo:
    """A page of these records."""
    return PageInfo(len(records), frozenset(records), **more)


@pytest.mark.parametrize("given", [CURSOR, LINK])
def test_an_earlier_cursor_or_link_is_a_loop_unless_all_records_have_come(given: dict[str, Any]) -> None:
    for total in (None, 3):
        walk = PageWalk(paging(**given), 1000, total="total")
        for number, cursor in enumerate(("/a", "/b")):
            walk.advance(seen(number, next=cursor, total=total or 4))
        if total:
            assert walk.advance(seen(5, next="/a"))
            assert walk.position is None
        else:
            with pytest.raises(PagingError, match="a loop"):
                walk.advance(seen(5, next="/a"))


@pytest.mark.parametrize("given", [CURSOR, LINK])
@pytest.mark.parametrize("pages", [1, 2, 3])
def test_a_page_that_leads_to_itself_is_the_last_unless_new(given: dict[str, Any], pages: int) -> None:
    walk, records = PageWalk(paging(**given), 1000), []
    for number in range(pages):
        records += [number] * walk.advance(seen(number, next=f"/{min(number, pages - 2)}"))
    if pages == 1:  # of one page the cursor is not known before
        assert not walk.advance(seen(0, next="/-1"))
    else:
        assert walk.position is not None
        assert not walk.advance(seen(pages - 1, next=f"/{pages - 2}"))
    assert walk.position is None
    assert records == list(range(pages))


def test_a_scroll_has_the_same_cursor_as_long_as_there_are_new_records() -> None:
    walk = PageWalk(paging(**CURSOR), 1000)
    assert all(walk.advance(seen(number, next="scroll")) for number in range(5))
    assert not walk.advance(seen(next="scroll"))
    assert walk.position is None


def test_some_records_again_at_the_same_position_are_an_error() -> None:
    walk = PageWalk(paging(**CURSOR), 1000)
    walk.advance(seen(1, next="a"))
    walk.advance(seen(2, 3, next="a"))
    with pytest.raises(PagingError, match="some of them again"):
        walk.advance(seen(3, 4, next="a"))


@pytest.mark.parametrize(
    ("link", "is_own"),
    [
        ("HTTP://h/rows?b=2&a=1", True),
        ("http://h/rows?a=1&b=2&key=x", True),
        ("http://h/rows?a=1&b=%32", True),
        ("http://h/Rows?a=1&b=2", False),
        ("http://h/rows?a=1&b=3", False),
    ],
)
def test_a_link_is_another_position_if_it_asks_for_something_else(link: str, is_own: bool) -> None:
    own = frozenset({"key"})
    assert (Position({}, link).identity(own) == Position({}, "http://h/rows?a=1&b=2").identity(own)) == is_own
    walk = PageWalk(paging(**LINK), 1000, fixed_parameters=own)
    walk.advance(seen(1, next=link, address="http://h/rows?a=1&b=2"))
    walk.advance(seen(1, next=link, address=link))
    assert walk.position is None


@pytest.mark.parametrize("given", [PAGES, OFFSET, OFFSET | {"size": 3}])
def test_the_same_records_of_whatever_page_are_an_api_that_takes_no_notice(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 1000)
    walk.advance(seen(1, 2, 3))
    walk.advance(seen(1, 2, 3))
    assert walk.is_past_end
    with pytest.raises(PagingError, match="seems to ignore"):
        walk.advance(seen(1, 2, 3))


@pytest.mark.parametrize("given", [PAGES, OFFSET, CURSOR, LINK])
def test_equal_records_at_another_position_are_progress(given: dict[str, Any]) -> None:
    walk, counted = PageWalk(paging(**given), 1000), 0
    for number in range(4):
        counted += walk.advance(seen(1, 2, next=f"/{number}"))
        if walk.is_past_end:
            walk.advance(seen())
    assert (counted, walk.number) == (4, 5)


@pytest.mark.parametrize("given", [PAGES, OFFSET, CURSOR, LINK])
def test_pages_without_end_are_an_error(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 50)
    for number in range(49):
        walk.advance(seen(number, next=f"/{number}", more=True))
    with pytest.raises(PagingError, match="at most 50 pages"):
        walk.advance(seen(50, next="/50", more=True))


@given(st.sampled_from([PAGES, OFFSET, CURSOR]), st.integers(0, 40), st.integers(1, 7))
def test_a_flag_that_no_answer_has_ends_no_pages_early(given: dict[str, Any], rows: int, size: int) -> None:
    assert collected(paging(**given, more="mistyped"), rows, size, flag=None) == list(range(rows))


@pytest.mark.parametrize("value", ["false", [], 2])
@pytest.mark.parametrize("given", [PAGES, OFFSET, CURSOR])
def test_a_flag_that_is_neither_true_nor_false_is_an_error(given: dict[str, Any], value: Any) -> None:
    walk = PageWalk(paging(**given, more="data.more"), 10)
    with pytest.raises(PagingError, match=r"expected true or false at data\.more, found"):
        walk.advance(seen(3, next="x", more=value))


def test_more_pages_behind_one_without_a_row_are_an_error() -> None:
    walk = PageWalk(paging(**OFFSET, more="more"), 10)
    with pytest.raises(PagingError, match="found none"):
        walk.advance(PageInfo(0, more=True))


@pytest.mark.parametrize("value", [{"a": 1}, [1], True])
def test_a_cursor_is_text_or_a_number_and_a_link_is_text(value: Any) -> None:
    for way in (CURSOR, LINK):
        with pytest.raises(PagingError, match="a value of another type"):
            PageWalk(paging(**way), 10).advance(PageInfo(1, next=value))


def test_without_paging_there_is_one_page() -> None:
    walk = PageWalk(None, 10)
    walk.advance(PageInfo(3))
    assert walk.position is None


@pytest.mark.parametrize(
    "given",
    [OFFSET | {"size_param": "limit"}, OFFSET | {"ends": "short"}, CURSOR | {"next": ""}, {"type": "pages"}],
)
def test_paging_that_cannot_work_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        paging(**given)


@pytest.mark.parametrize("value", [None, "", False])
def test_more_pages_without_a_cursor_to_them_are_an_error(value: Any) -> None:
    walk = PageWalk(paging(**CURSOR, more="more"), 1000)
    with pytest.raises(PagingError, match="expected a cursor at next, since a flag announces more pages"):
        walk.advance(seen(3, next=value, more=True))


@pytest.mark.parametrize("given", [CURSOR, LINK])
def test_a_false_cursor_or_link_says_that_the_page_was_the_last(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given), 1000)
    assert walk.advance(seen(3, next=False))
    assert walk.position is None


ENDS = [PAGES, OFFSET, CURSOR, LINK]


@pytest.mark.parametrize("given", ENDS)
def test_a_flag_may_say_that_a_page_is_the_last(given: dict[str, Any]) -> None:
    walk = PageWalk(paging(**given, end="end"), 1000)
    assert walk.advance(seen(1, next="/1", end=False))
    assert walk.advance(seen(2, next=None, end=True))
    assert walk.position is None


@pytest.mark.parametrize("given", ENDS)
@pytest.mark.parametrize("flags", [{"more": False}, {"end": True}])
def test_a_flag_that_ends_the_walk_early_fails(given: dict[str, Any], flags: dict[str, bool]) -> None:
    walk = PageWalk(paging(**given, **dict.fromkeys(flags, "flag")), 1000)
    assert walk.advance(seen(1, next="/1", **flags))
    assert walk.is_past_end
    with pytest.raises(PagingError, match=r"a flag marks as the last, found .* 1 more") as error:
        walk.advance(seen(2, next="/2", **flags))
    assert "paging.end" in error.value.remedy


@pytest.mark.parametrize("given", ENDS)
@pytest.mark.parametrize("behind", [(), (1,)])
def test_a_cursor_to_nothing_behind_a_flag_is_fine(given: dict[str, Any], behind: tuple[int, ...]) -> None:
    walk = PageWalk(paging(**given, end="end"), 1000)
    assert walk.advance(seen(1, next="/1", end=True))
    assert not walk.advance(seen(*behind, next="/2", end=True))
    assert walk.position is None


def test_flags_that_say_two_things_are_an_error() -> None:
    with pytest.raises(PagingError, match="expected opposite values at end and more, found true at both"):
        PageWalk(paging(**PAGES, more="more", end="end"), 9).advance(seen(1, more=True, end=True))


@pytest.mark.parametrize("given", [*ENDS, None])
@pytest.mark.parametrize("total", [2, "2", 3])
def test_the_announced_total_proves_that_all_records_came(given: dict[str, Any] | None, total: Any) -> None:
    walk = PageWalk(paging(**given) if given else None, 1000, total="meta.total")
    one, two = [seen(1, 2, total=total)], [seen(1, next="/1", total=total), seen(2)]
    counted = given is not None and given["type"] in ("page", "offset")
    *before, last = one if given is None else [*two, seen()] if total == 3 and counted else two
    for each in before:
        walk.advance(each)
    if total == 3:
        with pytest.raises(
            IncompleteRecords, match=r"expected 3 records, the number at meta\.total \(total\), found 2"
        ):
            walk.advance(last)
    else:
        walk.advance(last)
        assert walk.position is None, "nothing is asked for behind the last page"


def test_the_highest_total_counts_and_one_that_is_nowhere_or_no_number_is_an_error() -> None:
    walk = PageWalk(paging(**PAGES), 9, total="total")
    walk.advance(seen(1, total=5))
    with pytest.raises(IncompleteRecords, match="expected 5 records"):
        walk.advance(seen(total=0))
    with pytest.raises(PagingError, match="found none on any page"):
        PageWalk(None, 9, total="total").advance(seen(1))
    for value in ("many", -1, True, 2.5):
        with pytest.raises(PagingError, match=r"a whole number at total"):
            PageWalk(None, 9, total="total").advance(seen(1, total=value))


@pytest.mark.parametrize("given", [*ENDS, None])
def test_as_many_records_as_the_limit_may_be_fewer_than_all(given: dict[str, Any] | None) -> None:
    walk = PageWalk(paging(**given) if given else None, 9, max_records=3, total="total")
    with pytest.raises(RecordLimitReached, match=r"fewer than 3 records \(max_records\)"):
        walk.advance(seen(1, 2, 3, next="/1", total=3))


def filtered(rows: int, size: int, kept: set[int], cap: int | None = None) -> list[int]:
    """Walk through an API by offsets that filters after it has paged, or gives fewer than it is asked for."""
    walk, records = PageWalk(paging(**OFFSET, size_param="limit", size=size), 1000), list[int]()
    while (position := walk.position) is not None:
        start = position.parameters["offset"]
        page = [row for row in range(start, min(start + min(size, cap or size), rows)) if row in kept]
        if walk.advance(seen(*page)):
            records += page
    return records


@given(st.integers(1, 30), st.integers(1, 7), st.sets(st.integers(0, 40)))
def test_an_api_that_filters_pages_doubles_no_row(rows: int, size: int, left_out: set[int]) -> None:
    kept = set(range(rows)) - left_out
    records = filtered(rows, size, kept)
    full = [row for row in range(rows) if row in kept]
    assert records == full[: len(records)]  # a page without a record is the end
    if all(kept & set(range(start, start + size)) for start in range(0, rows, size)):
        assert records == full


@given(st.integers(0, 40), st.integers(2, 9), st.integers(1, 9))
def test_an_api_of_smaller_pages_loses_no_row(rows: int, size: int, cap: int) -> None:
    assert filtered(rows, size, set(range(rows)), cap) == list(range(rows))
