"""What the declarations of all watermarks share. Each kind declares its own in its room."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Annotated, Any, ClassVar, get_args

from pydantic import AfterValidator, Field

from partitions.errors import ConfigurationError
from partitions.instants import zone_of
from partitions.model import Model
from partitions.sources.definition import SourceDefinition
from partitions.target import Target


def _check_zone(text: str) -> str:
    try:
        zone_of(text)
    except ConfigurationError as error:
        raise ValueError(error.message) from error
    return text


ZoneName = Annotated[str, AfterValidator(_check_zone)]
"""The name of a time zone, such as ``Europe/Berlin``."""


class SliceSize(Model):
    """The size of a slice.

    Attributes:
        interval_secs: how long a slice should take; slices that take longer are halved.
    """

    interval_secs: Annotated[int, Field(ge=1, strict=True)] = 60


class WatermarkDefinition(Model):
    """A watermark as a user declares it.

    Beside these fields, each kind has ``checkpoint``, the size of its slices.

    Attributes:
        type: the word for the kind that a user writes.
        max_slices: the most slices of one run.
        remembers_files: whether its log lists each loaded file, so that a run loads a file once, and finds
        late ones.
        has_ledger: whether single windows can be missing, and its entries list those that they have loaded.
        fills_placeholders: whether placeholders in the path of files stand for its windows and units.
        takes_operators: whether operators may change its rows.
        takes_columns: whether its table may take new columns.
        rows_name_origin: whether a row tells what it was read from, so that a second read finds it.
        reads_whole: whether its slices can be the whole source, one after the other.
        reads_versions: whether it reads a table version by version.
        holds_source_rows: whether the rows of its table can be compared with those of its source.
        streams_with_spark: whether Spark's own engine reads the rows, with a checkpoint.
        columns_of_loads: columns that rows must have for a load, by load, beside those that the target names.
    """

    remembers_files: ClassVar[bool] = False
    has_ledger: ClassVar[bool] = False
    fills_placeholders: ClassVar[bool] = False
    takes_operators: ClassVar[bool] = False
    takes_columns: ClassVar[bool] = True
    rows_name_origin: ClassVar[bool] = True
    reads_whole: ClassVar[bool] = False
    reads_versions: ClassVar[bool] = False
    holds_source_rows: ClassVar[bool] = True
    streams_with_spark: ClassVar[bool] = False
    columns_of_loads: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    type: str
    max_slices: Annotated[int, Field(ge=1, strict=True)] = 100

    @property
    def needs_commits(self) -> bool:
        """Whether it needs each commit behind its position in the log of the table that it reads."""
        return self.reads_versions

    @classmethod
    def kind(cls) -> str:
        """Return the value of ``type``."""
        name: str = get_args(cls.model_fields["type"].annotation)[0]
        return name

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return the parts that the state depends on: changing one needs a decision (docs/reference/state.md)."""

    def cautions(self, source: SourceDefinition) -> Iterator[str]:  # noqa: ARG002 - kinds that may miss rows use it
        """Yield what a valid definition may miss, each with what to write instead."""
        yield from ()

    def carries_deletes(self, source: SourceDefinition, target: Target) -> bool:  # noqa: ARG002 - kinds that read changes use them
        """Return whether its rows say that their key is deleted."""
        return False

    def pairs_changes(self, source: SourceDefinition) -> bool:  # noqa: ARG002 - kinds that read changes use it
        """Return whether ``merge_keys`` tell which rows of an added change belong together."""
        return False

    @property
    def zone_name(self) -> str:
        """The name of the zone of days, and of times without a zone."""
        return "UTC"

    @property
    def zone(self) -> tzinfo:
        """The zone of days, and of times without a zone."""
        return zone_of(self.zone_name)

    @property
    def value_columns(self) -> tuple[str, ...]:
        """The columns whose values tell which rows are new; empty if no column does."""
        return ()

    @property
    def follows(self) -> bool:
        """Whether its windows wait for the dataflow whose table is read."""
        return False

    @property
    def waits_for_upstream(self) -> bool:
        """Whether each of its windows waits until that dataflow has loaded all of it."""
        return False

    @property
    def whole_windows(self) -> str:
        """What makes runs read whole windows; "" if they do, or if there are none."""
        return ""

    @property
    def awaited_inputs(self) -> tuple[str, ...]:
        """The names of the inputs that its windows wait for, too."""
        return ()

    @property
    def alerts_of_duplicates(self) -> bool:
        """Whether files with the same content as others cause an alert."""
        return False

    @property
    def expects_partitions(self) -> bool:
        """Whether a partition without a file counts as missing."""
        return False

    @property
    def diverts_late_rows(self) -> bool:
        """Whether late rows go into a table beside the dataflow's own."""
        return False


class ZonedWatermark(WatermarkDefinition):
    """A watermark whose days, and times without a zone, are in a zone that the user names."""

    timezone: ZoneName = "UTC"

    @property
    def zone_name(self) -> str:
        """``timezone``."""
        return self.timezone
