"""The models of ``platform.yaml`` (docs/reference/project-files.md).

Every key has a default, and the file is optional.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from partitions.model import Duration, Model
from platform_assets.project.alert_settings import AlertSettings, require_alerts
from platform_assets.project.connection_settings import ConnectionSettings
from platform_assets.project.lineage_settings import LineageSettings
from platform_assets.project.references import ReferencedText
from platform_assets.project.secret_keys import is_secret
from resources.spark.settings import ANSI, READ_TIMES, TIME_ZONE, WHOLE_READS, WRITTEN_TIMES


def _remote(text: str) -> str:
    if not text.startswith("sc://") or text == "sc://":
        raise ValueError("expected sc://host:port")
    return text


def _conf_text(value: object) -> object:
    """Return numbers and booleans in Spark's spelling."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


_REASONS = {
    "times are read, written and compared in UTC (in sql: from_utc_timestamp)": {TIME_ZONE: "UTC"},
    "without it a value that does not fit silently changes or becomes NULL (in sql, use try_cast for such values)": {
        ANSI: "true"
    },
    "with others days before 1582, years after 2262 or microseconds silently change": WRITTEN_TIMES,
    "with others days before 1582 silently change (for files of Spark 2, set datetimeRebaseMode in source.options)": READ_TIMES,
    "otherwise rows of a damaged or lost file are silently left out (on_bad_file: quarantine sets bad files aside)": WHOLE_READS,
}
_FIXED_SETTINGS = {key: (value, why) for why, settings in _REASONS.items() for key, value in settings.items()}
"""Settings that every session has: the value, and the reason."""


def _refuse_fixed_settings(conf: dict[str, str]) -> dict[str, str]:
    """Raise if Spark's settings give another value to a setting that every session has."""
    for key, (expected, why) in _FIXED_SETTINGS.items():
        value = conf.get(key, expected)
        if value.strip().casefold() != expected.casefold():
            raise ValueError(f"expected {key}: {expected}, or none, since {why}, found {value}")
    return conf


class SparkSettings(Model):
    """Spark in the process or on a cluster, by ``master``; or a Connect server, by ``remote``.

    Attributes:
        master: used if ``remote`` is None.
        conf: Spark's own settings, for a session that is started here.
    """

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    conf: Annotated[
        dict[str, Annotated[str, BeforeValidator(_conf_text)]], AfterValidator(_refuse_fixed_settings)
    ] = Field(default_factory=dict)
    remote: Annotated[str, AfterValidator(_remote)] | None = None

    @property
    def secret_keys(self) -> frozenset[str]:
        """The keys of ``conf`` whose values are secrets, by their names or since they come from elsewhere."""
        return frozenset(
            key
            for key, value in self.conf.items()
            if isinstance(value, ReferencedText) or is_secret(("spark", "conf", key))
        )

    @model_validator(mode="after")
    def _refuse_remote_with_master(self) -> SparkSettings:
        written_keys = self.model_fields_set
        if "remote" in written_keys and written_keys & {"master", "conf"}:
            raise ValueError("expected master and conf, or remote alone, found both")
        return self


class PlaceSettings(Model):
    """A folder, or a prefix of an object store with the connection that reaches it."""

    path: Annotated[str, Field(min_length=1)]
    connection: str | None = None


class HistorySettings(Model):
    """The retention of a watermark log: entries beyond both limits are deleted, never the newest.

    Attributes:
        entries: the number of newest entries to keep.
        age: entries younger than this are kept, too.
    """

    entries: Annotated[int, Field(ge=1, strict=True)] = 1000
    age: Duration = timedelta(days=90)


class IcebergSettings(Model):
    """The catalog of Iceberg tables.

    Attributes:
        catalog: ``hadoop``: the folders of the lake; ``jdbc``: a PostgreSQL database; ``rest``: a server.
        connection: the connection to the database or the server.
    """

    catalog: Literal["hadoop", "jdbc", "rest"] = "hadoop"
    connection: Annotated[str, Field(min_length=1)] | None = None


class SensorSettings(Model):
    """The time between two ticks of a sensor.

    Attributes:
        interval: the least time between two ticks; None: 30 s, a minute for rows above a column. The sweep for late files has its own.
    """

    interval: Annotated[Duration, Field(ge=timedelta(seconds=1))] | None = None


class Settings(Model):
    """The contents of ``platform.yaml``.

    Attributes:
        state: the place of the watermark log.
        lake: the place of tables, ``<lake>/<layer>/<name>``.
        format: the default of all targets.
        iceberg: the catalog of Iceberg tables.
        history: the retention of each watermark log.
        sensors: the settings of Dagster's sensors.
        alerts: who gets messages; None: nobody.
        lineage: who hears of runs; nobody by default.
        connections: by name, for sources, state and lake.
    """

    state: Annotated[str, Field(min_length=1)] | PlaceSettings = "./.strandline/state"
    lake: Annotated[str, Field(min_length=1)] | PlaceSettings = "./.strandline/lake"
    format: Literal["delta", "iceberg", "parquet"] = "delta"
    iceberg: IcebergSettings = IcebergSettings()
    spark: SparkSettings = SparkSettings()
    history: HistorySettings = HistorySettings()
    sensors: SensorSettings = SensorSettings()
    alerts: Annotated[AlertSettings | None, BeforeValidator(require_alerts)] = None
    lineage: LineageSettings = LineageSettings()
    connections: dict[str, ConnectionSettings] = Field(default_factory=dict)

    def place(self, name: Literal["state", "lake"]) -> PlaceSettings:
        """Return the place of state or lake, which may be written in two forms."""
        place: str | PlaceSettings = getattr(self, name)
        return place if isinstance(place, PlaceSettings) else PlaceSettings(path=place)
