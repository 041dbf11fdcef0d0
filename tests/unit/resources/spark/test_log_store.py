"""The log store for S3: its jar is what its source compiles to, and Spark takes it where S3 is used (docs/explanation/adr/0020)."""

from __future__ import annotations

import zipfile
from pathlib import Path

from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from resources.spark.log_store import CLASS, FOR_ALL_SCHEMES, JAR, SETTING, log_store_problem
from scripts.log_store import build

S3 = Place("s3://bucket")


def test_the_jar_is_byte_for_byte_what_its_source_compiles_to(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    build(tmp_path / "built.jar", tmp_path / "work")
    assert (tmp_path / "built.jar").read_bytes() == JAR.read_bytes()


def test_the_jar_holds_the_class_that_spark_is_told() -> None:
    assert f"{CLASS.replace('.', '/')}.class" in zipfile.ZipFile(JAR).namelist()


def test_spark_gets_the_log_store_if_and_only_if_s3_is_used() -> None:
    local, s3 = SparkEngine().settings(), SparkEngine(places=(S3,)).settings()
    assert (SETTING in local, "spark.jars" in local) == (False, False)
    assert (s3[SETTING], s3["spark.jars"]) == (CLASS, str(JAR))


def test_jars_of_the_user_stay_beside_the_log_store() -> None:
    settings = SparkEngine(conf={"spark.jars": "/a.jar,/b.jar"}, places=(S3,)).settings()
    assert settings["spark.jars"] == f"/a.jar,/b.jar,{JAR}"


def test_a_log_store_that_the_user_chooses_is_left_alone() -> None:
    assert SparkEngine(conf={SETTING: "my.Store"}, places=(S3,)).settings()[SETTING] == "my.Store"
    assert SETTING not in SparkEngine(conf={FOR_ALL_SCHEMES: "my.Store"}, places=(S3,)).settings()


def test_the_problem_of_a_spark_without_the_log_store_says_how_to_start_it() -> None:
    assert log_store_problem(CLASS, None) is None
    assert log_store_problem(None, "my.Store") is None
    for chosen in (None, "io.delta.storage.S3SingleDriverLogStore"):
        problem = log_store_problem(chosen, None)
        assert problem is not None
        assert f"--jars {JAR} --conf {SETTING}={CLASS}" in problem
