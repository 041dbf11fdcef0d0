"""The one family of errors.

Every message says what was expected, what was found, where, and what to do. The class says how a caller reacts:
``exit_code`` for the command line, ``transient`` for retries, ``choices`` for the commands that get the user on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

_LONGEST = 2000


def in_one_line(text: str, most: int = _LONGEST) -> str:
    """Return what a library said in one line; a longer text loses its middle, since the cause often stands at its end."""
    line = "; ".join(stripped for part in text.splitlines() if (stripped := part.strip()))
    kept = (most - 3) // 2
    return line if len(line) <= most else f"{line[:kept]} … {line[-kept:]}"


class StrandlineError(Exception):
    """Base of all errors that the product raises on purpose.

    Attributes:
        code: stable machine name, shown in JSON output.
        exit_code: what the command line ends with (docs/reference/cli.md).
        transient: whether trying the same again can help.
        choices: commands that lead on, most advisable first.
    """

    code: str = "error"
    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False

    def __init__(self, message: str, *, code: str | None = None, choices: Sequence[str] = ()) -> None:
        """Keep the message, an optional finer code, and the commands that lead on."""
        super().__init__(message)
        if code is not None:
            self.code = code
        self.choices = tuple(choices)

    @property
    def message(self) -> str:
        """The text for people."""
        return str(self.args[0])


class ConfigurationError(StrandlineError, ValueError):  # a ValueError, so that pydantic says where it stood
    """A definition, a project file or a call argument was refused before anything ran."""

    code = "configuration"
    exit_code = 2


class InvalidWatermarkValue(StrandlineError):
    """A value that cannot be stored in a watermark; refused before it is written."""

    code = "invalid_watermark_value"


class PlanError(StrandlineError):
    """The plan cannot be made."""

    code = "plan"


class SchemaError(StrandlineError):
    """The incoming schema does not fit; ``reason`` and ``field`` say how and where."""

    code = "schema"

    def __init__(
        self, message: str, *, reason: str, field: str | None = None, choices: Sequence[str] = ()
    ) -> None:
        """Keep the reason's machine name and the column, if one is to blame."""
        super().__init__(message, choices=choices)
        self.reason = reason
        self.field = field


class SchemaEvolved(StrandlineError):
    """Rows need another schema than the pinned one, and the schema mode takes it: what was begun with the old one is begun again with the new.

    Attributes:
        pinned: the new schema's text.
        changes: what is new, in words.
    """

    code = "schema_evolved"

    def __init__(self, message: str, *, pinned: str, changes: str) -> None:
        """Keep the text of the schema that is pinned next, and what is new in it."""
        super().__init__(message)
        self.pinned, self.changes = pinned, changes


class SourceError(StrandlineError):
    """The source cannot be read: missing folder or bucket, refused credentials, an unreadable place."""

    code = "source"


class SourceUnreachable(SourceError):
    """The source did not answer, or moved while it was being listed; the same call may succeed later."""

    code = "source_unreachable"
    transient = True


class SourceInterrupted(SourceUnreachable):
    """The source broke off, or lets nobody in for the moment; a run asks it again before it fails."""


class BadPart(SourceError):
    """One part of a source cannot be read.

    Attributes:
        part: which one, as a user knows it.
        why: what is wrong with it, without what follows from that.
    """

    code = "bad_part"

    def __init__(
        self,
        message: str,
        *,
        part: str,
        why: str | None = None,
        code: str | None = None,
        choices: Sequence[str] = (),
    ) -> None:
        """Keep the part that is to blame."""
        super().__init__(message, code=code, choices=choices)
        self.part = part
        self.why = why or message


class BadFile(BadPart):
    """One file cannot be read, vanished, or changed while it was being loaded.

    Attributes:
        path: the file, relative to the source's root.
    """

    code = "bad_file"

    def __init__(
        self,
        message: str,
        *,
        path: str,
        why: str | None = None,
        code: str | None = None,
        choices: Sequence[str] = (),
    ) -> None:
        """Keep the path of the file that is to blame."""
        super().__init__(message, part=path, why=why, code=code, choices=choices)
        self.path = path


class BadUnits(BadPart):
    """Work units that cannot be read.

    Attributes:
        units: each work unit's key, a window's start (epoch milliseconds) and a unit's identity, with what is wrong.
    """

    code = "bad_units"

    def __init__(self, message: str, *, part: str, units: Mapping[tuple[int | None, str], str]) -> None:
        """Keep the work units that are to blame."""
        super().__init__(message, part=part, why="; ".join(dict.fromkeys(units.values())))
        self.units = dict(units)


class ProviderError(StrandlineError):
    """The watermark store failed; what was saved before stands."""

    code = "provider"
    transient = True


class ProviderRefused(ProviderError):
    """The watermark store answered, and refuses until an operator changes its set-up: credentials, privileges, a standby."""

    transient = False


class TargetError(StrandlineError):
    """The target refused the write; nothing was committed."""

    code = "target"


class WriteConflict(TargetError):
    """Another writer has committed first, and touched what this write builds on; the same write may succeed now.

    Attributes:
        outlasted: whether all attempts of a run have met such a conflict: who is around them does not try again.
    """

    code = "write_conflict"
    transient = True
    outlasted = False


class RowsRefused(TargetError):
    """The rows of a slice cannot go into the table, now or later, as where their columns are others."""


class Conflict(StrandlineError):
    """Another writer won the number; nothing was lost, and nothing of this writer was saved."""

    code = "conflict"
    exit_code = 3
    transient = True


class Held(StrandlineError):
    """Another run, known to live, holds the dataflow."""

    code = "held"
    exit_code = 3
    transient = True


class UpstreamNotLoaded(StrandlineError):
    """A dataflow that makes what this one reads did not get through in the same run, so this one was not started."""

    code = "upstream"


class NeedsDecision(StrandlineError):
    """The state does not let a run go on by itself; an operator chooses."""

    code = "decision"
    exit_code = 4


class CorruptWatermark(NeedsDecision):
    """Stored text that cannot be read. Never treated as "no watermark": that would load everything again."""

    code = "corrupt_state"
