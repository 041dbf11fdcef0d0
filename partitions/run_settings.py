"""How Dagster runs a dataflow: tags of runs and steps, retries, automation."""

from __future__ import annotations

from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from partitions.instants import zone_of
from partitions.model import Duration, Model


def _json_value(value: object) -> object:
    """Accept what JSON can hold, as Dagster stores tags."""
    match value:
        case str() | bool() | int() | float() | None:
            return value
        case list():
            return [_json_value(item) for item in value]
        case dict() if all(isinstance(name, str) for name in value):
            return {name: _json_value(item) for name, item in value.items()}
    raise ValueError("expected text, a number, true, false, a list, or a mapping with names that are texts")


def _checked_zone(name: str) -> str:
    if not isinstance(zone_of(name), ZoneInfo) and name != "UTC":
        raise ValueError(
            "expected the name of a zone, such as Europe/Berlin: Dagster's cron has no fixed offsets"
        )
    return name


JsonValue = Annotated[Any, BeforeValidator(_json_value)]
"""A value of a tag, such as the mapping of ``dagster-k8s/config``."""

Tags = dict[str, JsonValue]


class Retry(Model):
    """How often Dagster runs a failed load again within its run.

    Only errors that may pass are tried again. What waits for a decision of an operator is not.

    Attributes:
        max: attempts after the first.
        delay: pause before the next attempt.
        backoff: how the pause grows; None: it stays.
        jitter: how the pause varies; None: it does not.
    """

    max: Annotated[int, Field(ge=1, le=100, strict=True)]
    delay: Duration | None = None
    backoff: Literal["linear", "exponential"] | None = None
    jitter: Literal["full", "plus_minus"] | None = None

    @model_validator(mode="after")
    def _varies_a_delay(self) -> Retry:
        if self.delay is None and (self.backoff or self.jitter):
            raise ValueError(
                "expected delay beside backoff and jitter, which change it: such as delay: PT30S"
            )
        return self


class OnCron(Model):
    """Materialise after each tick of a cron expression, once everything upstream is there.

    Attributes:
        on_cron: five fields.
        timezone: IANA name of the zone of its ticks.
    """

    on_cron: Annotated[str, Field(min_length=1)]
    timezone: Annotated[str, AfterValidator(_checked_zone)] = "UTC"


EmptyLoad = Literal["continue", "skip"]
"""What a load without anything new means for the assets downstream in its run: they run, or are skipped."""

AutomationCondition = Literal["eager", "on_missing"] | OnCron
"""When Dagster's own automation materialises the table, beside the dataflow's sensors and schedule."""
