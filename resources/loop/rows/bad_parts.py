"""How a run treats a slice with an unreadable part: skip the part, defer it, or load up to it.

See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from partitions.errors import BadPart, StrandlineError, TooManyBadParts, strip_dataflow
from partitions.path.bad_files import is_loaded
from partitions.plan import pluralize
from resources.kinds.contract.bad_parts import SetsAside
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.outcome import LeftOut, Outcome

SKIPPED = "skipped"
"""First word of a warning about a part without which a slice was committed."""

SHOWN = 20
"""Bad files, or work units that could not be read, that an error names, each with its whole reason."""


class BadPartPolicy(Generic[SliceT]):
    """The policy of one run for unreadable parts; records each choice in the run's outcome."""

    def __init__(self, run: RunContext[SliceT], outcome: Outcome, *, limited: bool = True) -> None:
        """Bind the policy to a run and its outcome.

        Args:
            run: the run.
            outcome: the record of choices.
            limited: whether too many bad parts stop the run.
        """
        self._limited = limited
        self._run, self._bad_parts, self._outcome = run, run.kind.bad_parts, outcome
        self.not_sampled: list[BadPart] = []
        self._too_many: list[TooManyBadParts] = []

    def skip_bad_parts(self, slice_: SliceT, bad: BadPart, pinned: str) -> SliceT | None:
        """Return the slice without its bad parts and warn of each; None if the policy does not allow it."""
        rest = None if is_loaded(bad.code) else self._bad_parts.slice_without(slice_, bad)
        if rest is None:
            return None
        self._warn(bad)
        for other_bad in self._find_others(rest, pinned, bad):
            rest = self._bad_parts.slice_without(rest, other_bad) or rest
            self._warn(other_bad)
        self.check_count(rest, pinned)
        return rest

    def check_count(self, rest: SliceT, pinned: str | None) -> None:
        """Raise TooManyBadParts if a slice passes over too many parts; no warning then says that it does.

        Args:
            rest: the slice without its bad parts.
            pinned: the schema that the slice is read with; None if there is none yet.
        """
        bad_parts = self._bad_parts
        if not (self._limited and isinstance(bad_parts, SetsAside)):
            return
        too_many = bad_parts.too_many(rest, self._outcome.newest, lambda: self._find_all(rest, pinned))
        if too_many is None:
            return
        lines = {_skipped_line(bad) for bad in too_many.parts}
        self._outcome.warnings[:] = [line for line in self._outcome.warnings if line not in lines]
        parts = {bad.part for bad in too_many.parts}
        self.not_sampled[:] = [bad for bad in self.not_sampled if bad.part not in parts]
        raise too_many

    def leave_out_all(self, slice_: SliceT, bad: TooManyBadParts) -> bool:
        """Record all bad files of a late slice as left out, and return True; else return False."""
        left_out = [self.leave_out(slice_, part, None) for part in bad.parts]
        if not any(left_out):
            return False
        self._too_many.append(bad)
        return True

    def leave_out(self, slice_: SliceT, bad: BadPart, pinned: str | None) -> bool:
        """Record an unreadable late or released file as left out, and return True; else return False.

        The run must stop at any other part. Other files of the slice that are bad alike are left out, too.
        """
        bad_parts = self._bad_parts
        if (
            slice_.why in ("run", "replay", "reconcile")
            or not isinstance(bad_parts, SetsAside)
            or not slice_.contains(bad)
        ):
            return False
        label = "released" if slice_.why == "release" else "late"
        self._outcome.left_out[bad.part] = LeftOut(label, bad)
        rest = bad_parts.defer(slice_, (bad.part,))
        if rest is not None and pinned is not None and not is_loaded(bad.code):
            for other_bad in self._find_others(rest, pinned, bad):
                self._outcome.left_out[other_bad.part] = LeftOut(label, other_bad)
        return True

    def without_left_out(self, slices: Sequence[SliceT]) -> list[SliceT]:
        """Return the slices without the parts that this run has left out."""
        bad_parts, left_out = self._bad_parts, self._outcome.left_out
        if not (left_out and isinstance(bad_parts, SetsAside)):
            return list(slices)
        rest = (slice_ if slice_.why == "run" else bad_parts.defer(slice_, left_out) for slice_ in slices)
        return [slice_ for slice_ in rest if slice_ is not None]

    def before(self, slices: Sequence[SliceT], bad: BadPart) -> list[SliceT]:
        """Return the slices, or parts of them, that come before a bad part."""
        earlier: list[SliceT] = []
        for slice_ in slices:
            if slice_.contains(bad):
                shorter = slice_.up_to(bad)
                return earlier if shorter is None else [*earlier, shorter]
            earlier.append(slice_)
        return earlier

    def warn_of_waiting(self) -> None:
        """Warn of the unreadable parts that the first commit will skip."""
        waiting = {bad.part: bad.why for bad in self.not_sampled}
        self._outcome.warnings += [
            f"{part} cannot be read; the first commit skips it: {why}" for part, why in waiting.items()
        ]

    def report(self) -> None:
        """Report the parts that were left out: as the run's error, or as warnings if it has another error."""
        outcome = self._outcome
        left_out = list(outcome.left_out.values())
        if outcome.error is not None:
            outcome.warnings += [f"left out: {part}" for part in left_out]
        elif left_out:
            outcome.error = _left_out_error(self._run.name, left_out, self._too_many)

    def _find_others(self, slice_: SliceT, pinned: str, bad: BadPart) -> Sequence[BadPart]:
        """Return the other parts of a slice that are bad in the same way, as far as one check shows."""
        bad_parts = self._bad_parts
        if not isinstance(bad_parts, SetsAside):
            return ()
        return bad_parts.find_others(self._run.spark, slice_, pinned, bad)

    def _find_all(self, slice_: SliceT, pinned: str | None) -> Sequence[BadPart]:
        """Return all parts of a slice that one check shows to be bad."""
        bad_parts = self._bad_parts
        if not isinstance(bad_parts, SetsAside) or pinned is None:
            return ()
        return bad_parts.find_others(self._run.spark, slice_, pinned, None)

    def _warn(self, bad: BadPart) -> None:
        self._outcome.warnings.append(_skipped_line(bad))
        self.not_sampled.append(bad)


def _skipped_line(bad: BadPart) -> str:
    return f"{SKIPPED} {bad.part}: {bad.why}"


def _left_out_error(
    dataflow: str, left_out: Sequence[LeftOut], too_many: Sequence[TooManyBadParts]
) -> StrandlineError:
    """Return the error of a run that loaded everything but the parts that it left out."""
    loaded = [part for part in left_out if is_loaded(part.bad.code)]
    waiting = [part for part in left_out if part not in loaded]
    if not waiting:
        return loaded[0].bad
    parts = [str(part) for part in waiting[:SHOWN]]
    parts += [f"and {pluralize(len(waiting) - SHOWN, 'more file')}"] if len(waiting) > SHOWN else []
    it = "it" if len(waiting) == 1 else "them"
    remedy = "Or set on_bad_file: quarantine, which quarantines unreadable files."
    if too_many:
        remedy = "".join(strip_dataflow(dataflow, error.message) for error in too_many)
    return BadPart(
        f"dataflow {dataflow}: {'; '.join(parts)}. Other files still load, and the watermark does not "
        f"depend on {it}. Repair or remove {it}: each run tries {it} again. {remedy}"
        f"{''.join(f' {part.bad.message}' for part in loaded)}",
        part=waiting[0].bad.part,
        why=waiting[0].bad.why,
        code=too_many[0].code if too_many else waiting[0].bad.code,
    )
