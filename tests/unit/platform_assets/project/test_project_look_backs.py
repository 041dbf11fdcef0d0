"""Look-back on a connection of platform.yaml: what its dataflows above a column watermark take of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from partitions.fingerprint import fingerprint
from platform_assets.project import Project, load_project
from resources.connections.jdbc import JdbcConnection

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Project]

ERP = "connections: {{erp: {{type: jdbc, url: 'jdbc:postgresql://h/erp', {look_back}}}}}\n"
FLOW = """\
source: {{type: jdbc, connection: erp, table: t}}
watermark: {{type: column, columns: [at]{look_back}}}
target: {target}
"""
REPLACED = "{load: merge_overwrite, replace_by_watermark: true}"
APPENDED = "{load: append}"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A project of a connection and a dataflow, of which several can be made."""
    (tmp_path / "dataflows").mkdir()

    def project(platform: str, flow: str) -> Project:
        (tmp_path / "platform.yaml").write_text(platform)
        (tmp_path / "dataflows" / "flow.yaml").write_text(flow)
        return load_project(tmp_path, environment={})

    return project


def taken(make: Make, connection: str, flow: str = "", target: str = REPLACED) -> Any:
    """The look-back of a dataflow, or its errors."""
    own = f", {flow}" if flow else ""
    project = make(ERP.format(look_back=connection), flow=FLOW.format(look_back=own, target=target))
    if project.errors:
        return [(error.key, error.actual, error.expected) for error in project.errors]
    block = project.named(["flow"])[0].column.backward
    return block and block.units


@pytest.mark.parametrize(
    "connection", ["backward: {days: 7, hours: 2}", "backward_days: 7, backward: {hours: '2'}"]
)
def test_a_dataflow_without_a_look_back_takes_its_connections(make: Make, connection: str) -> None:
    assert taken(make, connection) == {"days": 7, "hours": 2}


@pytest.mark.parametrize(
    ("own", "expected"), [("backward: {months: 1}", {"months": 1}), ("backward_days: 0", {"days": 0})]
)
def test_a_block_replaces_the_connections_as_a_whole(make: Make, own: str, expected: dict[str, int]) -> None:
    assert taken(make, "backward: {days: 7, hours: 2}", own) == expected


def test_append_refuses_the_connections_look_back_and_an_empty_block_turns_it_off(make: Make) -> None:
    ((key, found, expected),) = taken(make, "backward_days: 7", target=APPENDED)
    assert (key, found) == ("watermark.backward", "a look-back beside load: append")
    assert "or no look-back (`backward: {}` turns off the connection's)" in expected
    assert taken(make, "backward_days: 7", "backward: {}", APPENDED) == {}


def test_a_dataflow_of_windows_takes_none(make: Make) -> None:
    project = make(
        ERP.format(look_back="backward_days: 7"),
        flow="source: {type: jdbc, connection: erp, table: t, window_column: at}\n"
        "watermark: {type: window, window: daily, definition: [{name: day, type: datetime, range: {from: '2024-01-01', to: '-'}}]}\n"
        f"target: {REPLACED}\n",
    )
    assert not project.errors


@pytest.mark.parametrize(
    ("connection", "key"),
    [
        ("backward_days: -1", "connections.erp"),
        ("backward: {days: 1.5}", "connections.erp.backward.days"),
        ("backward: {weeks: 1}", "connections.erp.backward.weeks"),
        ("backward_weeks: 1", "connections.erp.backward_weeks"),
        ("backward: 7", "connections.erp.backward"),
    ],
)
def test_a_connections_wrong_look_back_is_of_settings(make: Make, connection: str, key: str) -> None:
    errors = taken(make, connection, "backward: {days: 1}")
    assert [error[0] for error in errors] == [key], errors


def test_a_look_back_changes_neither_the_address_nor_the_fingerprint(make: Make) -> None:
    with_, without = (
        make(ERP.format(look_back=text), flow=FLOW.format(look_back=", backward: {days: 1}", target=REPLACED))
        for text in ("backward_days: 7", "user: me")
    )
    assert with_.connection("erp", JdbcConnection) == JdbcConnection.parse("jdbc:postgresql://h/erp")
    plain = make(
        ERP.format(look_back="user: me"),
        flow=FLOW.format(look_back="", target=REPLACED).replace(REPLACED, APPENDED),
    )
    inherited = make(
        ERP.format(look_back="backward_days: 7"), flow=FLOW.format(look_back="", target=REPLACED)
    )
    assert (
        len({fingerprint(project.named(["flow"])[0]) for project in (with_, without, plain, inherited)}) == 1
    )
