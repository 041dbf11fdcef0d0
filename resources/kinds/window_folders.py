"""Windows whose rows lie in a folder each: ``./landing/{start:%Y-%m-%d}/{unit.airport}`` (spec 09, Windows x units)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from partitions.errors import BadFile, BadUnits, PlanError, SourceError
from partitions.instants import as_datetime
from partitions.path.position import FromBeginning
from partitions.path.source import SourceFile
from partitions.placeholders import Placeholder
from partitions.window.slices import WindowSlice, WorkUnit
from partitions.window.units import unit_of
from resources.kinds.window import WindowFlow
from resources.listing import check_unchanged, list_above
from resources.loop.flow import Size
from resources.places import Place
from resources.readers.bad_files import BadFiles
from resources.readers.failures import bad_file
from resources.readers.files import FilesReader, PinnedSchema
from resources.watermarks.entry import Intent
from resources.watermarks.lists import StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILE = "file"


@dataclass
class FolderFlow(WindowFlow):
    """Windows x units, each a folder of files; a window is always read as a whole.

    Attributes:
        root: the folder above the first placeholder.
    """

    root: Place = field(kw_only=True)
    _found: dict[tuple[int | None, str], tuple[SourceFile, ...]] = field(default_factory=dict, init=False)
    _lists: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Read what the user says of the files."""
        super().__post_init__()
        self._source = self.dataflow.files
        self._reader = FilesReader(self.root, self._source)
        self._bad_files = BadFiles(self.root, self._reader, self.dataflow)

    @property
    def ranged(self) -> bool:
        """A folder holds a window, and no other stretch of time."""
        return False

    @property
    def calls(self) -> int:
        """LIST calls, or folders opened, so far."""
        return self._lists

    @property
    def remarks(self) -> Sequence[str]:
        """What the reader has to say of the files."""
        return self._reader.remarks

    def check(self, piece: WindowSlice) -> None:
        """List the folders that nobody has looked at yet; of the others, compare each file with what was listed.

        Raises:
            BadUnits: folders that are not there (``missing: fail``).
            BadFile: a file has changed, or vanished.
        """
        known = [file for one in piece.works for file in self._found.get(one.key, ())]
        missing: dict[WorkUnit, str] = {}
        for one in piece.works:
            if one.key not in self._found:
                self._look(one, missing)
        if missing:
            raise self._bad(missing)
        check_unchanged(self.root, known)

    def _look(self, one: WorkUnit, missing: dict[WorkUnit, str]) -> None:
        folder = self.folder(one)
        try:
            listing = list_above(self.root.child(folder), FromBeginning(), self._source.endings)
        except SourceError as error:
            if error.code != "source_missing":
                raise
            files: tuple[SourceFile, ...] = ()
        else:
            self._lists += listing.found.calls
            files = tuple(replace(file, path=f"{folder}/{file.path}") for file in listing.found.files)
        if not files and self._source.missing != "empty":
            missing[one] = (
                f"expected files in {self.root.child(folder)}, found none (missing: empty takes it for an empty window)"
            )
        else:
            self._found[one.key] = files

    def folder(self, one: WorkUnit) -> str:
        """The folder of a work unit, relative to the root.

        Raises:
            PlanError: for a unit whose value would lead somewhere else.
        """
        zone, unit = self._definition.zone, unit_of(one.unit)

        def filled(placeholder: Placeholder) -> str:
            if placeholder.unit is not None:
                return _as_name(placeholder.unit, unit.get(placeholder.unit))
            instant = one.start if placeholder.name == "start" else one.end
            moment = as_datetime(instant or 0, zone)
            return moment.strftime(placeholder.form) if placeholder.form else moment.isoformat()

        return self._source.folder_template.filled(filled).strip("/")

    def record(self, piece: WindowSlice) -> StoredList:
        """Each work unit, and the files of each."""
        stored = super().record(piece)
        files = [[list(file.row) for file in self._found[one.key]] for one in piece.works]
        return replace(stored, head={**stored.head, "files": files})

    def restore(self, intent: Intent, stored: StoredList) -> WindowSlice:
        """The same work units, of the same files."""
        piece = super().restore(intent, stored)
        for one, files in zip(piece.works, stored.head["files"], strict=True):
            self._found[one.key] = tuple(SourceFile(*row) for row in files)
        return piece

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """Declared, or inferred from a bounded sample of the first folders that hold files."""
        missing: dict[WorkUnit, str] = {}
        for piece in pending:
            for one in piece.works:
                if one.key not in self._found:
                    self._look(one, missing)
            files = [file for one in piece.works for file in self._found.get(one.key, ())]
            pinned = self._reader.pin(spark, files) if files else None
            if pinned is not None:
                return pinned.to_text()
        if missing:
            raise self._bad(missing)
        return None

    def agree(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema`` with what was pinned."""
        self._reader.agree(spark, PinnedSchema.of(pinned), self.dataflow.name)

    def begin(self) -> None:
        """Look at each folder anew."""
        super().begin()
        self._found.clear()

    def failure(self, error: Exception) -> Exception | None:
        """Nothing: Spark names the file."""
        return None

    def read(self, spark: SparkSession, piece: WindowSlice | None, pinned: str) -> DataFrame:
        """The rows of the slice's work units.

        Raises:
            BadUnits: those with files that have an open quote, or fields which the pinned schema lacks (``unknown_fields: check``).
        """
        owners = self._owners(piece) if piece else {}
        files = [file for file, _ in owners.values()]
        found: dict[WorkUnit, str] = {}
        for bad in self._bad_files.misleading(spark, files, PinnedSchema.of(pinned)):
            found.setdefault(owners[bad.path][1], f"file {bad.path}, {bad.why}")
        if found:
            raise self._bad(found)
        return super().read(spark, piece, pinned)

    def _owners(self, piece: WindowSlice) -> dict[str, tuple[SourceFile, WorkUnit]]:
        """The work unit of each file, by the file's path."""
        return {file.path: (file, one) for one in piece.works for file in self._found[one.key]}

    def rows_of(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> DataFrame:
        """The rows of the folders' files."""
        files = [file for one in works for file in self._found[one.key]]
        origin = self.dataflow.target.origin_columns
        return self._reader.read(spark, files, PinnedSchema.of(pinned), origin=origin)

    def blame(
        self, spark: SparkSession, piece: WindowSlice, pinned: str, error: Exception
    ) -> BadUnits | None:
        """The work unit of the file that Spark names, else as for other sources."""
        owners = self._owners(piece)
        bad: BadFile | None = bad_file(error, owners)
        if bad is None:
            return super().blame(spark, piece, pinned, error)
        file, owner = owners[bad.path]
        closer = self._bad_files.closer(spark, file, PinnedSchema.of(pinned)) or bad
        return self._bad({owner: f"file {bad.path}: {closer.why}"})

    def size(self, piece: WindowSlice) -> Size:
        """Files and their bytes, too."""
        files = [file for one in piece.works for file in self._found.get(one.key, ())]
        total = sum(file.size for file in files)
        return super().size(piece)._replace(files=len(files), bytes=total)


def _as_name(name: str, value: Any) -> str:
    text = "" if value is None else str(value)
    if not text or text in (".", "..") or "/" in text or "\\" in text:
        raise PlanError(
            f"source.path: expected a value of unit {name} that can be the name of a folder, found {value!r}"
        )
    return text
