"""The key ``lineage`` of ``platform.yaml`` (docs/how-to/lineage.md)."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from partitions.model import Duration, Model
from platform_assets.project.references import Text


class OpenLineageSettings(Model):
    """The catalog that gets OpenLineage's events.

    Attributes:
        url: its address, to which ``/api/v1/lineage`` is added; None: the variables and files of
            openlineage-python say where it is.
        api_key: sent as a bearer token.
        namespace: the namespace of the jobs; None: the name of the project's folder.
        timeout: the longest that a run waits for its events.
    """

    url: Text | None = None
    api_key: Text | None = None
    namespace: Annotated[str, Field(min_length=1)] | None = None
    timeout: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(minutes=1))] = timedelta(seconds=2)


class LineageSettings(Model):
    """Who hears of runs.

    Attributes:
        openlineage: the catalog; None: there is none.
    """

    openlineage: OpenLineageSettings | None = None
