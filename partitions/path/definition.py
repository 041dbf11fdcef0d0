"""A path watermark as a user declares it (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ByteSize, Field, model_validator

from partitions.model import Duration, Model
from partitions.path.copies import DuplicatePolicy
from partitions.path.expected import EXPECTED, FINEST_EXPECTED, Expected
from partitions.path.time_template import TimeTemplate
from partitions.target import ORIGIN_COLUMNS
from partitions.watermark_definition import SliceSize, WatermarkDefinition


def _prefix(text: str) -> str:
    if TimeTemplate(text).has_wildcard:
        raise ValueError(
            "expected a template without *, since it creates prefixes. To parse names, use time_template"
        )
    return text.strip("/")


def _template(text: str) -> str:
    if not TimeTemplate(text).can_parse:
        raise ValueError(
            "expected %Y, then %m and %d or %j, then %H, without a gap, so that a partition's time can be read"
        )
    return text.strip("/")


class PartitionFilter(Model):
    """The prefixes that a cold start lists: now's and those of the ``lookback`` units before it, in UTC."""

    prefix_template: Annotated[str, AfterValidator(_prefix)]
    lookback: Annotated[int, Field(ge=0, le=100_000, strict=True)]


class Checkpoint(SliceSize):
    """The size of a slice: files and bytes are hard limits, seconds are an aim."""

    interval_files: Annotated[int, Field(ge=1, strict=True)] = 1000
    interval_bytes: Annotated[ByteSize, Field(ge=1)] = ByteSize(2**30)


class PathWatermark(WatermarkDefinition):
    """A watermark that loads the files above the last committed one.

    Attributes:
        scope: ``global`` keeps one path, ``partition`` one name per open partition.
        tracking: ``watermark`` loads files above the last one; ``set`` loads any file that was never
        loaded, wherever it sorts, with a whole listing each time.
        layout: ``leaf`` promises that a folder holds either files or folders.
        settle: files younger than this, and all after them in order, wait for a later run.
        close_after: scope partition: how long a partition stays open after its own end.
        expected: how often a partition must hold a file; the ledger names missing ones.
        duplicates: what happens to a file with the content of a loaded one.
    """

    remembers_files: ClassVar[bool] = True
    columns_of_loads: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("merge_upsert", "scd2"), ORIGIN_COLUMNS[:1]
    )
    """The path of a row's file, which tells which row of a key is the latest."""

    type: Literal["path"]
    scope: Literal["global", "partition"] = "global"
    tracking: Literal["watermark", "set"] = "watermark"
    partition_filter: PartitionFilter | None = None
    time_template: Annotated[str, AfterValidator(_template)] | None = None
    close_after: Duration | None = None
    checkpoint: Checkpoint = Checkpoint()
    layout: Literal["mixed", "leaf"] = "mixed"
    settle: Duration = timedelta(0)
    expected: Expected | None = None
    duplicates: DuplicatePolicy = "load"

    @model_validator(mode="after")
    def _scope_keys(self) -> PathWatermark:
        for_expected = self.expected is not None and self.close_after is None
        if (
            self.scope == "global"
            and (self.time_template or self.close_after is not None)
            and not for_expected
        ):
            raise ValueError(
                "time_template and close_after close partitions: expected scope: partition with them, found scope: global"
            )
        if self.close_after is not None and self.template is None:
            raise ValueError(
                "close_after needs the time of a partition: expected time_template or partition_filter.prefix_template beside it"
            )
        return self

    @model_validator(mode="after")
    def _one_order(self) -> PathWatermark:
        if self.tracking == "set" and self.scope == "partition":
            raise ValueError(
                "tracking: set remembers every file, so partitions need no watermark: expected scope: "
                "global with it, found scope: partition"
            )
        return self

    @model_validator(mode="after")
    def _closes(self) -> PathWatermark:
        if self.scope == "partition" and self.template and not self.template.can_parse:
            raise ValueError(
                "scope partition closes what is older than the filter: expected a prefix_template with %Y, then %m and %d or %j,"
                f" then %H, without a gap, found {self.template.text!r}"
            )
        return self

    @model_validator(mode="after")
    def _expects_what_names_tell(self) -> PathWatermark:
        finest = FINEST_EXPECTED[self.template.unit] if self.expected and self.template else None
        if finest and self.expected and EXPECTED.index(self.expected) < EXPECTED.index(finest):
            raise ValueError(
                f"partitions by {self.template and self.template.text!r} have no finer time: expected `expected: {finest}` or a longer period,"
                f" found {self.expected}"
            )
        return self

    @property
    def expects_partitions(self) -> bool:
        """Whether ``expected`` says how often a partition must hold a file."""
        return self.expected is not None

    @property
    def alerts_of_duplicates(self) -> bool:
        """Whether ``duplicates`` says so."""
        return self.duplicates == "alert"

    def identity(self) -> dict[str, Any]:
        """Return the parts that the state depends on (docs/reference/state.md)."""
        prefix = self.partition_filter.prefix_template if self.partition_filter else None
        return {"source": {"prefix_template": prefix}, "scope": self.scope, "tracking": self.tracking}

    @property
    def template(self) -> TimeTemplate | None:
        """The template that parses a partition's time; None if there is none."""
        text = self.time_template or (self.partition_filter and self.partition_filter.prefix_template)
        return TimeTemplate(text) if text else None
