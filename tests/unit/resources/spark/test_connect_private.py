"""pyspark's internals are used in one module, which was tried with one minor version."""

from __future__ import annotations

import re
from pathlib import Path

import pyspark

import resources
from resources.spark.connect_private import TRIED_WITH

_INTERNALS = re.compile(
    r"\._(cached_schema|set_all|active_session|channel|cleanup_ml_cache|active_spark_context)\b|connect\.(plan|proto)\b"
)


def test_internals_of_pyspark_are_those_of_the_version_that_they_were_tried_with() -> None:
    minor = ".".join(pyspark.__version__.split(".")[:2])
    assert minor == TRIED_WITH, (
        f"pyspark {minor}: look at each function of resources/spark/connect_private.py, run tests/integration/test_stores_apart.py and the tests of"
        " streams on it, then set TRIED_WITH"
    )


def test_no_other_module_uses_internals_of_pyspark() -> None:
    folder = Path(resources.__file__).parent
    users = {
        module.relative_to(folder).as_posix()
        for module in folder.rglob("*.py")
        if _INTERNALS.search(module.read_text())
    }
    assert users == {"spark/connect_private.py"}
