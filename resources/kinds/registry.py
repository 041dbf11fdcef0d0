"""The registry of kinds, by the class of a definition's watermark.

To add a kind: a package beside ``path`` and ``window``, and a line below.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from partitions.column.definition import ColumnWatermark
from partitions.offset.definition import OffsetWatermark
from partitions.path.definition import PathWatermark
from partitions.spark_stream.definition import StructuredStream
from partitions.stream.definition import StreamWatermark
from partitions.window.definition import WindowWatermark
from resources.kinds.column.fixtures import ColumnFixtures
from resources.kinds.column.opening import column_rules, open_column
from resources.kinds.column.reconcile import ColumnReconcile
from resources.kinds.column.replay import ColumnReplay
from resources.kinds.offset.fixtures import OffsetFixtures
from resources.kinds.offset.opening import offset_rules, open_offset
from resources.kinds.offset.reconcile import OffsetReconcile
from resources.kinds.offset.replay import CommitReplay
from resources.kinds.path.fixtures import PathFixtures
from resources.kinds.path.opening import open_path, path_rules
from resources.kinds.path.reconcile import PathReconcile
from resources.kinds.path.replay import FileReplay
from resources.kinds.registered import RegisteredKind
from resources.kinds.spark_stream.fixtures import SparkStreamFixtures
from resources.kinds.spark_stream.opening import open_spark_stream, spark_stream_rules
from resources.kinds.stream.fixtures import StreamFixtures
from resources.kinds.stream.opening import open_stream, stream_rules
from resources.kinds.window.fixtures import WindowFixtures
from resources.kinds.window.opening import open_windows, window_rules
from resources.kinds.window.reconcile import WindowReconcile
from resources.kinds.window.replay import WindowReplay

KINDS: Mapping[type, RegisteredKind] = MappingProxyType(
    {
        PathWatermark: RegisteredKind("path", open_path, path_rules, PathFixtures, FileReplay, PathReconcile),
        ColumnWatermark: RegisteredKind(
            "column", open_column, column_rules, ColumnFixtures, ColumnReplay, ColumnReconcile
        ),
        WindowWatermark: RegisteredKind(
            "window", open_windows, window_rules, WindowFixtures, WindowReplay, WindowReconcile
        ),
        OffsetWatermark: RegisteredKind(
            "offset", open_offset, offset_rules, OffsetFixtures, CommitReplay, OffsetReconcile
        ),
        StreamWatermark: RegisteredKind("stream", open_stream, stream_rules, StreamFixtures),
        StructuredStream: RegisteredKind(
            "stream", open_spark_stream, spark_stream_rules, SparkStreamFixtures
        ),
    }
)
"""The kinds, by the class of ``dataflow.watermark``."""
