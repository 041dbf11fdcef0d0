"""Translates pydantic's errors for a project file: key and line, found, expected, nearest."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from partitions.errors import ConfigurationError
from partitions.refusal import PartsDoNotFit
from partitions.spelling import nearest_name
from platform_assets.project.document import Key, ProjectDocument, leaves, within
from platform_assets.project.errors import ProjectError
from platform_assets.project.references import ReferencedText
from platform_assets.project.secret_keys import display_value
from platform_assets.project.shapes import any_of, in_words, is_choice, known_keys, places_of, shapes_at

_LIMITS = {
    "greater_than": "a value above {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "a value below {lt}",
    "less_than_equal": "at most {le}",
    "string_too_short": "text that is not empty",
    "too_short": "at least {min_length} of them",
    "too_long": "at most {max_length} of them",
    "string_pattern_mismatch": "text that matches {pattern}",
}
_VALIDATOR_TEXT = re.compile(
    r"(?:(?P<why>.*?):? )?expected (?P<expected>.*?)(?:[,;] found (?P<found>.*))?", re.DOTALL
)


def translate_errors(
    validation: ValidationError,
    document: ProjectDocument,
    model: type[BaseModel],
    texts: Mapping[Key, ReferencedText],
    unwritten: Collection[str] = (),
) -> list[ProjectError]:
    """Return the errors of one validation, each key once.

    A union reports an error for each of its members; only the errors deepest in the file count.

    Args:
        validation: pydantic's error.
        document: the file as it was written.
        model: the model of the validation.
        texts: the texts from the environment, which must not be shown.
        unwritten: fields of the model that no user writes.
    """
    errors = validation.errors()
    fits = [error for error in errors if not isinstance(_cause(error), PartsDoNotFit)]
    if not fits:
        return [
            mask_texts(refusal, key, texts)
            for error in errors
            for key, refusal in _refused_combinations(error, document)
        ]
    by_key = {_key(error, document, model): error for error in reversed(fits)}
    deepest = [
        key
        for key in reversed(by_key)
        if not any(within(other_key, key) and other_key != key for other_key in by_key)
    ]
    return [
        mask_texts(_project_error(key, by_key[key], document, model, unwritten), key, texts)
        for key in deepest
    ]


def translate_escaped(
    error: ConfigurationError,
    document: ProjectDocument,
    value: Mapping[str, Any],
    texts: Mapping[Key, ReferencedText],
) -> tuple[Key, ProjectError]:
    """Return the key and error of an exception that pydantic passes on unchanged.

    pydantic collects only a validator's ValueErrors, not Strandline's own errors. The key is that of the
    value quoted in the message.
    """
    message = error.message
    key = next((key for key, leaf in leaves(value) if isinstance(leaf, str) and f"'{leaf}'" in message), ())
    return key, mask_texts(_validator_error(key, message, document.get(key), document), key, texts)


def _cause(error: ErrorDetails) -> Any:
    """Return the error that a validator of Strandline raised, or None."""
    return error.get("ctx", {}).get("error")


def _refused_combinations(
    error: ErrorDetails, document: ProjectDocument
) -> Iterator[tuple[Key, ProjectError]]:
    """Yield each refused combination with its key."""
    cause = _cause(error)
    for refusal in cause.refusals if isinstance(cause, PartsDoNotFit) else ():
        yield refusal.key, document.error(refusal.key, refusal.actual, refusal.expected)


def _key(error: ErrorDetails, document: ProjectDocument, model: type[BaseModel]) -> Key:
    """Return the error's key in the file: pydantic's location without the names of union members.

    A member is named by its ``type``, which may also be the name of a key.
    """
    key: Key = ()
    tag: Key | None = None
    for part in error["loc"]:
        if tag != key and document.get((*key, "type")) == part and is_choice(shapes_at(model, key)):
            tag = key
        elif document.has((*key, part)):
            key = (*key, part)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        return (*key, "type")
    return (*key, error["loc"][-1]) if error["type"] == "missing" else key


def _project_error(
    key: Key,
    error: ErrorDetails,
    document: ProjectDocument,
    model: type[BaseModel],
    unwritten: Collection[str],
) -> ProjectError:
    value, shapes, error_type = document.get(key), shapes_at(model, key, document.value), error["type"]
    context = error.get("ctx", {})
    if error_type == "extra_forbidden":
        allowed = known_keys(shapes_at(model, key[:-1], document.value))
        allowed = [name for name in allowed if key[1:] or name not in unwritten]
        elsewhere = _elsewhere(key, model, unwritten)
        close = None if elsewhere else nearest_name(str(key[-1]), allowed)
        return document.error(key, "an unknown key", f"one of {', '.join(allowed)}{elsewhere}", close)
    if error_type in ("missing", "union_tag_not_found"):
        return document.error(key, "nothing", f"{in_words(shapes)} (this key is required)")
    if error_type in ("literal_error", "union_tag_invalid"):
        values = re.findall(r"'([^']*)'", context.get("expected") or context["expected_tags"])
        close = nearest_name(value, values) if isinstance(value, str) else None
        return document.error(
            key, display_value(value, key), any_of(values) if values else context["expected"], close
        )
    if error_type == "value_error":
        cause = context["error"]
        return _validator_error(key, str(cause), value, document, getattr(cause, "nearest", None))
    limit = _LIMITS.get(error_type)
    expected = limit.format(**context) if limit else in_words(shapes) + _hint(value, shapes, key)
    return document.error(key, display_value(value, key), expected)


def _elsewhere(key: Key, model: type[BaseModel], unwritten: Collection[str]) -> str:
    """Return where an unknown key would be valid, in words; "" if nowhere."""
    name = str(key[-1])
    places = [place for place in places_of(model, name) if place != key and place[0] not in unwritten]
    where = [f"in {place[0]}" if place[1:] else "at the top of the file, not indented" for place in places]
    return f"; {name} belongs {any_of(where)}" if where else ""


def _validator_error(
    key: Key, text: str, value: Any, document: ProjectDocument, close: str | None = None
) -> ProjectError:
    """Return the error of a validator's text, ``why: expected this, found that``.

    "why" and "that" may be missing. If the text is about a whole mapping, the first key that it names is
    reported.
    """
    match = _VALIDATOR_TEXT.fullmatch(text)
    why, expected, actual = match.group("why", "expected", "found") if match else (None, text, None)
    if isinstance(value, dict):
        named_keys = [word for word in dict.fromkeys(re.findall(r"\w+", text)) if word in value]
        key, actual = (*key, *named_keys[:1]), actual or " and ".join(named_keys)
    return document.error(
        key, actual or display_value(value, key), f"{expected} ({why})" if why else expected, close
    )


def _hint(value: Any, shapes: Iterable[Any], key: Key) -> str:
    if str in shapes and isinstance(value, bool | int | float):
        return " (put it in quotes)"
    lists = [get_origin(shape) in (tuple, list) for shape in shapes]
    return (
        f" such as [{display_value(value, key)}]" if lists and all(lists) and isinstance(value, str) else ""
    )


def mask_texts(error: ProjectError, key: Key, texts: Mapping[Key, ReferencedText]) -> ProjectError:
    """Return the error with texts from the environment replaced by their variables' names."""
    actual, expected = error.actual, error.expected
    for place, text in texts.items():
        if within(place, key):
            actual, expected = actual.replace(text, repr(text)), expected.replace(text, repr(text))
    return ProjectError(error.file, error.line, error.key, actual, expected, error.nearest)
