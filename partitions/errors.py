"""The one family of errors.

Each message says what was expected, what was found, where, and what to do. The class says how a caller
reacts: ``exit_code`` for the command line, ``transient`` for retries, ``choices`` for commands that help
the user on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

_LONGEST = 2000


_END_OF_SENTENCE = re.compile(r"\.\s+(?=[A-Z`])")


def shorten_to_line(text: str, longest: int = _LONGEST) -> str:
    """Return a library's message in one line, without its middle if it is long.

    The end stays, since it often names the cause.
    """
    line = _in_one_line(text)
    half = (longest - 3) // 2
    return line if len(line) <= longest else f"{line[:half]} … {line[-half:]}"


def first_sentence(text: str) -> str:
    """Return what a message says is wrong, in one line: its first sentence, without what to do."""
    return _END_OF_SENTENCE.split(_in_one_line(text), maxsplit=1)[0].removesuffix(".")


def _in_one_line(text: str) -> str:
    return "; ".join(stripped for part in text.splitlines() if (stripped := part.strip()))


def name_dataflow(name: str, message: str) -> str:
    """Return a message that begins with its dataflow's name, once: ``dataflow NAME: …``."""
    return f"dataflow {name}: {strip_dataflow(name, message)}"


def strip_dataflow(name: str, message: str) -> str:
    """Return a message without its dataflow's name in front, for a line that already names it."""
    return message.removeprefix(f"dataflow {name}: ")


class StrandlineError(Exception):
    """Base of all errors that the product raises on purpose.

    Attributes:
        code: stable machine name, shown in JSON output.
        exit_code: exit code of the command line (docs/reference/cli.md).
        transient: whether the same attempt can succeed later.
        choices: commands that help the user on, most advisable first.
    """

    code: str = "error"
    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False

    def __init__(self, message: str, *, code: str | None = None, choices: Sequence[str] = ()) -> None:
        """Keep the message, a more specific code if there is one, and the commands that help."""
        super().__init__(message)
        if code is not None:
            self.code = code
        self.choices = tuple(choices)

    @property
    def message(self) -> str:
        """The text for people."""
        return str(self.args[0])

    @property
    def is_of_missing_source(self) -> bool:
        """Whether there is nothing to read where a source, or a source of units, lies."""
        return "source_missing" in (self.code, getattr(self.__cause__, "code", None))


class ConfigurationError(StrandlineError, ValueError):  # a ValueError, so that pydantic says where it stood
    """A definition, a project file or a call argument that was refused before anything ran."""

    code = "configuration"
    exit_code = 2


class InvalidWatermarkValue(StrandlineError):
    """A value that no watermark can store; refused before it is written."""

    code = "invalid_watermark_value"


class PlanError(StrandlineError):
    """A plan that cannot be made."""

    code = "plan"


class SchemaError(StrandlineError):
    """An incoming schema that does not fit; ``reason`` and ``field`` say how and where."""

    code = "schema"

    def __init__(
        self, message: str, *, reason: str, field: str | None = None, choices: Sequence[str] = ()
    ) -> None:
        """Keep the reason's machine name and the column at fault, if there is one."""
        super().__init__(message, choices=choices)
        self.reason = reason
        self.field = field


class SchemaEvolved(StrandlineError):
    """Rows that need a new schema, which the schema mode allows: the run starts again with it.

    Attributes:
        pinned: the new schema's text.
        changes: the new parts of the schema, in words.
    """

    code = "schema_evolved"

    def __init__(self, message: str, *, pinned: str, changes: str) -> None:
        """Keep the text of the schema to pin next, and its new parts in words."""
        super().__init__(message)
        self.pinned, self.changes = pinned, changes


class SourceError(StrandlineError):
    """A source that cannot be read: missing folder or bucket, refused credentials, an unreadable place."""

    code = "source"


class SourceMissing(SourceError):
    """A folder or bucket that does not exist.

    Attributes:
        summary: what was expected and found, without what to do.
    """

    code = "source_missing"

    def __init__(self, summary: str, remedy: str) -> None:
        """Keep the summary; the message adds what to do."""
        super().__init__(f"{summary}. {remedy}")
        self.summary = summary


class SourceUnreachable(SourceError):
    """A source that did not answer, or moved during its listing; the same call may succeed later."""

    code = "source_unreachable"
    transient = True


class SourceInterrupted(SourceUnreachable):
    """A source that broke off or refuses connections for the moment; the run asks again before it fails."""


class BadPart(SourceError):
    """One part of a source that cannot be read.

    Attributes:
        part: the part's name for users.
        why: the fault itself, without its consequences.
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
        """Keep the part at fault."""
        super().__init__(message, code=code, choices=choices)
        self.part = part
        self.why = why or message


class BadFile(BadPart):
    """A file that cannot be read, vanished, or changed while it was loaded.

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
        """Keep the path of the file at fault."""
        super().__init__(message, part=path, why=why, code=code, choices=choices)
        self.path = path


class BadUnits(BadPart):
    """Work units that cannot be read.

    Attributes:
        units: by work unit (a window's start in epoch milliseconds, and a unit's identity), the fault.
    """

    code = "bad_units"

    def __init__(
        self, message: str, *, part: str, why: str, units: Mapping[tuple[int | None, str], str]
    ) -> None:
        """Keep the work units at fault."""
        super().__init__(message, part=part, why=why)
        self.units = dict(units)


class TooManyBadParts(BadPart):
    """More bad parts of one slice than may be passed over.

    Attributes:
        parts: the bad parts, the first one first.
    """

    def __init__(self, message: str, *, parts: Sequence[BadPart], code: str) -> None:
        """Keep the bad parts; the first one counts as the part at fault."""
        super().__init__(message, part=parts[0].part, why=parts[0].why, code=code)
        self.parts = tuple(parts)


class RulesBroken(StrandlineError):
    """More rows of a slice that fail a rule than the rule allows; nothing of the slice was loaded.

    Attributes:
        counts: rows that failed each rule, by its name.
        rows: rows that were checked.
    """

    code = "rules_broken"

    def __init__(self, message: str, *, counts: Mapping[str, int], rows: int) -> None:
        """Keep the counts, which the rules' checks show."""
        super().__init__(message)
        self.counts, self.rows = dict(counts), rows


class LogRestarted(StrandlineError):
    """Change events of a database whose log has begun anew; nothing of their slice was loaded."""

    code = "log_restarted"


class RuleUnfit(StrandlineError):
    """A rule whose condition has no value for some row; the number is given up."""

    code = "query"


class ProviderError(StrandlineError):
    """A failure of the watermark store; earlier saves remain."""

    code = "provider"
    transient = True


class ProviderRefused(ProviderError):
    """A refusal of the watermark store that lasts until an operator changes its set-up.

    Examples are credentials, privileges and a standby.
    """

    transient = False


class TargetError(StrandlineError):
    """A write that the target refused; nothing was committed."""

    code = "target"


class WriteConflict(TargetError):
    """Another writer committed first and changed the base of this write; a new attempt may succeed.

    Attributes:
        outlasted: whether all attempts of a run met such a conflict; callers then do not try again.
    """

    code = "write_conflict"
    transient = True
    outlasted = False


class RowsRefused(TargetError):
    """Rows of a slice that can never go into the table, such as rows with other columns."""


class Conflict(StrandlineError):
    """Another writer won the number; this writer saved nothing, and nothing was lost."""

    code = "conflict"
    exit_code = 3
    transient = True


class RejectedRowsChanged(Conflict):
    """A source that has other rows than those that a dead run rejected; the number is given up."""


class DataflowHeld(StrandlineError):
    """A live run or decision that holds the dataflow."""

    code = "held"
    exit_code = 3
    transient = True


class UpstreamNotLoaded(StrandlineError):
    """An upstream dataflow that failed in the same run, so this one was not started."""

    code = "upstream"


class NeedsDecision(StrandlineError):
    """A state that stops runs until an operator decides."""

    code = "decision"
    exit_code = 4


class CorruptWatermark(NeedsDecision):
    """Stored text that cannot be read. Never treated as "no watermark": that would load everything again."""

    code = "corrupt_state"
