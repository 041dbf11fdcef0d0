"""The parts of a dataflow that must fit each other, and the rules of a kind of watermark about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from partitions.checks import CheckSettings
from partitions.maintenance_periods import Maintenance
from partitions.path.bad_files import OnBadFile
from partitions.reconcile.settings import ReconcileSettings
from partitions.refusal import Refusal
from partitions.rules.definition import Rule
from partitions.sources.definition import SourceDefinition
from partitions.stream.operators import Operator
from partitions.target import Target
from partitions.watermark_definition import WatermarkDefinition
from partitions.watermark_state import WatermarkState

WatermarkT = TypeVar("WatermarkT", bound=WatermarkDefinition)


@dataclass(frozen=True)
class DataflowParts(Generic[WatermarkT]):
    """The parts of a dataflow that must fit each other.

    ``step`` is the key of the user's step, ``sql`` its text if it is one.
    """

    source: SourceDefinition
    watermark: WatermarkT
    target: Target
    schedule: str | None = None
    unknown_fields: str = "check"
    on_bad_file: OnBadFile = "stop"
    late_files: str = "ingest"
    maintenance: Maintenance | None = None
    max_bad_records: int = 0
    step: str | None = None
    operators: tuple[Operator, ...] = ()
    max_bad_files: int | None = None
    sql: str | None = None
    checks: Mapping[str, CheckSettings] = field(default_factory=dict)
    rules: Sequence[Rule] = ()
    reconcile: ReconcileSettings | None = None


@dataclass(frozen=True)
class KindRules(Generic[WatermarkT]):
    """The rules of one kind of watermark.

    Attributes:
        state: the class of its state.
        expected_source: returns what the kind reads instead of a source, in words; None: it reads the
        source.
        refusals: yields the settings that cannot be combined with such a watermark.
        checks: returns the names of the checks that only this kind has.
    """

    state: type[WatermarkState]
    expected_source: Callable[[type[SourceDefinition]], str | None]
    refusals: Callable[[DataflowParts[WatermarkT]], Iterator[Refusal]]
    checks: Callable[[Sequence[Operator]], Sequence[str]] = lambda _: ()


def reads_any(_source: type[SourceDefinition]) -> None:
    """Return nothing: the kind reads all sources."""
