"""What may be passed as the user's Spark, before any Spark starts."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from dagster_pyspark import LazyPySparkResource, PySparkResource

from partitions.errors import ConfigurationError
from resources.spark.engine import SparkEngine
from resources.spark.errors import SparkUnavailable
from resources.spark.passed_session import SessionFactory


def _no_session() -> Any:
    raise OSError("no route to cluster")


@pytest.mark.parametrize(
    "spark", [PySparkResource(spark_config={}), LazyPySparkResource(spark_config={}), _no_session]
)
def test_a_resource_of_dagster_pyspark_or_a_function_is_taken_and_starts_nothing(spark: Any) -> None:
    assert SessionFactory.of(spark, "settings()").settings_call == "settings()"


@pytest.mark.parametrize(
    ("spark", "described"),
    [
        ({"spark.master": "local"}, "a dict"),
        (PySparkResource, "PySparkResource, a class"),
        (None, "a NoneType"),
    ],
)
def test_anything_else_is_refused_by_what_it_is(spark: Any, described: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        SessionFactory.of(spark, "settings()")
    assert refused.value.message == (
        "spark: expected a PySparkResource, a LazyPySparkResource or a function that returns a SparkSession,"
        f" found {described}"
    )


def test_a_session_that_does_not_start_is_named_with_its_cause() -> None:
    engine = SparkEngine(passed=SessionFactory.of(_no_session, "settings()"))
    with pytest.raises(
        SparkUnavailable, match=r"passed to build_definitions did not start: .*no route to cluster"
    ):
        engine.session()


def test_a_function_that_returns_no_session_is_refused() -> None:
    engine = SparkEngine(passed=SessionFactory.of(lambda: "session", "settings()"))  # type: ignore[arg-type,return-value]
    with pytest.raises(ConfigurationError, match="found one that returns a str"):
        engine.session()


def test_definitions_load_without_the_libraries_of_resources_that_nobody_passes() -> None:
    code = (
        "import sys, platform_assets.build, platform_assets.project_resources;"
        "print(sorted({'dagster_aws', 'dagster_pyspark', 'pyspark', 'boto3'} & {name.split('.')[0] for name in sys.modules}))"
    )
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.strip() == "[]"
