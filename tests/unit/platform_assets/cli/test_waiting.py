"""What waits is asked of each server once, if it does not answer."""

from __future__ import annotations

import pytest

from partitions.errors import SourceUnreachable
from platform_assets.kinds.dead_servers import UnreachableServers
from resources.connections.places import Place, S3Connection


def _at(endpoint: str, bucket: str) -> Place:
    return Place(f"s3://{bucket}/landing", S3Connection(endpoint=endpoint))


def test_a_server_that_did_not_answer_is_not_asked_again() -> None:
    servers, asked = UnreachableServers(), list[str]()

    def ask(place: Place) -> None:
        with servers.fail_fast(place):
            asked.append(str(place))
            raise SourceUnreachable(f"{place}: no answer")

    for bucket in ("first", "second"):
        with pytest.raises(SourceUnreachable, match="first"):
            ask(_at("http://127.0.0.1:1", bucket))
    assert len(asked) == 1


def test_another_server_and_one_that_answers_are_asked_each_time() -> None:
    servers, asked = UnreachableServers(), list[str]()
    with pytest.raises(SourceUnreachable), servers.fail_fast(_at("http://127.0.0.1:1", "a")):
        raise SourceUnreachable("no answer")
    for _ in range(2):
        with servers.fail_fast(_at("http://127.0.0.1:2", "a")):
            asked.append("second")
        with servers.fail_fast(Place("/landing")):
            asked.append("folder")
    assert asked == ["second", "folder"] * 2
