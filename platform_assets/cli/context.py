"""The parts that all commands share: the project, the clock, and one way to show a result."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

if TYPE_CHECKING:
    from rich.console import Console

    from partitions.dataflow import Dataflow
    from platform_assets.project import InvalidProject, Project

Command = TypeVar("Command", bound=Callable[..., Any])

_WIDE = 160
"""The line width without a terminal."""

_FOLDER = click.Path(path_type=Path)


@dataclass
class Context:
    """One call of the command line.

    Attributes:
        folder: the project folder; None is the default project.
        env: the environment; None: the one that ``STRANDLINE_ENV`` names, if any.
        as_json: one JSON document on stdout, everything else on stderr.
        now: the clock for plans and comparisons of times, in UTC; None is the real clock.
        results: the stream of the JSON document; None is stdout.
    """

    folder: Path | None = None
    env: str | None = None
    as_json: bool = False
    now: datetime | None = None
    results: TextIO | None = field(default=None, compare=False)

    @cached_property
    def project(self) -> Project:
        """Return the project, loaded on first use.

        Raises:
            ConfigurationError: if there is none.
        """
        from platform_assets.project import load_project

        return load_project(self.folder, env=self.env)

    def dataflows(self, names: Sequence[str]) -> list[Dataflow]:
        """Return the dataflows with these names; without names all valid dataflows.

        Without names, a line on stderr reports each invalid one.

        Raises:
            InvalidProject: if platform.yaml or a named file has errors.
            ConfigurationError: if a name is unknown.
        """
        flows = self.project.named(names)
        for name in () if names else self.project.broken:
            click.echo(f"{name}: ignored, its file has errors; run `strandline validate`", err=True)
        return flows

    def valid_and_broken(self, names: Sequence[str]) -> tuple[list[Dataflow], dict[str, InvalidProject]]:
        """Return the valid dataflows with these names, and the errors of the invalid ones, by name.

        Without names it returns all of both.

        Raises:
            InvalidProject: if platform.yaml has errors, or the only named file.
            ConfigurationError: if a name is unknown.
        """
        from platform_assets.project import InvalidProject

        project, named = self.project, list(dict.fromkeys(names))
        if len(named) == 1:
            return project.named(named), {}
        broken = [name for name in named or project.broken if name in project.broken]
        valid = [name for name in named if name not in broken]
        flows = project.named(valid) if valid or not named else []
        return flows, {name: InvalidProject(project.broken[name]) for name in broken}

    def emit(self, document: Any, print_: Callable[[], None]) -> None:
        """Print a result: the document as JSON, or what ``print_`` prints."""
        if self.as_json:
            click.echo(self.hide(json.dumps(document, indent=2, allow_nan=False)), file=self.results)
        else:
            print_()

    def write(self, text: str) -> None:
        """Write a text to stdout as it is, without the values of the project's secrets."""
        click.echo(self.hide(text), nl=False)

    def offer(self, choices: Sequence[str], indent: int = 2, *, err: bool = False) -> None:
        """Print commands to choose from, a line each, with the --project and --env of this call.

        A copied command must not work on another project or environment.
        """
        of_project = f" --project {shlex.quote(str(self.folder))}" if self.folder else ""
        of_project += f" --env {shlex.quote(self.env)}" if self.env else ""
        for choice in choices:
            click.echo(f"{' ' * indent}{choice}{of_project}", err=err)

    def hide(self, text: str) -> str:
        """Return a text without the values of the project's secrets."""
        return self.__dict__["project"].hide(text) if "project" in self.__dict__ else text

    @cached_property
    def console(self) -> Console:
        """Return the console for tables and progress on stdout; it is imported only when people read it."""
        from rich.console import Console

        # File names may hold brackets and colons, which are neither markup nor emoji.
        width = None if sys.stdout.isatty() else _WIDE
        return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, width=width)


def shared_options(command: Command) -> Command:
    """Give a command the shared options and, as its first argument, the :class:`Context`.

    Group and command both accept the options, so that they may stand before or after the command.
    """

    @wraps(command)
    def with_context(*args: Any, **kwargs: Any) -> Any:
        return command(click.get_current_context().ensure_object(Context), *args, **kwargs)

    options = (
        _option("--project", "folder", type=_FOLDER, metavar="DIR", help="The project folder."),
        _option(
            "--env", "env", metavar="NAME", help="The environment: platform.NAME.yaml over platform.yaml."
        ),
        _option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
        _option(
            "--now",
            "now",
            type=_Instant(),
            help="Use this instant as the current time; UTC if it has no zone.",
        ),
    )
    for option in reversed(options):
        with_context = option(with_context)
    return with_context  # type: ignore[return-value]


def _option(flag: str, name: str, **settings: Any) -> Callable[[Any], Any]:
    def store_value(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value not in (None, False):
            setattr(context.ensure_object(Context), str(parameter.name), value)

    return click.option(flag, name, callback=store_value, expose_value=False, is_eager=True, **settings)


class _Instant(click.ParamType[datetime]):
    """An ISO 8601 date or time; without a zone it is UTC."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            instant = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"expected an instant such as 2026-04-03T09:15:00Z, found {value!r}", param, ctx)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
