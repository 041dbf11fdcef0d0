"""What one parse of a document tells beside its records: the names in it, whether it ends, and other elements where no record is found."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.sources.files.checked import BadRecord
from resources.sources.files.elements import BrokenXmlError, XmlLook, look_through, names_before
from resources.sources.files.formats.xml_options import XmlOptions

_MOST_NAMES = 10


class XmlLooks:
    """The looks at the files of one dataflow: checks, and questions for names, ask for the same one."""

    def __init__(self, place: Place, options: XmlOptions) -> None:
        """Look at no file yet.

        Args:
            place: the root of the files.
            options: of the source.
        """
        self._place, self._options = place, options
        self._looks: dict[SourceFile, XmlLook] = {}
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """Which files have no record."""
        return tuple(self._remarks)

    def at(self, file: SourceFile) -> XmlLook:
        """Return what a look at a file tells; it is parsed once."""
        if file not in self._looks:
            self._looks[file] = look_through(self._place, file.path, self._options.form)
        return self._looks[file]

    def forget_others(self, files: Collection[SourceFile]) -> None:
        """Forget the looks at other files than these."""
        self._looks = {file: look for file, look in self._looks.items() if file in files}

    def note_missing_tag(self, files: Sequence[SourceFile]) -> None:
        """Look into files without a record: a wrong ``rowTag`` is no error to Spark, which finds none then."""
        tag = self._options.row_tag
        others: dict[str, list[str]] = {}
        for file in files if len(self._remarks) < _MOST_NAMES else ():
            names = names_before(self._place, file.path, tag, _MOST_NAMES) if file.size else None
            if names and len(names) > 1:  # a root alone is an empty document
                others[file.path] = names
        for path, names in list(others.items())[:1]:
            which = f"file {path} and {len(others) - 1} more have" if len(others) > 1 else f"file {path} has"
            remark = f"{which} no element {tag}, so no record: it has {', '.join(names)}; correct options.rowTag if one of these is a record"
            self._remarks[remark] = None


def broken_record(broken: BrokenXmlError) -> BadRecord:
    """Return where a document breaks off, or is none, as a record."""
    why = broken.why if broken.is_xml else f"expected XML, found text that is none ({broken.why})"
    return BadRecord("", why, broken.line)
