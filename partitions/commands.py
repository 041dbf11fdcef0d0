"""Commands of the command line in texts for people, with the environment that they are about."""

from __future__ import annotations

import re

_COMMAND = re.compile(r"`(strandline [^`]+)`")


def with_environment(command: str, env: str | None) -> str:
    """Return a command with ``--env``, so that a copy of it works on the same environment; None: none."""
    return f"{command} --env {env}" if env and command.startswith("strandline ") else command


def commands_with_environment(text: str, env: str | None) -> str:
    """Return a text whose commands, in backticks, have ``--env``."""
    return _COMMAND.sub(lambda match: f"`{with_environment(match[1], env)}`", text)
