"""Pages of a real server: whatever it answers, all records come once or there is a clear error, and no text shows a secret."""

from __future__ import annotations

import gzip
import logging
import traceback
import zlib
from base64 import b64decode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Event
from typing import Any
from weakref import ref

import pytest
import stamina

from partitions.api.document import Document, parse_document
from partitions.api.requests import sample_request
from partitions.errors import SourceError, SourceUnreachable
from partitions.sources import ApiSource
from resources.connections.api import ApiConnection
from resources.sources.api.client import ApiClient
from resources.sources.api.outline import DocumentOutline
from resources.sources.api.pages import iterate_pages
from tests.support.api import (
    ITEMS,
    TOKEN,
    Api,
    Fault,
    api,
    content,
    cut_off,
    endless,
    given_token,
    page,
    redirect,
    reset,
    status,
)
from tests.support.gates import until

OFFSETS = {"type": "offset", "param": "offset", "size_param": "limit", "size": 3}
CURSOR = {"type": "cursor", "param": "cursor", "next": "next"}
ATTEMPTS = 4


@pytest.fixture(autouse=True)
def _no_pauses() -> Iterator[None]:
    with stamina.set_testing(True, attempts=ATTEMPTS, cap=True):
        yield


@pytest.fixture
def server() -> Iterator[Api]:
    with api() as running:
        running.rows = [{"id": number} for number in range(1, 8)]
        yield running


def read(
    server: Api, connection: ApiConnection | None = None, *, ahead: bool = True, **source: Any
) -> list[int]:
    """The ids of all records."""
    given = {
        "type": "api",
        "connection": "shop",
        "path": "/rows",
        "records": ITEMS,
        "paging": OFFSETS,
        **source,
    }
    definition = ApiSource.model_validate(given)
    client = ApiClient(connection or server.connection(), int(definition.max_page_bytes))
    with client:
        found = list(iterate_pages(client, definition, sample_request(definition), prefetches=ahead))
    return [record.value["id"] for each in found for record in each.document.records]


ALL = list(range(1, 8))


@pytest.mark.parametrize(
    "paging",
    [
        OFFSETS,
        OFFSETS | {"ends": "short"},
        OFFSETS | {"more": "more"},
        {"type": "page", "param": "page", "size_param": "size", "size": 2},
        CURSOR | {"size_param": "size", "size": 2},
        {"type": "link", "next": "link", "size_param": "size", "size": 2},
        {"type": "link", "size_param": "size", "size": 2},
    ],
)
@pytest.mark.parametrize("ahead", [False, True])
def test_all_pages_are_read_once(server: Api, paging: dict[str, Any], ahead: bool) -> None:
    server.packed = ahead
    assert read(server, paging=paging, ahead=ahead) == ALL
    assert all(each.headers["Authorization"] == f"Bearer {TOKEN}" for each in server.log)


@pytest.mark.parametrize("location", ["params", "body"])
def test_a_post_sends_its_body_and_pages_stand_where_they_are_wanted(server: Api, location: str) -> None:
    paging = OFFSETS | {"location": location, "more": "more"}
    assert read(server, method="POST", body={"filter": {"kind": "all"}}, paging=paging) == ALL
    assert [each.method for each in server.log] == ["POST"] * 3
    where = [each.body if location == "body" else each.params for each in server.log]
    assert [int(each["offset"]) for each in where] == [0, 3, 6]
    assert all(each.body["filter"] == {"kind": "all"} for each in server.log)


@pytest.mark.parametrize("ahead", [True, False])
def test_a_cursor_in_a_body_is_the_number_that_was_sent_to_its_last_digit(
    server: Api, *, ahead: bool
) -> None:
    cursors = ["1.12345678901234567891", "1.12345678901234567892", "9007199254740993"]
    server.faults.extend(
        content(f'{{"data": {{"items": [{{"id": {number}}}]}}, "next": {cursor}}}')
        for number, cursor in enumerate([*cursors, "null"], 1)
    )
    assert read(server, method="POST", paging=CURSOR | {"location": "body"}, ahead=ahead) == [1, 2, 3, 4]
    assert [each.body and str(each.body["cursor"]) for each in server.log] == [None, *cursors]


@pytest.mark.parametrize(
    "fault",
    [
        status(429, Retry_After="0"),
        status(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"),
        status(403, Retry_After="1"),
        status(500),
        status(503, "<html>down</html>"),
        cut_off,
        reset,
        content('{"data": {"items": [{"id"'),
        content(""),
        status(429, X_RateLimit_Reset="1"),
        status(403, X_RateLimit_Reset="1", X_RateLimit_Remaining="0"),
    ],
)
def test_what_may_pass_is_asked_again_and_every_record_comes_once(server: Api, fault: Fault) -> None:
    server.faults.extend([None, fault, fault])
    assert read(server) == ALL
    assert [int(each.params["offset"]) for each in server.log] == [0, 3, 3, 3, 6, 7, 9]


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (status(503), "expected a page, found HTTP 503"),
        (cut_off, "(the connection broke off)"),
        (reset, "expected an answer, found none"),
        (content('{"data": '), "expected JSON, found"),
        (content("", "application/json"), "an empty answer"),
    ],
)
def test_what_does_not_pass_is_told_with_address_and_page(server: Api, fault: Fault, expected: str) -> None:
    server.faults.extend([None, *[fault] * ATTEMPTS])
    with pytest.raises(SourceUnreachable) as error:
        read(server)
    assert expected in error.value.message
    assert f"{server.url}/rows?offset=3&limit=3, page 2" in error.value.message
    assert len(server.log) == 1 + ATTEMPTS


def test_a_pause_that_is_longer_than_the_patience_is_not_waited_for(server: Api) -> None:
    server.faults.append(status(429, Retry_After="3600"))
    with pytest.raises(
        SourceUnreachable,
        match=r"asks to wait 3600 s, until \d{4}-\d\d-\d\d .* UTC, which is longer than retry_for",
    ) as error:
        read(server, server.connection(retry_for=timedelta(minutes=1)))
    assert "raise retry_for of the connection" in error.value.message
    assert len(server.log) == 1


@pytest.mark.parametrize("code", [403, 429])
@pytest.mark.parametrize("name", ["X_RateLimit_Reset", "RateLimit_Reset", "x_rate_limit_reset"])
def test_a_rate_limit_that_ends_later_is_no_matter_of_credentials(server: Api, code: int, name: str) -> None:
    reset = datetime.now(UTC) + timedelta(hours=1)
    for text in (f"{reset.timestamp():.0f}", "3600", format_datetime(reset, usegmt=True)):
        server.faults.append(status(code, **{name: text}))
        with pytest.raises(SourceUnreachable, match=r"asks to wait \d+ s, until") as error:
            read(server)
        assert error.value.transient
        assert "credentials" not in error.value.message


def test_a_403_while_requests_remain_is_one_of_rights(server: Api) -> None:
    server.faults.append(status(403, X_RateLimit_Reset="3600", X_RateLimit_Remaining="55"))
    with pytest.raises(SourceError, match="Correct the credentials") as error:
        read(server)
    assert error.value.code == "source_denied"


@pytest.mark.parametrize(
    ("fault", "code", "expected"),
    [
        (status(401, "who are you"), "source_denied", "expected access, found HTTP 401: who are you"),
        (status(403), "source_denied", "HTTP 403"),
        (status(404), "source_missing", "Correct source.path"),
        (status(422, '{"error": "bad"}'), "source_refused", 'HTTP 422: {"error": "bad"}'),
        (content("<html></html>", "text/html"), "source_content_type", "found the content type text/html"),
        (content('{"rows": []}'), "source_answer", "expected records at data.items, found only rows"),
        (content('{"data": {"items": [1]}}'), "source_answer", "found a number as record 1"),
        (content("not JSON at all"), "source_answer", "expected JSON, found"),
        (content("<html>"), "source_answer", "expected JSON, found"),
        (content('{"data": {"items": []}} {}'), "source_answer", "found more behind its end"),
        (content('{"data": {"items": [{"id": 1, "id": 2}]}}'), "source_answer", "found id twice in record 1"),
        (content('{"data": {"items": null}}'), "source_answer", "set records_optional: true"),
        (content('{"data": {"items": null}, "errors": [{"m": 1}]}'), "source_answer", 'found at errors [{"m": 1}]. The API failed'),
        (content('{"data": {"items": [{"id": 1}]}, "error": "no"}'), "source_answer", "source.errors to the field that is one, or to ignore"),
        (lambda handler: handler.answer(200, {"Content-Type": "application/json"}, b'{"a": "\xe9"}'), "source_answer", "expected JSON in UTF-8"),
        (redirect("/v1/rows"), "source_answer", "more than 5 redirects"),
    ],
)  # fmt: skip
def test_a_refusal_is_told_at_once(server: Api, fault: Fault, code: str, expected: str) -> None:
    server.faults.extend([fault] * 10)
    with pytest.raises(SourceError) as error:
        read(server)
    assert (error.value.code, error.value.transient) == (code, False)
    assert expected in error.value.message
    assert f"{server.url}/rows" in error.value.message


def test_a_page_that_never_ends_is_bounded_by_its_size(server: Api) -> None:
    server.faults.append(endless)
    with pytest.raises(SourceError, match="at most 20000 bytes") as error:
        read(server, max_page_bytes=20_000)
    assert error.value.code == "source_page_too_large"


def test_a_page_that_never_ends_is_bounded_by_its_time(server: Api) -> None:
    server.faults.extend([endless] * ATTEMPTS)
    with pytest.raises(SourceUnreachable, match=r"within 0\.2 s"):
        read(server, server.connection(timeout=timedelta(milliseconds=200)), max_page_bytes="100GiB")


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("location", ["params", "body"])
def test_a_last_page_whose_cursor_is_its_own_ends_the_walk(server: Api, ahead: bool, location: str) -> None:
    last = page({"id": 2}, {"id": 3}, next="a")
    server.faults.extend([page({"id": 1}, next="a"), last, last])
    paging = CURSOR | {"location": location}
    method: dict[str, Any] = {"method": "POST"} if location == "body" else {}
    assert read(server, paging=paging, ahead=ahead, **method) == [1, 2, 3]
    assert (len(server.log), len(server.faults)) == (3, 0)


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("in_header", [False, True])
def test_a_last_page_whose_link_is_its_own_ends_the_walk(server: Api, ahead: bool, in_header: bool) -> None:
    def linked(link: str, number: int) -> Fault:
        header = {"Link": f'<{server.url}{link}>; rel="next"'} if in_header else {}
        document = {"data": {"items": [{"id": number}]}} | (
            {} if in_header else {"link": link and f"/v1{link}"}
        )
        return lambda handler: handler.json(document, header)

    # The first page leads to itself under the address that it was asked for at; parameters are in another order.
    server.faults.extend([linked("/rows?size=1&kind=all", 1)] * 2)
    paging = {"type": "link", "size_param": "size", "size": 1} | ({} if in_header else {"next": "link"})
    assert read(
        server, server.connection(params={"key": "x"}), paging=paging, ahead=ahead, params={"kind": "all"}
    ) == [1]
    server.faults.extend([linked("/rows?b=2&a=1", 1), *[linked("/rows?a=1&b=2", 2)] * 2])
    assert read(server, paging=paging, ahead=ahead) == [1, 2]
    assert not server.faults


@pytest.mark.parametrize(
    "paging",
    [
        CURSOR,
        {"type": "link", "next": "link"},
        {"type": "page", "param": "page"},
        OFFSETS,
        None,
    ],
)
@pytest.mark.parametrize("place", [{"total": "meta.total"}, {"total_header": "X-Total"}])
@pytest.mark.parametrize("total", [7, 9])
def test_fewer_records_than_the_api_announces_fail_every_paging(
    server: Api, paging: dict[str, Any] | None, place: dict[str, Any], total: int
) -> None:
    server.total = total
    params = {"paged": 1} if paging is not None else {}
    if total == 7:
        assert read(server, paging=paging, params=params, **place) == ALL
        return
    with pytest.raises(
        SourceError, match=r"expected 9 records, the number at .* \(total\), found 7"
    ) as error:
        read(server, paging=paging, params=params, **place)
    assert (error.value.code, error.value.transient) == ("source_incomplete", False)


@pytest.mark.parametrize("location", ["params", "body"])
def test_a_total_ends_pages_by_number_without_a_request_behind_the_last(server: Api, location: str) -> None:
    server.total = 7
    method: dict[str, Any] = {"method": "POST"} if location == "body" else {}
    assert read(server, total="meta.total", paging=OFFSETS | {"location": location}, **method) == ALL
    assert len(server.log) == 3


@pytest.mark.parametrize("code", [400, 404, 416, 422])
@pytest.mark.parametrize(
    "paging", [OFFSETS, {"type": "page", "param": "page", "size_param": "size", "size": 3}]
)
def test_a_refusal_behind_the_last_page_names_it(server: Api, code: int, paging: dict[str, Any]) -> None:
    looks = 1 if paging["type"] == "offset" else 0
    server.faults.extend([None] * 3 + [status(code)] * 2)
    with pytest.raises(SourceError, match=f"found HTTP {code}") as error:
        read(server, paging=paging)
    assert "total: meta.total" in error.value.message
    assert "ends: short" in error.value.message
    assert len(server.faults) == 1 - looks


def test_end_ends_the_walk_and_the_wrong_flag_fails_it(server: Api) -> None:
    paging = CURSOR | {"size_param": "size", "size": 2}
    assert read(server, paging=paging | {"end": "last"}) == ALL
    with pytest.raises(SourceError, match="a cursor that leads to 2 more") as error:
        read(server, paging=paging | {"more": "last"})
    assert error.value.code == "source_paging"
    assert "paging.end" in error.value.message
    for way in ({"type": "page", "param": "page", "size_param": "size", "size": 2}, OFFSETS):
        with pytest.raises(SourceError, match=r"(page=2|offset=3)\S*, after page 1: .*a page after it with"):
            read(server, paging=way | {"more": "last"})


def test_a_cursor_that_the_last_page_keeps_beside_its_flag_is_followed_once(server: Api) -> None:
    server.faults.extend(
        [page({"id": 1}, next="a", end=False), page({"id": 2}, next="b", end=True), status(404)]
    )
    assert read(server, paging=CURSOR | {"end": "end"}) == [1, 2]
    assert server.requested("cursor") == [(None,), ("a",), ("b",)]


def test_as_many_records_as_a_request_has_at_most_are_an_error(server: Api) -> None:
    for paging in (OFFSETS, CURSOR, None):
        with pytest.raises(
            SourceError, match=r"fewer than 7 records \(max_records\) of one request, found 7"
        ) as error:
            read(server, paging=paging, max_records=7)
        assert error.value.code == "source_incomplete"
        assert read(server, paging=paging, max_records=8) == ALL


def test_pages_without_end_are_bounded(server: Api) -> None:
    server.faults.extend(page({"id": number}, next=number + 1) for number in range(100))
    with pytest.raises(SourceError, match="at most 5 pages"):
        read(server, paging=CURSOR, max_pages=5)


def test_an_empty_page_is_the_end_of_counted_pages_and_not_of_those_with_a_cursor(server: Api) -> None:
    server.rows = []
    assert read(server) == []
    server.faults.extend([page(next=5), page({"id": 1})])
    assert read(server, paging=CURSOR) == [1]


@pytest.mark.parametrize("code", [404, 410, 422])
def test_a_status_of_no_rows_ends_counted_pages_and_others_fail(server: Api, code: int) -> None:
    server.faults.append(status(code, "<html>no rows</html>"))
    assert read(server, ignore_http_codes=[code]) == []
    server.faults.extend([None, None, status(code)])
    assert read(server, ignore_http_codes=[code]) == ALL[:6]
    server.faults.append(status(code))
    with pytest.raises(SourceError, match=f"HTTP {code}"):
        read(server, ignore_http_codes=[409])
    server.faults.append(status(code))
    with pytest.raises(SourceError, match=f"HTTP {code}"):
        read(server)


@pytest.mark.parametrize(
    "paging",
    [
        CURSOR | {"size_param": "size", "size": 2},
        {"type": "link", "next": "link", "size_param": "size", "size": 2},
        OFFSETS | {"more": "more"},
    ],
)
def test_a_promised_page_must_be_there(server: Api, paging: dict[str, Any]) -> None:
    server.faults.append(status(404))
    assert read(server, paging=paging, ignore_http_codes=[404]) == []
    server.faults.extend([None, status(404)])
    with pytest.raises(SourceError, match=r"page 2: expected a resource, found HTTP 404"):
        read(server, paging=paging, ignore_http_codes=[404])


@pytest.mark.parametrize(
    "paging",
    [CURSOR, CURSOR | {"next": None, "header": "X-Next"}, {"type": "link", "next": "link"}, {"type": "link"}],
)
def test_a_page_that_a_cursor_leads_to_is_asked_for_early(
    server: Api, paging: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()

    def parsed_later(text: str, path: str | None, **more: Any) -> Document:
        if len(asked) < 2:  # the last page leads nowhere
            until(lambda: len(server.log) > len(asked) + 1)
        asked.append(len(server.log))
        return parse_document(text, path, **more)

    monkeypatch.setattr("resources.sources.api.pages.parse_document", parsed_later)
    assert read(server, paging=paging, params={"paged": "1"}) == ALL
    assert asked == [2, 3, 3]


def test_an_unlinked_page_is_not_read_though_asked(server: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    guesses = iter([2, 99, 6, None])  # the second is of the page that is not wanted
    monkeypatch.setattr(DocumentOutline, "at", lambda _self, _path: next(guesses))
    assert read(server, paging=CURSOR, params={"paged": "1"}) == ALL
    assert server.requested("cursor") == [(None,), ("2",), ("3",), ("6",)]
    assert server.most_at_once == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '{"data": {"items": [{"id": 1}, 2]}, "next": 3}',
            "expected objects as records at data.items, found a number as record 2",
        ),
        ('{"data": [1], "next": 3}', "expected records at data.items, found at data an array"),
    ],
)
def test_a_page_with_a_cursor_and_no_records_is_a_clear_error(server: Api, text: str, expected: str) -> None:
    server.faults.extend([page({"id": 1}, next=1), content(text), None, None])
    with pytest.raises(SourceError, match=f"page 2: {expected}") as error:
        read(server, paging=CURSOR)
    assert (error.value.code, error.value.transient) == ("source_answer", False)
    assert server.requested("cursor") == [(None,), ("1",), ("3",)], "it is asked for once"
    assert server.most_at_once == 1


def test_after_an_error_no_request_is_under_way(server: Api) -> None:
    answered = Event()

    def slow(handler: Any) -> None:
        answered.wait(0.3)
        answered.set()
        page({"id": 9})(handler)

    same = {"id": 1}, {"id": 2}
    server.faults.extend([page(*same, next="a"), page(*same, next="b"), slow])
    with pytest.raises(SourceError, match="max_records"):
        read(server, paging=CURSOR, max_records=4)
    assert answered.is_set()
    assert server.requested("cursor") == [(None,), ("a",), ("b",)]


def test_a_page_that_was_asked_for_early_has_no_more_attempts_than_any_other(server: Api) -> None:
    server.faults.extend([page({"id": 1}, next=3), *[status(503)] * 20])
    with pytest.raises(SourceUnreachable, match="page 2: expected a page, found HTTP 503"):
        read(server, paging=CURSOR)
    assert len(server.log) == 1 + ATTEMPTS


def test_two_pages_are_in_memory(server: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, alive = list[ref[Document]](), list[int]()

    def counted(text: str, path: str | None, **more: Any) -> Document:
        document = parse_document(text, path, **more)
        alive.append(sum(each() is not None for each in seen))
        seen.append(ref(document))
        return document

    monkeypatch.setattr("resources.sources.api.pages.parse_document", counted)
    definition = ApiSource.model_validate(
        {"type": "api", "connection": "shop", "path": "/rows", "records": ITEMS, "paging": CURSOR}
    )
    with ApiClient(server.connection(), 10_000) as client:
        server.faults.extend(page({"id": number}, next=number) for number in range(1, 6))
        for each in iterate_pages(client, definition, sample_request(definition), prefetches=True):
            del each
    assert alive == [0] * 6, "none but the one that is read; the next one is on its way"


@pytest.mark.parametrize("fault", [status(500), cut_off, content('{"data": {"items": [{"id"'), content("")])
def test_behind_a_cursor_what_may_pass_is_asked_again_too(server: Api, fault: Fault) -> None:
    server.faults.extend([page({"id": 1}, {"id": 2}, {"id": 3}, next=3), fault, fault])
    assert read(server, paging=CURSOR) == ALL
    assert server.requested("cursor") == [(None,), ("3",), ("3",), ("3",), ("6",)]


def test_numbers_that_json_itself_does_not_know_are_read_behind_a_cursor(server: Api) -> None:
    server.faults.extend(
        [page({"id": 1}, next=6), content('{"data": {"items": [{"id": 2, "x": NaN}]}, "next": null}')]
    )
    assert read(server, paging=CURSOR) == [1, 2]


def test_no_page_is_asked_for_before_it_is_wanted_unless_all_are_read(server: Api) -> None:
    definition = ApiSource.model_validate(
        {"type": "api", "connection": "shop", "path": "/rows", "records": ITEMS, "paging": OFFSETS}
    )
    with ApiClient(server.connection(), 10_000) as client:
        walk = iterate_pages(client, definition, sample_request(definition))
        next(walk)
        assert len(server.log) == 1
        next(walk)
        assert len(server.log) == 2


@pytest.mark.parametrize("way", ["link", "redirect"])
def test_credentials_go_to_no_other_host_unless_it_is_named(server: Api, way: str) -> None:
    with api() as other:
        other.rows = [{"id": 8}]
        server.rows = [{"id": 1}]

        def lead(address: str) -> None:
            fault = page({"id": 1}, link=address) if way == "link" else redirect(address)
            server.faults.append(fault)

        for host in ("127.0.0.1", "localhost"):
            lead(f"http://{host}:{other.port}/v1/rows?paged=1")
            with pytest.raises(SourceError, match="Strandline sent nothing to that host") as error:
                read(server, paging={"type": "link", "next": "link"})
            assert error.value.code == "source_other_host"
            assert ("page 1 of GET /rows" if way == "link" else "/rows, page 1") in error.value.message
        assert other.log == []
        lead(f"{other.url}/rows?paged=1")
        named = server.connection(hosts=(f"127.0.0.1:{other.port}",))
        assert read(server, named, paging={"type": "link", "next": "link"})[-1] == 8
        assert other.log[0].headers["Authorization"] == f"Bearer {TOKEN}"


def test_a_redirect_on_the_same_host_is_followed(server: Api) -> None:
    server.faults.append(redirect("/v1/others?paged=1&size=9"))
    assert read(server, paging=None) == ALL
    assert [each.path for each in server.log] == ["/v1/rows", "/v1/others"]


SECRETS = {
    "headers": {"X-Api-Key": "k3y/with+odd=signs"},
    "params": {"api_key": "p4ram &secret", "tenant": "t3nant-from-env"},
    "user": "me",
    "password": "pa55 word/ü",
}


@pytest.mark.parametrize(
    "fault",
    [
        status(401, "you sent k3y/with+odd=signs and p4ram+%26secret"),
        status(500),
        reset,
        cut_off,
        content("x"),
        content('{"error": "p4ram &secret"}'),
        redirect("http://other.example/?api_key=p4ram%20%26secret"),
        page({"id": 1}, link="http://u:pa55@other.example/"),
    ],
)
def test_no_secret_is_in_an_error_its_trace_or_the_log(
    server: Api, fault: Fault, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    given: dict[str, Any] = SECRETS
    connection = ApiConnection(server.url, hidden=frozenset({"tenant"}), **given)
    server.faults.extend([fault] * ATTEMPTS)
    with pytest.raises(SourceError) as error:
        read(server, connection, paging={"type": "link", "next": "link"})
    assert server.log[0].params["api_key"] == "p4ram &secret"
    written = (
        "".join(traceback.format_exception(error.value)) + caplog.text + repr(connection) + str(connection)
    )
    for secret in ("k3y", "p4ram", "t3nant", "pa55", "bWU6"):
        assert secret not in written


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"base_url": "https://u:pw@host/"}, "base_url"),
        ({"base_url": "ftp://host"}, "base_url"),
        ({"base_url": "https://host/?key=s3cr3t"}, "base_url"),
        ({"token": "s3cr3t\n"}, "token"),
        ({"headers": {"A": "s3cr3t\r\nB: c"}}, "headers.A"),
        ({"headers": {"A b": "c"}}, "the name of a header"),
        ({"token": "s3cr3t", "user": "me"}, "found both"),
        ({"token": "s3cr3t", "headers": {"authorization": "x"}}, "found two"),
        ({"password": "s3cr3t"}, "expected user"),
        ({"hosts": ("http://host",)}, "hosts"),
        ({"token_url": "https://host/t", "client_id": "me"}, "found no client_secret"),
        ({"token_url": "https://u:pw@host", "client_id": "me", "client_secret": "s3cr3t"}, "token_url"),
        (
            {"token_url": "https://host", "client_id": "me", "client_secret": "s3cr3t", "token": "x"},
            "found two",
        ),
        ({"scope": "all"}, "token_url"),
    ],
)
def test_a_broken_connection_is_refused_without_secrets(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected) as error:
        ApiConnection(**{"base_url": "https://host"} | given)
    assert "s3cr3t" not in str(error.value)
    assert "pw" not in str(error.value)


def test_a_netrc_of_the_machine_replaces_no_credentials(
    server: Api, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login other password wrong\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert read(server) == ALL
    assert {each.headers["Authorization"] for each in server.log} == {f"Bearer {TOKEN}"}


def test_a_cursor_may_stand_in_a_header(server: Api) -> None:
    pages_ = [({"id": 1}, "a b"), ({"id": 2}, "c"), ({"id": 3}, None)]

    def answer(row: dict[str, Any], following: str | None) -> Fault:
        more = {"X-Next": following} if following else {}
        return lambda handler: handler.json({"data": {"items": [row]}}, more)

    server.faults.extend(answer(*each) for each in pages_)
    assert read(server, paging={"type": "cursor", "param": "after", "header": "x-next"}) == [1, 2, 3]
    assert server.requested("after") == [(None,), ("a b",), ("c",)]


LINES = b'{"id": 1}\n{"id": 2}\n'
_STREAM = zlib.compressobj(wbits=31)
_BEGUN = _STREAM.compress(LINES) + _STREAM.flush(zlib.Z_SYNC_FLUSH)
_DEFLATED = zlib.compressobj(wbits=-15)


def lines(body: bytes, encoding: str = "", **more: str) -> Fault:
    """Answer with lines of JSON."""
    headers = {"Content-Type": "application/x-ndjson", **({"Content-Encoding": encoding} if encoding else {})}
    return lambda handler: handler.answer(200, headers | more, body)


def until_the_connection_ends(handler: Any) -> None:
    """Answer with lines, whose end is that of the connection."""
    handler.send_response_only(200)
    handler.send_header("Content-Type", "application/x-ndjson")
    handler.send_header("X-Total", "2")
    handler.end_headers()
    handler.wfile.write(LINES)
    handler.close_connection = True


@pytest.mark.parametrize(
    ("body", "encoding", "expected"),
    [
        (
            LINES,
            "gzip",
            "expected a body compressed by gzip, as its Content-Encoding says, found a body that is not",
        ),
        (LINES, "deflate", "expected a body compressed by deflate, as its Content-Encoding says"),
        (b"\x1b\xff{\xff", "br", "found one compressed by br"),
    ],
)
def test_a_body_in_another_packing_than_was_asked_for_is_told_at_once(
    server: Api, body: bytes, encoding: str, expected: str
) -> None:
    server.faults.extend([lines(body, encoding)] * ATTEMPTS)
    with pytest.raises(SourceError, match=f"rows.*, page 1: .*{expected}") as error:
        read(server, paging=None)
    assert (error.value.code, len(server.log)) == ("source_answer", 1)


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (lines(_BEGUN, "gzip"), "the connection broke off"),
        (lines(gzip.compress(LINES, mtime=0)[:-4], "gzip"), "the connection broke off"),
        (lines(gzip.compress(LINES, mtime=0) + b"more", "gzip"), "its body could not be decompressed"),
        (lines(zlib.compress(LINES)[:-4], "deflate"), "the connection broke off"),
        (lines(zlib.compress(LINES) + b"more", "deflate"), "its body could not be decompressed"),
        (
            lines(gzip.compress(LINES, mtime=0)[:10] + b"\xff" * 9, "gzip"),
            "its body could not be decompressed",
        ),
        (lines(b"\x78\x9c" + b"\xff" * 9, "deflate"), "its body could not be decompressed"),
    ],
)
def test_a_packed_answer_is_read_to_its_own_end(server: Api, fault: Fault, found: str) -> None:
    server.faults.extend([fault] * ATTEMPTS)
    with pytest.raises(SourceUnreachable, match=found):
        read(server, paging=None)


@pytest.mark.parametrize(
    "fault",
    [
        lines(LINES),
        lines(gzip.compress(LINES[:10], mtime=0) + gzip.compress(LINES[10:], mtime=0), "x-gzip"),
        lines(zlib.compress(LINES), "deflate"),
        lines(_DEFLATED.compress(LINES) + _DEFLATED.flush(), "deflate"),
        lines(gzip.compress(zlib.compress(LINES)), "deflate, gzip"),
    ],
)
def test_a_whole_answer_in_lines_is_read(server: Api, fault: Fault) -> None:
    server.faults.append(fault)
    assert read(server, paging=None) == [1, 2]


def test_lines_that_end_where_the_connection_does_need_a_number_of_records(server: Api) -> None:
    server.faults.append(until_the_connection_ends)
    with pytest.raises(SourceError, match=r"whose end is certain.* source.total_header"):
        read(server, paging=None)
    server.faults.append(until_the_connection_ends)
    assert read(server, paging=None, total_header="X-Total") == [1, 2]


def test_a_link_beside_other_relations_leads_on(server: Api) -> None:
    first = {"Link": f'<{server.url}/rows?p=9>; rel="last", <{server.url}/rows?p=2>; rel="NEXT archives"'}
    server.faults.extend(
        [
            lambda handler: handler.json({"data": {"items": [{"id": 1}]}}, first),
            lambda handler: handler.json({"data": {"items": [{"id": 2}]}}),
        ]
    )
    assert read(server, paging={"type": "link"}) == [1, 2]


def test_a_pause_of_nothing_is_the_usual_one(server: Api) -> None:
    server.faults.extend([status(429, Retry_After="0")] * 99)
    connection = server.connection(retry_for=timedelta(seconds=0.5))
    with stamina.set_testing(False), pytest.raises(SourceUnreachable):
        read(server, connection)
    assert len(server.log) < 5


CLIENT = {"client_id": "me & co", "client_secret": "cl1ent/s3cret"}


def client_of(server: Api, **more: Any) -> ApiConnection:
    given: dict[str, Any] = {"token_url": f"{server.url}/token", "scope": "rows.read", **CLIENT, **more}
    return ApiConnection(server.url, **given)


def test_a_client_asks_for_a_token_once_and_sends_it_with_each_page(server: Api) -> None:
    server.tokens.append(given_token("t0ken-1", expires_in=3600))
    assert read(server, client_of(server, token_params={"audience": "x"}), paging=OFFSETS) == ALL
    (asked,) = server.forms
    assert asked.form == {"grant_type": "client_credentials", "scope": "rows.read", "audience": "x"}
    assert b64decode(asked.authorization.removeprefix("Basic ")) == b"me+%26+co:cl1ent%2Fs3cret"
    assert {each.headers["Authorization"] for each in server.log} == {"Bearer t0ken-1"}


def test_a_client_may_say_who_it_is_in_the_form(server: Api) -> None:
    server.tokens.append(given_token("t0ken-1"))
    assert read(server, client_of(server, client_auth="body")) == ALL
    assert server.forms[0].form == {"grant_type": "client_credentials", "scope": "rows.read", **CLIENT}
    assert server.forms[0].authorization == ""


def test_a_token_that_has_ended_is_replaced_between_pages(server: Api) -> None:
    server.tokens.extend([given_token("t0ken-1", expires_in=3600), given_token("t0ken-2")])
    server.faults.extend([None, status(401)])
    assert read(server, client_of(server), paging=OFFSETS) == ALL
    sent = [each.headers["Authorization"] for each in server.log]
    assert sent == ["Bearer t0ken-1"] * 2 + ["Bearer t0ken-2"] * (len(sent) - 2)


def test_a_token_that_was_never_let_in_is_refused_at_once(server: Api) -> None:
    server.tokens.append(given_token("t0ken-1"))
    server.faults.append(status(401, "t0ken-1 is bad"))
    with pytest.raises(SourceError, match="expected access") as error:
        read(server, client_of(server))
    assert (len(server.forms), len(server.log)) == (1, 1)
    assert "t0ken" not in str(error.value)


def test_a_token_is_shown_in_no_error_after_it_was_replaced(server: Api) -> None:
    connection = client_of(server)
    for token in ("t0ken-1", "t0ken-2"):
        connection.access_token.replace(token, 0.0)
    assert connection.hide("t0ken-1, t0ken-2") == "***, ***"


@pytest.mark.parametrize("trouble", [status(503), status(429), reset])
def test_a_server_of_tokens_in_trouble_is_asked_again(server: Api, trouble: Fault) -> None:
    server.tokens.extend([trouble, given_token("t0ken-1")])
    assert read(server, client_of(server)) == ALL


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            status(401, '{"error": "invalid_client", "error_description": "cl1ent/s3cret"}'),
            "HTTP 401 invalid_client",
        ),
        (content('{"error": "cl1ent/s3cret"}'), r"HTTP 200 \*\*\*"),
        (content("<html>", "text/html"), "without access_token"),
        (given_token("a\r\nb"), "printable ASCII"),
        (redirect("http://other.example/"), "HTTP 302"),
    ],
)
def test_a_refused_client_is_told_why_without_its_secret(server: Api, answer: Fault, expected: str) -> None:
    server.tokens.append(answer)
    with pytest.raises(SourceError, match=expected) as error:
        read(server, client_of(server))
    assert error.value.code == "source_denied"
    assert "s3cret" not in "".join(traceback.format_exception(error.value))
    assert server.log == []
