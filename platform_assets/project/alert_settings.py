"""The key ``alerts`` of ``platform.yaml`` (docs/how-to/alerts.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, model_validator

from partitions.alerts.alert import CONDITIONS, Condition
from partitions.alerts.routes import RouteRule, first_route
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.model import Model
from platform_assets.project.references import Reference, Text


class AlertRoute(RouteRule):
    """The receiver of some alerts.

    Attributes:
        webhook: the address, a secret.
    """

    webhook: Text


class AlertSettings(Model):
    """The receivers of messages about dataflows that need people.

    Attributes:
        webhook: the address, a secret; Slack gets Slack's form, any other host plain JSON.
        routes: the receivers of some alerts; the first that takes an alert gets it, else ``webhook`` does.
        on: the conditions that are reported.
        after: how many looks for new data must fail, one after the other, before a failure is reported.
    """

    webhook: Text
    routes: tuple[AlertRoute, ...] = ()
    on: Annotated[tuple[Condition, ...], Field(min_length=1)] = CONDITIONS
    after: Annotated[int, Field(ge=1, le=1000, strict=True)] = 2

    @model_validator(mode="after")
    def _routes_take_reported_conditions(self) -> AlertSettings:
        for route in self.routes:
            if superfluous := [condition for condition in route.on or () if condition not in self.on]:
                raise ValueError(
                    f"expected each condition of a route among those of alerts.on ({', '.join(self.on)}), found {superfluous[0]}"
                )
        return self

    @property
    def receivers(self) -> Mapping[str | Reference, str]:
        """The addresses, and the key of each in the settings; an address of several routes has its first."""
        keys: dict[str | Reference, str] = {self.webhook: "alerts.webhook"}
        for index, route in enumerate(self.routes):
            keys.setdefault(route.webhook, f"alerts.routes.{index}.webhook")
        return keys

    def receiver(self, condition: Condition, dataflow: Dataflow | None) -> str | Reference:
        """Return the address for an alert; ``dataflow`` is None if its definition cannot be read."""
        route = first_route(self.routes, condition, dataflow)
        return route.webhook if route is not None else self.webhook


def require_alerts(alerts: Any) -> Any:
    """Raise ConfigurationError if the key ``alerts`` has no value; return the value."""
    if alerts is None:
        raise ConfigurationError("expected webhook (and optionally on), or no alerts key, found nothing")
    return alerts
