"""The events of one run: what it reads, what it writes, and how it has ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.schema_types import type_text
from resources.loop.run_events import RunEvents
from resources.open_lineage.columns import Origin, origins
from resources.open_lineage.datasets import DatasetName
from resources.open_lineage.sender import EventSender
from resources.outcome import Outcome
from resources.tables.contract.table import Table
from resources.watermarks.log import WatermarkLog

_PRODUCT = "strandline"
_STATES = {"held": "ABORT", "skipped": "ABORT", "failed": "FAIL", "blocked": "FAIL"}
"""The states of runs that did not complete, by their status."""

_INPUT = "input"
"""The view of ``sql`` with the dataflow's own rows."""


class ReadDatasets(NamedTuple):
    """What a run reads.

    Attributes:
        sources: the datasets of the source.
        tables: the tables of the lake, by their names in ``inputs``, or their own.
    """

    sources: Sequence[DatasetName]
    tables: Mapping[str, tuple[DatasetName, Table]]


@dataclass
class OpenLineageEvents(RunEvents):
    """Sends the events of one run.

    Attributes:
        sender: the catalog.
        dataflow: the definition.
        find_inputs: returns the datasets that the run reads.
        output: the dataset of the table.
        table: the table.
        log: the log, with the pinned columns.
        run_id: Dagster's run, which is the parent; None outside of Dagster.
        job_id: Dagster's job.
    """

    sender: EventSender
    dataflow: Dataflow
    find_inputs: Callable[[], ReadDatasets]
    output: DatasetName
    table: Table
    log: WatermarkLog
    run_id: str | None = None
    job_id: str | None = None
    _id: str = ""
    _started: Future[None] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Send START."""
        time = datetime.now(UTC)
        self._started = self.sender.send(lambda: self._event("START", time, None))

    def end(self, outcome: Outcome) -> Sequence[str]:
        """Send COMPLETE, FAIL or ABORT; warn if the catalog has not taken it."""
        time, state = datetime.now(UTC), _STATES.get(outcome.status, "COMPLETE")
        problem = self.sender.problem(self.sender.send(lambda: self._event(state, time, outcome)))
        return [f"the lineage catalog was not told of this run: {problem}"] if problem else []

    def abort(self) -> None:
        """Send ABORT."""
        time = datetime.now(UTC)
        self.sender.problem(self.sender.send(lambda: self._event("ABORT", time, None)))

    def _event(self, state: str, time: datetime, outcome: Outcome | None) -> Any:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
        from openlineage.client.uuid import generate_new_uuid

        self._id = self._id or str(generate_new_uuid())
        read = self.find_inputs()
        event = RunEvent(
            eventType=RunState[state],
            eventTime=time.isoformat(timespec="milliseconds"),
            run=Run(self._id, self._run_facets(outcome)),
            job=Job(self.sender.namespace, self.dataflow.name, self._job_facets()),
            producer=f"urn:{_PRODUCT}:{self.sender.version}",
            inputs=self._inputs(read, outcome),
            outputs=[self._output(read, outcome)],
        )
        _sign(event)
        return event

    def _run_facets(self, outcome: Outcome | None) -> dict[str, Any]:
        from openlineage.client.facet_v2 import error_message_run, parent_run, processing_engine_run

        facets: dict[str, Any] = {
            "processing_engine": processing_engine_run.ProcessingEngineRunFacet(self.sender.version, _PRODUCT)
        }
        if self.run_id is not None and _is_uuid(self.run_id):
            facets["parent"] = parent_run.ParentRunFacet(
                parent_run.Run(self.run_id), parent_run.Job(self.sender.namespace, self.job_id or "dagster")
            )
        if outcome is not None and outcome.error is not None:
            message = self.sender.hide(outcome.error.message)
            facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(message, "PYTHON")
        return facets

    def _job_facets(self) -> dict[str, Any]:
        from openlineage.client.facet_v2 import documentation_job, job_type_job, ownership_job, sql_job

        flow = self.dataflow
        processing = "STREAMING" if flow.streams_with_spark else "BATCH"
        facets: dict[str, Any] = {
            "jobType": job_type_job.JobTypeJobFacet(processing, _PRODUCT.upper(), "DATAFLOW")
        }
        if flow.sql:
            facets["sql"] = sql_job.SQLJobFacet(flow.sql, dialect="spark")
        if flow.description:
            facets["documentation"] = documentation_job.DocumentationJobFacet(flow.description)
        if flow.owners:
            owners = [ownership_job.Owner(owner) for owner in flow.owners]
            facets["ownership"] = ownership_job.OwnershipJobFacet(owners)
        return facets

    def _inputs(self, read: ReadDatasets, outcome: Outcome | None) -> list[Any]:
        from openlineage.client.event_v2 import InputDataset
        from openlineage.client.facet_v2 import input_statistics_input_dataset

        own = read.sources
        columns = self._pinned_columns(outcome) if len(own) == 1 else []
        files = sum(commit.files for commit in outcome.committed) if outcome else 0
        size = sum(commit.bytes for commit in outcome.committed) if outcome else 0
        counts: dict[str, Any] = {
            "inputStatistics": input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
                fileCount=files, size=size
            )
        }
        sources = [
            InputDataset(
                name.namespace,
                name.name,
                facets=_schema(columns),
                inputFacets=counts if files and len(own) == 1 else {},
            )
            for name in own
        ]
        others = dict.fromkeys(name for name, _ in read.tables.values() if name not in own)
        return [*sources, *(InputDataset(name.namespace, name.name) for name in others)]

    def _output(self, read: ReadDatasets, outcome: Outcome | None) -> Any:
        from openlineage.client.event_v2 import OutputDataset
        from openlineage.client.facet_v2 import (
            dataset_version_dataset,
            output_statistics_output_dataset,
            storage_dataset,
        )

        layer = self.dataflow.target.format
        facets: dict[str, Any] = {"storage": storage_dataset.StorageDatasetFacet(layer, "parquet")}
        if outcome is None:
            return OutputDataset(*_parts(self.output), facets=facets)
        columns, entry = _columns_of(self.table), outcome.newest
        facets |= _schema(columns) | self._column_lineage(read, columns, outcome)
        if entry is not None and entry.table_version is not None:
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(str(entry.table_version))
        rows = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=outcome.rows)
        return OutputDataset(*_parts(self.output), facets=facets, outputFacets={"outputStatistics": rows})

    def _column_lineage(
        self, read: ReadDatasets, columns: Sequence[Mapping[str, Any]], outcome: Outcome
    ) -> dict[str, Any]:
        """Return which input columns a column of the table comes from, if text or names tell it."""
        from openlineage.client.facet_v2 import column_lineage_dataset as facet

        pinned = [column["name"] for column in self._pinned_columns(outcome)]
        if self.dataflow.transform or self.dataflow.operators or not pinned:
            return {}
        names = {view: name for view, (name, _) in read.tables.items()}
        if len(read.sources) == 1:
            names[_INPUT] = read.sources[0]
        if self.dataflow.sql:
            views = {
                view: [column["name"] for column in _columns_of(table)]
                for view, (_, table) in read.tables.items()
                if view in self.dataflow.inputs
            }
            by_column = origins(self.dataflow.sql, views | {_INPUT: pinned})
        else:
            by_column = {name.casefold(): [Origin(_INPUT, name, "IDENTITY")] for name in pinned}
        fields = {}
        for column in columns:
            made_of = [
                facet.InputField(
                    *_parts(names[origin.view]),
                    origin.column,
                    [facet.Transformation("DIRECT", origin.how)],
                )
                for origin in by_column.get(column["name"].casefold(), ())
                if origin.view in names
            ]
            if made_of:
                fields[column["name"]] = facet.Fields(made_of)
        return {"columnLineage": facet.ColumnLineageDatasetFacet(fields)} if fields else {}

    def _pinned_columns(self, outcome: Outcome | None) -> Sequence[Mapping[str, Any]]:
        """Return the columns of the source as they are pinned; none before the first commit."""
        entry = outcome.newest if outcome is not None else None
        if entry is None or not entry.pinned:
            return []
        with suppress(StrandlineError, ValueError, KeyError, TypeError):
            return list(json.loads(self.log.get_schema(entry.pinned))["columns"]["fields"])
        return []


def _parts(name: DatasetName) -> tuple[str, str]:
    return name.namespace, name.name


def _columns_of(table: Table) -> Sequence[Mapping[str, Any]]:
    """Return the columns of a table of the lake; none if it does not exist."""
    with suppress(StrandlineError):
        described = table.contents.schema()
        return json.loads(described[1])["fields"] if described is not None else []
    return []


def _schema(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the schema facet of columns; nothing without any."""
    from openlineage.client.facet_v2 import schema_dataset

    fields = [
        schema_dataset.SchemaDatasetFacetFields(name=column["name"], type=type_text(column["type"]))
        for column in columns
    ]
    return {"schema": schema_dataset.SchemaDatasetFacet(fields=fields)} if fields else {}


def _is_uuid(text: str) -> bool:
    with suppress(ValueError):
        return bool(UUID(text))
    return False


def _sign(event: Any) -> None:
    """Name the event's producer in its facets; the library would name itself."""
    datasets = [*event.inputs, *event.outputs]
    facets = [part.facets for part in (event.run, event.job, *datasets)]
    facets += [dataset.inputFacets for dataset in event.inputs]
    facets += [dataset.outputFacets for dataset in event.outputs]
    for facet in chain.from_iterable(named.values() for named in facets):
        facet._producer = event.producer  # else only a global variable of the library sets it
