"""What all definitions that users write have in common."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


def _not_negative(value: timedelta) -> timedelta:
    if value < timedelta(0):
        raise ValueError("expected an ISO 8601 duration that is not negative")
    return value


Duration = Annotated[timedelta, AfterValidator(_not_negative)]
"""An ISO 8601 duration such as PT2S or P30D, not negative."""


class Model(BaseModel):
    """Base of what users write: unknown keys are refused, nothing changes afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)
