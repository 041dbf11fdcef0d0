"""The remedies that a test follows: errors of this process, and the commands that it runs after them.

Belongs here: hearing of both while a test runs. What errors could name is in :mod:`tests.support.remedies`.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from partitions.errors import StrandlineError
from platform_assets.cli.main import strandline
from resources.loop.loop import Loop
from tests.support.feed import Feed
from tests.support.moves import restore
from tests.support.remedies import Remedy, command_of, commands_of

_WITH_VALUE = ("--project", "--now")
_ASKING = ("state", "drop", "promote", "delete", "splits")


def check_followed(test: pytest.Function, followed: set[Remedy]) -> None:
    """Fail if a test has not followed the remedies of its marks; one of several cases follows at least one."""
    marked = {
        Remedy(mark.args[0], command) for mark in test.iter_markers("remedy") for command in mark.args[1:]
    }
    is_case = hasattr(test, "callspec") and set(test.callspec.params) != {"engine"}
    missing = marked - followed
    if missing == marked if is_case else missing:
        pytest.fail(f"marked and not followed: {sorted(missing)}; followed: {sorted(followed)}")


@contextmanager
def hear_remedies() -> Iterator[set[Remedy]]:
    """Yield a set that gets each remedy whose command runs after an error of its code named it."""
    named, followed = set[Remedy](), set[Remedy]()
    make_error, main, run = StrandlineError.__init__, type(strandline).main, Loop.run

    def make(error: StrandlineError, message: str, **options: Any) -> None:
        make_error(error, message, **options)
        for text in (message, *error.choices):
            named.update(Remedy(error.code, command) for command in commands_of(text))

    def run_command(group: Any, args: Sequence[str] | None = None, *positional: Any, **options: Any) -> Any:
        hear(command_of(_without_shared_options(args or ())))
        return main(group, args, *positional, **options)

    def run_loop(loop: Loop[Any]) -> Any:
        hear("run")
        return run(loop)

    def hear(command: str) -> None:
        followed.update(remedy for remedy in named if remedy.command == command)

    with (
        patch.object(StrandlineError, "__init__", make),
        patch.object(type(strandline), "main", run_command),
        patch.object(Loop, "run", run_loop),
    ):
        yield followed


def _without_shared_options(words: Sequence[str]) -> Sequence[str]:
    """Return a command's words without the options that all commands take."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in _WITH_VALUE else 1]
    return rest or [""]


def follow(
    feed: Feed,
    choices: Sequence[str],
    rows: Any,
    *columns: str,
    instead: Mapping[str, Any] | None = None,
    **values: str,
) -> None:
    """Run each choice of an error on the project as it was, then the dataflow, and compare the rows.

    Args:
        feed: the dataflow after the error.
        choices: the commands that the error names.
        rows: the rows of the table afterwards; without columns, their ids.
        columns: the columns to compare.
        instead: other rows for single choices, by the choice's name.
        values: what stands for a word in capital letters, such as ``NUMBER``.
    """
    assert choices
    saved = feed.folder.parent / "saved"
    shutil.rmtree(saved, ignore_errors=True)
    shutil.copytree(feed.folder, saved)
    for choice in choices:
        restore(saved, feed.folder)
        words = [{"TEXT": "because", **values}.get(word, word) for word in shlex.split(choice)[1:]]
        feed.command(*words, *(["--yes"] if words[0] in _ASKING else []))
        feed.load()
        expected = (instead or {}).get(command_of(words), rows)
        assert (feed.rows(*columns) if columns else feed.ids) == expected, choice
        assert feed.load().status == "nothing", choice
