"""A stream with Spark's own watermark: its declaration, and Spark's refusals.

Refusals that need no Spark are here, in Spark's words. ``resources.kinds.spark_stream`` runs the query.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from partitions.model import Model
from partitions.refusal import PartsDoNotFit, Refusal
from partitions.spark_stream.delay import Delay
from partitions.stream.definition import EventTimeWatermark, StreamWatermark
from partitions.stream.operators import (
    Join,
    Operator,
    TransformWithState,
    Union,
)


def _check_policy(text: str) -> str:
    if text not in ("min", "max"):
        raise ValueError(
            f"The value '{text}' in the config \"spark.sql.streaming.multipleWatermarkPolicy\" is invalid. Valid values are 'min' and 'max'"
        )
    return text


class Trigger(Model):
    """When Spark looks for new rows: once a run, for all rows."""

    available_now: Literal[True] = True

    @model_validator(mode="before")
    @classmethod
    def _refuse_continuous(cls, values: Any) -> Any:
        if isinstance(values, dict) and "continuous" in values:
            raise ValueError(
                "Continuous processing does not support EventTimeWatermark operations. Expected {available_now: true}: each run"
                " loads all new rows, and a sensor or a schedule starts it"
            )
        return values


class StreamCheckpoint(Model):
    """How much input a batch takes.

    Attributes:
        interval_files: Spark's ``maxFilesPerTrigger``; None: all files.
    """

    interval_secs: ClassVar[int] = 60
    """Unused: a batch cannot be halved."""

    interval_files: Annotated[int, Field(ge=1, strict=True)] | None = None


class StructuredStream(EventTimeWatermark):
    """Spark's own watermark: the highest event time of all rows so far less the timeout.

    Spark computes it at the end of a batch, and the next batch uses it.

    Attributes:
        event_time: a column with a timestamp.
        timeout: how late a row may be; Spark's ``delayThreshold``.
        policy: selects one of several sources' watermarks:
        ``spark.sql.streaming.multipleWatermarkPolicy``.
        output_mode: append: rows that will not change; update: rows that a batch has changed; complete:
        all rows, each time.
        trigger: available_now is the only one.
        checkpoint: how much input a batch takes.
    """

    streams_with_spark: ClassVar[bool] = True
    holds_source_rows: ClassVar[bool] = False

    engine: Literal["structured_streaming"]
    timeout: Delay
    policy: Annotated[Literal["min", "max"], BeforeValidator(_check_policy)] = "min"
    output_mode: Literal["append", "update", "complete"] = "append"
    trigger: Trigger = Trigger()
    checkpoint: StreamCheckpoint = StreamCheckpoint()

    @model_validator(mode="before")
    @classmethod
    def _refuse_splits_keys(cls, values: Any) -> Any:
        only = (*StreamWatermark.SPLITS_ONLY, "close_after")
        unsupported = [key for key in only if isinstance(values, dict) and key in values]
        if unsupported:
            raise PartsDoNotFit(
                [
                    Refusal(
                        ("watermark", key),
                        f"{key} beside engine: structured_streaming",
                        "no such key, since nothing but a later row raises Spark's watermark; or engine: splits"
                        if key == "close_after"
                        else "no such key, or engine: splits",
                    )
                    for key in unsupported
                ]
            )
        return values

    def identity(self) -> dict[str, Any]:
        """Return the parts of the definition that the state depends on; changing one needs a decision."""
        return {
            "engine": self.engine,
            "event_time": self.event_time,
            "policy": self.policy,
            "output_mode": self.output_mode,
        }


def misplaced_operator(operators: Sequence[Operator], sources: int) -> str | None:
    """Return why operators cannot follow each other in this order; None if they can.

    Args:
        operators: in the order of the rows.
        sources: the number of sources.
    """
    first = operators[0] if operators else None
    joins = isinstance(first, Union | Join)
    if sources > 1 and not joins:
        return "expected union or join first: there are several sources"
    if sources == 1 and joins:
        return "expected no union or join: there is one source"
    if isinstance(first, Join) and sources > 2:
        return f"expected two sources of a join, found {sources}"
    if any(isinstance(operator, Union | Join) for operator in operators[1:]):
        return "expected union or join once, first"
    if any(isinstance(operator, TransformWithState) for operator in operators[:-1]):
        return (
            "expected no operator after transform_with_state: Spark does not know the event time of its rows"
        )
    return None
