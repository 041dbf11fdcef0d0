"""Sessions on a Spark that the user starts: a resource of dagster-pyspark, or a function.

See docs/how-to/own-resources.md.
Strandline starts none then. A load gets a session of its own with the settings of the user's session, and
with those that every load has. What only the start of Spark decides is checked, since a load without it
would fail later, or write wrongly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from partitions.errors import ConfigurationError
from resources.spark.connect import adopt_session
from resources.spark.errors import SparkUnavailable
from resources.spark.loaded_packages import missing_packages
from resources.spark.log_store import FOR_ALL_SCHEMES, SETTING
from resources.spark.process import error_line, is_remote
from resources.spark.settings import set_all

if TYPE_CHECKING:
    from dagster_pyspark import LazyPySparkResource, PySparkResource
    from pyspark.sql import SparkSession
    from pyspark.sql.connect.session import SparkSession as SparkConnectSession

PassedSpark: TypeAlias = "PySparkResource | LazyPySparkResource | Callable[[], SparkSession]"
"""What ``build_definitions(spark=…)`` takes."""

_EXTENSIONS = "spark.sql.extensions"
_checked: WeakKeyDictionary[SparkSession, set[tuple[str, ...]]] = WeakKeyDictionary()
"""The packages and settings that a session of the user was checked for."""


@dataclass(frozen=True)
class SessionFactory:
    """Makes sessions of loads from the user's session.

    Attributes:
        start: returns the user's session, and starts Spark if it does not run.
        settings_call: the call that returns the settings that its Spark must be started with, for an error.
    """

    start: Callable[[], SparkSession]
    settings_call: str

    @classmethod
    def of(cls, spark: PassedSpark, settings_call: str) -> SessionFactory:
        """Return the factory of what the user passes; starts nothing.

        Raises:
            ConfigurationError: it is neither a resource of dagster-pyspark nor a function.
        """
        resources = sys.modules.get("dagster_pyspark")  # whoever passes one has imported it
        if resources is not None and isinstance(
            spark, resources.PySparkResource | resources.LazyPySparkResource
        ):
            return cls(
                lambda: cast("Any", spark).process_config_and_initialize().spark_session, settings_call
            )
        if not callable(spark) or isinstance(spark, type):
            raise ConfigurationError(
                "spark: expected a PySparkResource, a LazyPySparkResource or a function that returns a SparkSession,"
                f" found {_described(spark)}"
            )
        return cls(spark, settings_call)

    def session(self, static: Mapping[str, str], packages: Sequence[str]) -> SparkSession:
        """Return a new session with the settings of the user's session.

        Args:
            static: settings that only the start of Spark decides, with the values that loads need.
            packages: Maven coordinates of the jars that loads need.

        Raises:
            SparkUnavailable: the user's session does not start.
            ConfigurationError: its Spark lacks a setting or a jar.
        """
        try:
            base = self.start()
        except Exception as error:
            raise SparkUnavailable(
                f"the Spark session that was passed to build_definitions did not start: {error_line(error)}"
            ) from error
        if not _is_session(base):
            raise ConfigurationError(
                f"spark: expected a function that returns a SparkSession, found one that returns {_described(base)}"
            )
        self._check(base, static, packages)
        return _clone_on_server(base) if is_remote(base) else _new_session(base)

    def _check(self, base: SparkSession, static: Mapping[str, str], packages: Sequence[str]) -> None:
        needs = (*map("=".join, static.items()), *packages)
        if needs in _checked.setdefault(base, set()):
            return
        wrong = [
            f"{key}={expected} (found {current or 'none'})"
            for key, expected in static.items()
            if not includes(key, current := base.conf.get(key, None), expected)
            and not (key == SETTING and base.conf.get(FOR_ALL_SCHEMES, None))  # a store of the user's choice
        ]
        if missing := missing_packages(base, packages):
            wrong.append(f"the jars of {', '.join(missing)}")
        if wrong:
            raise ConfigurationError(
                "the Spark session that was passed to build_definitions: expected a Spark that was started with"
                f" {', '.join(wrong)}. {self._remedy(base)}"
            )
        _checked[base].add(needs)

    def _remedy(self, base: SparkSession) -> str:
        if is_remote(base):
            return "Start its Connect server with the settings that `strandline packages` prints"
        return (
            "Start it with its own settings and those that the project needs:"
            f" `LazyPySparkResource(spark_config={{**{self.settings_call}, ...}})`"
        )


def includes(key: str, current: str | None, expected: str) -> bool:
    """Return whether a setting has the expected value; additional extensions do no harm."""
    if key == _EXTENSIONS and current:
        return set(expected.split(",")) <= {name.strip() for name in current.split(",")}
    return current == expected


def _is_session(value: object) -> bool:
    """Return whether a value is a session, here or on a Connect server, without importing either."""
    return any(
        parent.__name__ == "SparkSession" and parent.__module__.startswith("pyspark.sql.")
        for parent in type(value).__mro__
    )


def _new_session(base: SparkSession) -> SparkSession:
    """Return a new session in this process, with the settings that the user's session has now."""
    session = base.newSession()
    current = session.conf.getAll
    changed = {key: value for key, value in base.conf.getAll.items() if current.get(key) != value}
    set_all(session, {key: value for key, value in changed.items() if session.conf.isModifiable(key)})
    return session


def _clone_on_server(base: SparkSession) -> SparkSession:
    """Return a clone of the user's session on a Connect server.

    Raises:
        SparkUnavailable: the server makes none.
    """
    try:
        clone = cast("SparkConnectSession", base).cloneSession()
    except Exception as error:
        raise SparkUnavailable(
            "the Spark session that was passed to build_definitions: expected a Connect server that clones sessions"
            f" (Spark 4.1), found: {error_line(error)}"
        ) from error
    clone.release_session_on_close = True  # pyspark's clone lacks it (pyspark 4.1)
    adopt_session(clone)
    return cast("SparkSession", clone)


def _described(value: object) -> str:
    name = type(value).__name__
    return f"{value.__name__}, a class" if isinstance(value, type) else f"a {name}"
