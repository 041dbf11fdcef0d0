"""The README of a new project: what lies where, the commands of every day, tests, deployment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

_README = """\
# {project}

New data of each dataflow is loaded into a table exactly once, by Strandline.

## The first minute

{before}

```sh
{sample}strandline plan            # what the next run would do, and why; changes nothing
strandline run --all       # loads what is new
strandline show {name}{pad}# rows of the table
strandline list            # how far each dataflow is, what waits, what fails
strandline dev             # Dagster's UI on http://127.0.0.1:3000, which also loads what arrives; Ctrl-C ends it
```

Run `strandline run --all` again: nothing is loaded twice. `strandline doctor` says what does not work, and what to do.

## What lies where

| file | holds |
|---|---|
| `dataflows/{name}.yaml` | a dataflow: source, watermark, target. Its table is `{layer}/{name}` |
| `platform.yaml` | where state and tables lie, connections, Spark |
| `tests/{name}/*.yaml` | tests of the dataflow: rows in, rows out |
| `definitions.py`, `workspace.yaml` | Dagster's way in: `dagster dev` in this folder loads them |
| `dagster.yaml` | Dagster's settings: a queue, and a pool for each dataflow, so that its runs wait for each other |
| `.strandline/` | state, tables and Dagster's runs, as long as `platform.yaml` leaves them here; not in git |

Add a dataflow: copy a file of `dataflows/`, or let `strandline init . --from FOLDER` write one for existing files.
`strandline init . --source table --name NAME` writes one that reads a table of the lake, commit by commit.

## Test

```sh
strandline validate        # all files; opens nothing
strandline test            # the tests, without sources and tables
```

Run both for each change, before it is merged.

## Deploy

1. Put state and tables where more than one machine reaches them: `state: postgresql://…` and `lake: s3://…` in `platform.yaml`.
   Settings of one environment go into `platform.prod.yaml` beside it; `--env prod` or `STRANDLINE_ENV=prod` takes them.
2. Secrets come from the environment, from files, or from a function: `{{env: NAME}}`, `{{file: PATH}}`. In plain text they are refused.
3. `strandline init . --deploy` writes `deploy/`: Dagster's settings on PostgreSQL and S3, and a README of what to start.
   On one machine without them: set `DAGSTER_HOME` to a folder with a copy of `dagster.yaml`, and start `dagster-daemon run` and `dagster-webserver` in this folder.
4. Run `strandline doctor --env prod`, then `strandline plan --env prod` there.
"""

_SAMPLES: Mapping[str, str] = {
    "path": """\
echo '{"id": 1, "at": "2026-01-31T09:15:00Z"}' > landing/2026-01-31.ndjson
""",
    "stream": """\
echo '{"id": "1", "device": "d1", "measured_at": "2026-01-31T09:00:00Z", "value": 1.5}' > landing/1.ndjson
echo '{"id": "2", "device": "d1", "measured_at": "2026-01-31T10:00:00Z", "value": 2.5}' > landing/2.ndjson
""",
}
"""Commands that put rows into the folder of a template, by kind."""

_BEFORE: Mapping[str, str] = {
    "landing": "Put a file into `landing`, and load it:",
    "files": "The files stay where they are. Load them:",
    "jdbc": "Fill in the connection `{connection}` in `platform.yaml`, and the table and its columns in `dataflows/{name}.yaml`. Then:",
    "api": "Fill in the connection `{connection}` in `platform.yaml`, and path and columns in `dataflows/{name}.yaml`. Then:",
    "python": "The function in `{module}.py` yields two rows; replace its body by your own. Load them:",
    "table": "Fill in the table that `dataflows/{name}.yaml` reads: one of the lake, by another dataflow or not. Then:",
}


def readme(project: str, name: str, dataflow: str) -> str:
    """Return the text of a project's README.

    Args:
        project: the project's name.
        name: of its first dataflow.
        dataflow: the text of that dataflow.
    """
    definition: dict[str, Any] = yaml.safe_load(dataflow)
    source = definition["source"]
    sample = _SAMPLES.get(definition["watermark"]["type"]) if source.get("path") == "./landing" else None
    before = _BEFORE["landing" if sample else source["type"]].format(
        name=name,
        connection=source.get("connection"),
        module=str(source.get("function")).partition(":")[0],
    )
    return _README.format(
        project=project,
        name=name,
        layer=definition.get("layer", "bronze"),
        pad=" " * max(1, 11 - len(name)),
        before=before,
        sample=sample or "",
    )
