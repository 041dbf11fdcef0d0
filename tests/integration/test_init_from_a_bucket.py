"""``strandline init --from``: what it writes plans the files of a real store, and proposes the types that a first run pins."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import obstore
import pytest
import yaml

from resources.connections.places import Place
from resources.sources.files.survey import survey
from tests.integration.conftest import MakeFeed
from tests.support.environment import clean_environment
from tests.support.feed import NAME, call_of

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


TEXTS = {
    "csv": b"plz,tel,d,t,e,f,g,h,i,k,m,n\n007,+49,1D,09:15,3E5,1.5,2024-01-01,2024-01-01 10:00:00,true,3000000000,NaN,1\n"
    b"008,+49,1F,09:16,4E5,2,2024-01-02,2024-01-01T10:00:00Z,FALSE,1,1.5,\n",
    "ndjson": b'{"plz":"007","t":"09:15","ts":"2024-01-01T10:00:00Z","f":1,"big":9223372036854775808,"x":null,"l":[],"o":{"a":1}}\n'
    b'{"plz":"008","t":"09:16","ts":"2024-01-01T11:00:00Z","f":2.5,"big":1,"x":null,"l":[],"o":{"b":null}}\n',
    "json": b'[{"id":1,"children":[{"id":2,"children":[{"id":3,"children":[]}]}]},{"id":5,"children":[]}]',
}


@pytest.mark.parametrize("form", TEXTS)
def test_proposed_types_are_those_a_first_run_pins(tmp_path: Path, make_feed: MakeFeed, form: str) -> None:
    feed = make_feed(source={"format": form, "schema": None})
    feed.put_bytes(f"2024-01-01.{form}", TEXTS[form])
    feed.load()
    pinned = feed.cli("schema", "show", NAME).json["pinned"]["columns"]
    (seen,) = survey(Place(str(feed.landing))).datasets
    proposed = {
        name: kind.replace("long", "bigint").replace(": ", ":").replace(", ", ",")
        for name, kind in seen.columns
    }
    assert proposed == {column["name"]: column["type"] for column in pinned if column["type"] != "void"}
