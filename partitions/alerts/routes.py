"""Choose the route of an alert by its dataflow's owners and tags (docs/how-to/alerts.md, Routes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field, model_validator

from partitions.alerts.alert import Condition
from partitions.dataflow import Dataflow
from partitions.model import Model


class RouteRule(Model):
    """The alerts that a route takes: those that meet all its keys.

    Attributes:
        owner: an owner of the dataflow.
        tags: tags of the dataflow, with their values.
        on: the conditions that it takes; None: all.
    """

    owner: Annotated[str, Field(min_length=1)] | None = None
    tags: dict[str, str] = Field(default_factory=dict)
    on: Annotated[tuple[Condition, ...], Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _takes_less_than_all(self) -> RouteRule:
        if self.owner is None and not self.tags and self.on is None:
            raise ValueError(
                "expected owner, tags or on (alerts.webhook takes all other alerts), found none of them"
            )
        return self

    def takes(self, condition: Condition, dataflow: Dataflow | None) -> bool:
        """Return whether an alert goes this way; None is a dataflow without a readable definition."""
        if self.on is not None and condition not in self.on:
            return False
        owners, tags = (dataflow.owners, dataflow.tags) if dataflow is not None else ((), {})
        return (self.owner is None or self.owner in owners) and self.tags.items() <= tags.items()


RouteT = TypeVar("RouteT", bound=RouteRule)


def first_route(routes: Sequence[RouteT], condition: Condition, dataflow: Dataflow | None) -> RouteT | None:
    """Return the first route that takes an alert; None if none does."""
    return next((route for route in routes if route.takes(condition, dataflow)), None)
