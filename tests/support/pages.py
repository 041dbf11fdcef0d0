"""Pages of docs whose blocks a test runs from top to bottom, like a reader who copies them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.environment import clean_environment

CHECKOUT = Path(__file__).resolve().parents[2]

_BLOCK = re.compile(
    r"^```(sh|python|yaml|text)([^\n]*)\n(.*?)^```$(\n\n(?=```text\n))?", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"# (\S+\.(?:yaml|py))\n")
_SECOND_TERMINAL, _EACH_TERMINAL = 'title="second terminal"', 'title="each terminal"'
_CHANGES = re.compile(r"\d+\.\d+ s\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
"""Seconds that something took, and the time of day: another in each run."""


@dataclass(frozen=True)
class Step:
    """A block of a page.

    Attributes:
        language: ``sh``, ``python`` or ``yaml``.
        title: what follows the language.
        text: the block.
        output: the lines that the page shows right below it, in their order; others may come between them.
    """

    language: str
    title: str
    text: str
    output: tuple[str, ...] = ()


def steps(page: str) -> list[Step]:
    """Return the blocks of a page that run; a block of text right below one is its output."""
    page_steps = list[Step]()
    has_output = False
    for language, title, text, shows_output in _BLOCK.findall(page):
        if language != "text":
            page_steps.append(Step(language, title.strip(), text))
        elif has_output:
            page_steps[-1] = Step(
                page_steps[-1].language, page_steps[-1].title, page_steps[-1].text, tuple(text.splitlines())
            )
        has_output = bool(shows_output)
    return page_steps


@dataclass
class Reader:
    """Somebody who works through a page in a folder.

    Attributes:
        folder: an empty one.
        remote: the address of a Spark Connect server.
        environment: the variables with which its commands are found; None: those of the checkout.
        ports: those of a page, and the free ones that stand for them.
        outputs: of the blocks so far.
    """

    folder: Path
    remote: str
    ports: dict[str, int] = field(default_factory=dict)
    environment: Mapping[str, str] | None = None
    outputs: list[str] = field(default_factory=list)
    _variables: dict[str, str] = field(default_factory=dict)
    _terminals: ExitStack = field(default_factory=ExitStack)

    @contextmanager
    def at_work(self) -> Iterator[Reader]:
        """Close the second terminal at the end."""
        environment = self._checkout() if self.environment is None else self.environment
        self._variables = {**environment, "STRANDLINE_SPARK_REMOTE": self.remote, "COLUMNS": "160"}
        with self._terminals:
            yield self

    def _checkout(self) -> dict[str, str]:
        """Return variables with which the checkout's commands are found."""
        commands = self.folder / ".bin"
        commands.mkdir()
        for name, module in {"strandline": "platform_assets.cli", "python": "", "dagster": "dagster"}.items():
            script = commands / name
            script.write_text(f'#!/bin/sh\nexec {sys.executable} {f"-m {module}" if module else ""} "$@"\n')
            script.chmod(0o755)
        return clean_environment() | {
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
        }

    def do(self, step: Step) -> None:
        """Do what a block says.

        Raises:
            AssertionError: if it fails, or shows something else than the page.
        """
        text = step.text
        for page_port, port in self.ports.items():
            text = text.replace(page_port, str(port))
        named = _FILE.match(text)
        if named is not None:
            path = self.folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif step.title == _SECOND_TERMINAL:
            self._open_terminal(text)
        elif step.title == _EACH_TERMINAL:
            environment_text = self._run("sh", "-ec", f"{text}\nenv -0")
            self._variables |= dict(
                line.split("=", 1) for line in environment_text.split("\0") if "=" in line
            )
        elif step.language != "yaml":
            command = ("sh", "-ec", text) if step.language == "sh" else ("python", "-c", text)
            self._compare(step, self._run(*command))

    def _run(self, *command: str) -> str:
        result = subprocess.run(
            command,
            cwd=self.folder,
            env=self._variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        assert result.returncode == 0, f"{command[-1]}\n{result.stdout}"
        self.outputs.append(result.stdout)
        return result.stdout

    def _open_terminal(self, text: str) -> None:
        process = subprocess.Popen(
            shlex.split(text), cwd=self.folder, env=self._variables, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        self._terminals.callback(process.wait)
        self._terminals.callback(process.terminate)
        assert "ready" in process.stdout.readline()

    def _compare(self, step: Step, shown_output: str) -> None:
        lines = iter(_CHANGES.sub("…", line).rstrip() for line in shown_output.splitlines())
        for expected in step.output:
            pattern = ".*".join(map(re.escape, _CHANGES.sub("…", expected).rstrip().split("…")))
            assert any(re.fullmatch(pattern, line) for line in lines), (
                f"{step.text}\n{expected}\n--\n{shown_output}"
            )
