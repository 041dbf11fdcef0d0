"""Survey files that no dataflow reads yet, for ``strandline init --from``, without Spark.

Any bytes may occur in such files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from partitions.errors import SourceError
from partitions.path.hive import folder_value, partition_columns
from partitions.path.listing_positions import FromBeginning
from partitions.path.names_by_time import examine
from partitions.path.skipped import quote_name, skip_warnings
from partitions.path.source import SourceFile
from partitions.records.first_types import FirstTypes
from partitions.sources.first_draft import (
    ending_of,
    format_of_ending,
    has_decimal_comma,
    is_code,
    is_day_first,
    looks_like_a_date,
    main_format,
    split_datasets,
)
from partitions.sources.formats import FORMATS, Option
from resources.connections.places import Place
from resources.listing import Budget, list_above
from resources.sources.files.beginnings import UnreadableFile, find_readable

_MAX_NAMED = 5
"""The most files that a message names."""

_BUDGET = Budget(pages=200, seconds=20.0)


@dataclass(frozen=True)
class Dataset:
    """A dataset: files that belong together, and what their beginnings show.

    "The first file" below is the first one that can be read.

    Attributes:
        folder: relative to the surveyed place; "" is the place itself.
        form: the format.
        count: the number of files of this format.
        size: the bytes of all these files.
        complete: whether the listing reached its end.
        endings: the endings as spelled, if the format's own do not match all files; else none.
        skipped: the number of files with other endings, by ending.
        options: the options of the format.
        elements: XML: how often each element stands inside the root at the beginning of the first file.
        sheets: Excel: the names of the sheets that the first file shows.
        sheet: Excel: the first sheet with a header and a row below it; None if there is none.
        columns: names and types from the beginnings of the first and some further files; none if files
            carry their types.
        valueless: the columns without a value there, and so without a type.
        empty_texts: CSV: the columns without a value in the first file, which the first run would pin as text.
        codes: the text columns whose values only look like numbers, such as `007`.
        commas: the columns of numbers with a decimal comma; they are text until a locale is declared.
        days: the columns of dates that begin with the day, `28.12.2024`; they are text, too.
        partitions: the names of hive folders.
        dated: the hive folders whose values are dates.
        unsorted: why names do not sort by time; none if nothing speaks against it.
        unread: the files before the first one, each with the reason.
    """

    folder: str
    form: str
    count: int
    size: int
    complete: bool
    endings: Sequence[str] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    elements: Mapping[str, int] = field(default_factory=dict)
    sheets: Sequence[str] = ()
    sheet: str | None = None
    columns: Sequence[tuple[str, str]] = ()
    codes: Sequence[str] = ()
    commas: Sequence[str] = ()
    days: Sequence[str] = ()
    partitions: Sequence[str] = ()
    dated: Sequence[str] = ()
    unsorted: Sequence[str] = ()
    valueless: Sequence[str] = ()
    empty_texts: Sequence[str] = ()
    unread: Sequence[UnreadableFile] = ()


@dataclass(frozen=True)
class Survey:
    """The datasets below a place.

    Attributes:
        datasets: one for each folder of files that belong together.
        skipped_names: the files that belong to no dataset, with the reasons, as lines for people.
    """

    datasets: Sequence[Dataset]
    skipped_names: Sequence[str] = ()


def survey(place: Place) -> Survey:
    """Return the datasets below a place, and the files that were passed over.

    Raises:
        SourceError: the place cannot be listed, or no file has the ending of a supported format.
    """
    listing = list_above(place, FromBeginning(), ("",), budget=_BUDGET)
    files = {file.path: file for file in listing.listed.files}
    folders, loose = split_datasets(list(files))
    datasets = [
        dataset
        for folder, paths in folders.items()
        if (dataset := _survey_dataset(place, folder, paths, files, complete=listing.complete)) is not None
    ]
    skipped_names = (*skip_warnings(listing.listed.skipped), *_describe_loose_files(loose))
    if not datasets:
        endings = ", ".join(sorted({ending_of(path) or "none" for path in files})) or "no file"
        supported_endings = " ".join(
            dict.fromkeys(ending for form in FORMATS.values() for ending in form.endings)
        )
        suffix = "".join(f"; {line}" for line in skipped_names)
        raise SourceError(
            f"{place}: expected files of a format that Strandline reads ({supported_endings}; text also "
            f"compressed), found endings: {endings}{suffix}",
            code="source_missing",
        )
    return Survey(datasets, skipped_names)


def _describe_loose_files(paths: Sequence[str]) -> Iterator[str]:
    """Yield a line that names the files beside the folders of datasets, if there are any."""
    if paths:
        names = ", ".join(f"'{quote_name(path)[1:-1]}'" for path in paths[:_MAX_NAMED])
        suffix = f" and {len(paths) - _MAX_NAMED:,} more" if len(paths) > _MAX_NAMED else ""
        yield (
            f"skipped {names}{suffix}: these files lie beside the folders of datasets and belong to none of them. Move files of one kind into a folder"
            " of their own, and run init for it"
        )


def _survey_dataset(
    place: Place, folder: str, paths: Sequence[str], files: Mapping[str, SourceFile], *, complete: bool
) -> Dataset | None:
    form, endings = main_format(paths)
    if form is None:
        return None
    own = [ending for ending in endings if format_of_ending(ending) == form]
    chosen = [path for path in paths if ending_of(path) in own]
    files_by_path = {path: files[f"{folder}/{path}" if folder else path] for path in chosen}
    is_json = form == "ndjson" and {ending.lower() for ending in own} <= set(FORMATS["json"].all_endings)
    beginning, unread = find_readable(place, form, files_by_path, is_json=is_json)
    names = partition_columns(chosen)
    return Dataset(
        folder,
        beginning.form,
        len(chosen),
        sum(file.size for file in files_by_path.values()),
        complete,
        endings=() if set(own) <= set(FORMATS[beginning.form].all_endings) else sorted(own),
        skipped={ending or "no ending": count for ending, count in endings.items() if ending not in own},
        options=beginning.options,
        elements=beginning.elements,
        sheets=beginning.sheets,
        sheet=beginning.sheet,
        columns=beginning.types.columns,
        codes=_columns_matching(beginning.types, lambda texts: any(map(is_code, texts))),
        commas=_columns_matching(beginning.types, has_decimal_comma),
        days=_columns_matching(beginning.types, is_day_first),
        partitions=names,
        dated=[name for name in names if looks_like_a_date(folder_value(path, name) for path in chosen)],
        unsorted=examine(chosen).findings,
        valueless=beginning.types.valueless,
        empty_texts=_columns_matching(beginning.own_types or beginning.types, lambda texts: not texts)
        if beginning.form == "csv"
        else (),
        unread=unread,
    )


def _columns_matching(types: FirstTypes, matches: Callable[[Iterable[str]], bool]) -> list[str]:
    """Return the text columns whose values match a predicate."""
    texts = (name for name, data_type in types.columns if data_type == "string")
    return [name for name in texts if matches(types.texts.get(name, ()))]
