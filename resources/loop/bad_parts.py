"""What becomes of the rest of a slice if part of it cannot be read: passed over, deferred, or loaded up to it (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from partitions.errors import BadPart, StrandlineError
from partitions.path.bad_files import is_loaded
from partitions.plan import pluralize
from resources.kinds.contract.bad_parts import SetsAside
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.outcome import LeftOut, Outcome

PASSED_OVER = "passed over"
"""How a warning of a part begins that the slice was committed without."""

SHOWN = 20
"""Bad files, or work units that could not be read, that an error names, each with its whole reason."""


class BadPartPolicy(Generic[SliceT]):
    """The policy of one run, which notes in the run's outcome what it decides."""

    def __init__(self, run: RunContext[SliceT], outcome: Outcome) -> None:
        """Use a run and its report."""
        self._run, self._bad_parts, self._outcome = run, run.kind.bad_parts, outcome
        self.not_sampled: list[BadPart] = []

    def pass_over(self, slice_: SliceT, bad: BadPart, pinned: str) -> SliceT | None:
        """Return the slice without what is bad, if the policy says so; it is never passed silently."""
        rest = None if is_loaded(bad.code) else self._bad_parts.slice_without(slice_, bad)
        if rest is None:
            return None
        self._warn(bad)
        for other in self._others(rest, pinned, bad):
            rest = self._bad_parts.slice_without(rest, other) or rest
            self._warn(other)
        return rest

    def leave_out(self, slice_: SliceT, bad: BadPart, pinned: str | None) -> bool:
        """Note that a bad file beside the watermark waits; return False for any other, so that the run has to stop at it."""
        bad_parts = self._bad_parts
        if (
            slice_.why in ("run", "replay")
            or not isinstance(bad_parts, SetsAside)
            or not slice_.contains(bad)
        ):
            return False
        label = "released" if slice_.why == "release" else "late"
        self._outcome.left_out[bad.part] = LeftOut(label, bad)
        rest = bad_parts.defer(slice_, (bad.part,))
        if rest is not None and pinned is not None and not is_loaded(bad.code):
            for other in self._others(rest, pinned, bad):
                self._outcome.left_out[other.part] = LeftOut(label, other)
        return True

    def not_left_out(self, slices: Sequence[SliceT]) -> list[SliceT]:
        """Return slices without what this run has left out."""
        bad_parts, left_out = self._bad_parts, self._outcome.left_out
        if not (left_out and isinstance(bad_parts, SetsAside)):
            return list(slices)
        rest = (slice_ if slice_.why == "run" else bad_parts.defer(slice_, left_out) for slice_ in slices)
        return [slice_ for slice_ in rest if slice_ is not None]

    def before(self, slices: Sequence[SliceT], bad: BadPart) -> list[SliceT]:
        """Return what comes before a bad part, over all slices."""
        earlier: list[SliceT] = []
        for slice_ in slices:
            if slice_.contains(bad):
                shorter = slice_.up_to(bad)
                return earlier if shorter is None else [*earlier, shorter]
            earlier.append(slice_)
        return earlier

    def warn_of_waiting(self) -> None:
        """Say what cannot be read where nothing is committed yet: it is passed over with the first commit."""
        waiting = {bad.part: bad.why for bad in self.not_sampled}
        self._outcome.warnings += [
            f"{part} cannot be read, and is passed over with the first commit: {why}"
            for part, why in waiting.items()
        ]

    def report(self) -> None:
        """Say of what was left out: it holds nothing back, and the run is no success; if it failed for another reason, as a warning."""
        outcome = self._outcome
        left = list(outcome.left_out.values())
        if outcome.error is not None:
            outcome.warnings += [f"left out: {part}" for part in left]
        elif left:
            outcome.error = _left_out_error(self._run.name, left)

    def _others(self, slice_: SliceT, pinned: str, bad: BadPart) -> Sequence[BadPart]:
        """What else of a slice is bad in the same way, if one look tells."""
        bad_parts = self._bad_parts
        if not isinstance(bad_parts, SetsAside):
            return ()
        return bad_parts.find_others(self._run.spark, slice_, pinned, bad)

    def _warn(self, bad: BadPart) -> None:
        self._outcome.warnings.append(f"{PASSED_OVER} {bad.part}: {bad.why}")
        self.not_sampled.append(bad)


def _left_out_error(dataflow: str, left: Sequence[LeftOut]) -> StrandlineError:
    """The error of a run that has loaded all but these."""
    loaded = [part for part in left if is_loaded(part.bad.code)]
    waiting = [part for part in left if part not in loaded]
    if not waiting:
        return loaded[0].bad
    parts = [str(part) for part in waiting[:SHOWN]]
    parts += [f"and {pluralize(len(waiting) - SHOWN, 'more file')}"] if len(waiting) > SHOWN else []
    it = "it" if len(waiting) == 1 else "them"
    return BadPart(
        f"dataflow {dataflow}: {'; '.join(parts)}. Nothing else waits for {it}, and the watermark is not concerned. Mend or remove {it}: each"
        f" run tries {it} again. Or set on_bad_file: quarantine, which sets aside what cannot be read."
        f"{''.join(f' {part.bad.message}' for part in loaded)}",
        part=waiting[0].bad.part,
        why=waiting[0].bad.why,
        code=waiting[0].bad.code,
    )
