"""Base and field types of all definitions that users write."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_ISO = re.compile(r"P(?!$)(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+(\.\d+)?S)?)?")


def _iso(value: object) -> object:
    if isinstance(value, timedelta) or (isinstance(value, str) and _ISO.fullmatch(value)):
        return value
    raise ValueError("expected an ISO 8601 duration such as PT2S, PT5M or P30D, not negative")


def _within_the_calendar(value: timedelta) -> timedelta:
    if value > LONGEST:
        raise ValueError(f"expected a duration of at most {LONGEST.days:,} days, found {value.days:,} days")
    return value


def _flag(value: object) -> object:
    return {"true": True, "false": False}.get(value.casefold(), value) if isinstance(value, str) else value


LONGEST = timedelta(days=365_000)
"""The longest duration whose start is a valid date before any now."""

Duration = Annotated[timedelta, BeforeValidator(_iso), AfterValidator(_within_the_calendar)]
"""An ISO 8601 duration such as PT2S or P30D, not negative, at most a thousand years."""


Flag = Annotated[bool, Field(strict=True), BeforeValidator(_flag)]
"""True or false, also as a text, as in environment variables; no other text or number."""


class Model(BaseModel):
    """Base of the definitions that users write: immutable, and unknown keys are refused.

    Attributes:
        written_as: the field that a user may write instead of the whole mapping; None: there is no short
        form.
    """

    written_as: ClassVar[str | None] = None

    model_config = ConfigDict(extra="forbid", frozen=True)
