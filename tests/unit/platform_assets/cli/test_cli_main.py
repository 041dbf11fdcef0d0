"""The command line's frame: options, exit codes, errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from partitions.errors import Conflict, NeedsDecision, SourceError
from platform_assets.cli import main
from platform_assets.cli.context import Context, shared_options
from tests.support.projects import FILES, project_of

Probe = Callable[[Context], Any]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run the command line with a command ``probe`` that does what a test gives it."""

    def run(*arguments: str, probe: Probe = lambda context: None) -> Result:
        @click.command("probe")
        @shared_options
        def command(context: Context) -> Any:
            return probe(context)

        module = ModuleType("probe")
        module.command = command  # type: ignore[attr-defined]
        monkeypatch.setitem(main.COMMANDS, "probe", "A command of the tests.")
        monkeypatch.setattr(main, "import_module", lambda name: module)
        return CliRunner().invoke(main.strandline, list(arguments))

    return run


def _raise(error: BaseException) -> Probe:
    def probe(context: Context) -> None:
        raise error

    return probe


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a good and a bad dataflow."""
    return project_of(tmp_path, good=FILES, bad=FILES + "lyer: x\n")


OPTIONS = ["--json", "--project", "somewhere", "--now", "2026-04-03T09:15:00+02:00"]


@pytest.mark.parametrize("place", ["before", "after", "both"])
def test_shared_options_stand_before_or_after_commands(call: Callable[..., Result], place: str) -> None:
    seen: list[Context] = []
    before = OPTIONS if place == "before" else OPTIONS[:1] if place == "both" else []
    after = OPTIONS if place == "after" else OPTIONS[1:] if place == "both" else []
    assert call(*before, "probe", *after, probe=seen.append).exit_code == 0
    assert seen == [Context(Path("somewhere"), as_json=True, now=datetime(2026, 4, 3, 7, 15, tzinfo=UTC))]


def test_an_option_after_the_command_counts_more(call: Callable[..., Result]) -> None:
    seen: list[Context] = []
    call("--project", "a", "probe", "--project", "b", probe=seen.append)
    assert seen[0].folder == Path("b")


@pytest.mark.parametrize(
    ("text", "now"),
    [
        ("2026-04-03", datetime(2026, 4, 3, tzinfo=UTC)),
        ("2026-04-03T09:15", datetime(2026, 4, 3, 9, 15, tzinfo=UTC)),
        ("2026-04-03T09:15:00.123Z", datetime(2026, 4, 3, 9, 15, 0, 123000, tzinfo=UTC)),
        ("2026-04-03T09:15:00-05:00", datetime(2026, 4, 3, 14, 15, tzinfo=UTC)),
    ],
)
def test_a_naive_now_is_utc(call: Callable[..., Result], text: str, now: datetime) -> None:
    seen: list[Context] = []
    call("probe", "--now", text, probe=seen.append)
    assert seen[0].now == now
    assert seen[0].now.tzinfo is UTC


@pytest.mark.parametrize(
    "arguments",
    [
        ["probe", "--now", "soon"],
        ["--now", "2026-13-01", "probe"],
        ["probe", "--bogus"],
        ["--bogus", "probe"],
        ["probe", "extra"],
        ["prob"],
        ["probe", "--project"],
    ],
)
def test_wrong_usage_is_exit_2_in_text_and_json(call: Callable[..., Result], arguments: list[str]) -> None:
    people = call(*arguments)
    assert (people.exit_code, people.stdout) == (2, "")
    assert "Error:" in people.stderr
    machine = call("--json", *arguments)
    assert (machine.exit_code, machine.stderr) == (2, "")
    error = json.loads(machine.stdout)["error"]
    assert (error["code"], error["choices"]) == ("usage", [])
    assert error["message"]


def test_json_after_what_is_wrong_still_gives_json(call: Callable[..., Result]) -> None:
    assert json.loads(call("probe", "--bogus", "--json").stdout)["error"]["code"] == "usage"


def test_an_unknown_command_names_the_nearest(call: Callable[..., Result]) -> None:
    assert "no command 'prbe': did you mean probe?" in call("prbe").stderr
    assert "no command 'zzz': expected one of init" in call("zzz").stderr


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (SourceError("no such bucket"), 1, "source"),
        (Conflict("another writer"), 3, "conflict"),
        (NeedsDecision("state lost", choices=["strandline adopt x", "strandline reset x"]), 4, "decision"),
        (ZeroDivisionError("division by zero"), 1, "internal"),
    ],
)
def test_every_error_has_its_exit_code_and_one_json_document(
    call: Callable[..., Result], error: Exception, code: int, name: str
) -> None:
    machine = call("--json", "probe", probe=_raise(error))
    assert (machine.exit_code, machine.stderr) == (code, "")
    document = json.loads(machine.stdout)["error"]
    assert document["code"] == name
    assert str(error) in document["message"]
    assert document["choices"] == list(getattr(error, "choices", ()))


def test_people_read_errors_and_choices_on_stderr(call: Callable[..., Result]) -> None:
    answer = call("probe", probe=_raise(NeedsDecision("state lost", choices=["strandline state reset x"])))
    assert (answer.exit_code, answer.stdout) == (4, "")
    assert answer.stderr == "strandline: state lost\n  strandline state reset x\n"


def test_a_command_to_choose_names_the_project_that_the_call_has_named(call: Callable[..., Result]) -> None:
    lost = NeedsDecision("state lost", choices=["strandline state reset x"])
    answer = call("--project", "my project", "probe", probe=_raise(lost))
    assert answer.stderr == "strandline: state lost\n  strandline state reset x --project 'my project'\n"


def test_a_traceback_is_shown_only_when_asked_for(
    call: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STRANDLINE_DEBUG", raising=False)
    quiet = call("probe", probe=_raise(KeyError("x")))
    assert quiet.stderr == "strandline: KeyError: 'x' (STRANDLINE_DEBUG=1 shows where)\n"
    monkeypatch.setenv("STRANDLINE_DEBUG", "1")
    assert "Traceback (most recent call last)" in call("probe", probe=_raise(KeyError("x"))).stderr


@pytest.mark.parametrize(("stop", "goes_on"), [(KeyboardInterrupt(), True), (click.Abort(), False)])
def test_an_interrupt_is_exit_130_and_says_that_the_same_command_goes_on(
    call: Callable[..., Result], stop: BaseException, goes_on: bool
) -> None:
    answer = call("--json", "probe", probe=_raise(stop))
    error = json.loads(answer.stdout)["error"]
    assert (answer.exit_code, error["code"]) == (130, "interrupted")
    assert ("the same command continues" in error["message"]) is goes_on


def test_a_command_returns_its_exit_code(call: Callable[..., Result]) -> None:
    assert call("probe", probe=lambda context: 3).exit_code == 3
    assert call("probe").exit_code == 0


def test_results_are_json_or_for_people(call: Callable[..., Result]) -> None:
    def probe(context: Context) -> None:
        context.emit([{"größe": 1}], lambda: context.console.print("for people: [a]", markup=False))

    assert json.loads(call("--json", "probe", probe=probe).stdout) == [{"größe": 1}]
    assert call("probe", probe=probe).stdout == "for people: [a]\n"


def test_all_valid_dataflows_run_beside_broken_ones(call: Callable[..., Result], project: Path) -> None:
    names: list[str] = []
    answer = call(
        "probe",
        "--project",
        str(project),
        probe=lambda context: names.extend(f.name for f in context.dataflows([])),
    )
    assert (answer.exit_code, names) == (0, ["good"])
    assert answer.stderr == "bad: ignored, its file has errors; run `strandline validate`\n"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("bad", "project", "dataflows/bad.yaml:3: lyer: found an unknown key"),
        ("god", "unknown_dataflow", "expected the name of a dataflow, found 'god': did you mean good?"),
        (
            "x",
            "unknown_dataflow",
            "expected the name of a dataflow, found 'x': project {project} has good, bad",
        ),
    ],
)
def test_a_broken_or_unknown_name_is_exit_2(
    call: Callable[..., Result], project: Path, name: str, code: str, message: str
) -> None:
    answer = call(
        "--json", "probe", "--project", str(project), probe=lambda context: context.dataflows([name])
    )
    assert answer.exit_code == 2
    error = json.loads(answer.stdout)["error"]
    assert error["code"] == code
    assert message.format(project=project) in error["message"]


def test_broken_settings_stop_every_dataflow(call: Callable[..., Result], project: Path) -> None:
    (project / "platform.yaml").write_text("lake: 5\n")
    answer = call("probe", "--project", str(project), probe=lambda context: context.dataflows([]))
    assert (answer.exit_code, "platform.yaml:1: lake: found 5" in answer.stderr) == (2, True)


def test_a_secret_in_any_error_is_replaced(
    call: Callable[..., Result], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAND_SECRET", "hunter2-and-more")
    monkeypatch.setenv("STRANDLINE_DEBUG", "1")
    (project / "platform.yaml").write_text(
        "connections: {land: {type: s3, secret_access_key: {env: LAND_SECRET}}}\n"
    )

    def probe(context: Context) -> None:
        _ = context.project
        raise RuntimeError("denied for hunter2-and-more")

    answer = call("probe", "--project", str(project), probe=probe)
    assert "hunter2" not in answer.output
    assert "denied for {env: LAND_SECRET}" in answer.stderr


def test_help_lists_every_command_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    monkeypatch.setattr(main, "import_module", refuse)
    answer = CliRunner().invoke(main.strandline, ["--help"])
    assert answer.exit_code == 0
    for name, text in main.COMMANDS.items():
        assert name in answer.stdout
        assert text in answer.stdout


@pytest.mark.parametrize("group", ["state", "schema", "files"])
def test_the_help_of_a_group_cuts_no_text_of_a_command(group: str) -> None:
    answer = CliRunner().invoke(main.strandline, [group, "--help"], terminal_width=80)
    assert answer.exit_code == 0
    assert not [line for line in answer.stdout.splitlines()[1:] if line.endswith("...")]


def test_every_registered_command_exists() -> None:
    for name in main.COMMANDS:
        command = main.strandline.get_command(click.Context(main.strandline), name)
        assert command is not None
        assert command.name == name


WINDOWS = """
source: {type: table, table: raw/events, window_column: at}
watermark: {type: window, window: daily, definition: [{name: t, type: datetime, range: {from: "2020-01-01", to: "-"}}]}
target: {load: merge_overwrite, replace_by_watermark: true}
"""


def test_run_asks_before_it_loads_windows_that_are_still_to_come(project: Path) -> None:
    (project / "dataflows/windows.yaml").write_text(WINDOWS)
    far = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    arguments = ["--project", str(project), "run", "windows", "--now", far]
    answer = CliRunner().invoke(main.strandline, arguments, input="n\n")
    assert answer.exit_code == 130
    assert "beyond this machine's clock: future windows of windows would count" in answer.stderr
    assert "stopped by the user" in answer.stderr
    assert not (project / "state").exists()
