"""``strandline init --from s3://…`` on a real store: what it writes plans the files that are there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import obstore
import yaml

from resources.places import Place
from tests.support.environment import clean_environment
from tests.support.feed import call_of

DAYS = ("2026-01-01", "2026-01-02")


def called(project: Path, variables: Mapping[str, str], *words: str) -> Any:
    """The JSON of a command that must not fail."""
    done = subprocess.run(
        call_of(project, "--json", *words),
        capture_output=True,
        text=True,
        env=clean_environment() | dict(variables),
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_bucket_of_days_becomes_a_dataflow_that_plans_its_files(tmp_path: Path, bucket: Place) -> None:
    connection = bucket.connection
    assert connection is not None
    variables = {
        "AWS_ENDPOINT_URL": connection.endpoint or "",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": connection.access_key_id or "",
        "AWS_SECRET_ACCESS_KEY": connection.secret_access_key or "",
    }
    for day in DAYS:
        for part in (1, 2):
            row = {"order": part, "customer": "a", "total": 1.5}
            obstore.put(
                bucket.store, f"orders/date={day}/part-{part}.ndjson", json.dumps(row).encode() + b"\n"
            )
    shop = tmp_path / "shop"
    made = called(shop, variables, "init", str(shop), "--from", f"{bucket.url}/orders")
    assert made["dataflows"] == ["orders"]
    source = yaml.safe_load((shop / "dataflows/orders.yaml").read_text())["source"]
    assert (source["path"], source["format"]) == (f"{bucket.url}/orders", "ndjson")
    (plan,) = called(shop, variables, "plan", "orders")
    files = [file for slice_ in plan["slices"] for file in slice_["files"]]
    assert files == [f"date={day}/part-{part}.ndjson" for day in DAYS for part in (1, 2)]
    assert os.fspath(shop) not in (shop / "dataflows/orders.yaml").read_text()
