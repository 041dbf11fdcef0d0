"""The values that a key may have, read from the models' annotations.

Belongs here: questions to annotations, so that neither references nor an error's wording needs a list
of keys that must be kept up to date when a model gains a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ByteSize

from platform_assets.project.document import Key, value_at
from platform_assets.project.references import KEYS, Reference

Shapes = tuple[Any, ...]
"""The alternatives of one place: plain types, Literals, models, ``dict[...]``, ``tuple[...]``."""

_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    timedelta: "an ISO 8601 duration such as PT5M or P30D",
    ByteSize: "a size such as 1GiB",
    Reference: "{env: NAME}",
}


def shapes_at(root: Any, key: Key, value: Any = None) -> Shapes:
    """Return the shapes that a key below ``root`` may have; empty if the key is unknown.

    Args:
        root: a model.
        key: the key.
        value: the user's value at the root; its ``type`` chooses among several models.
    """
    shapes = of_type(alternatives(root), value)
    for part in key:
        value = value_at(value, (part,))
        shapes = of_type(below(shapes, part), value)
    return shapes


def of_type(shapes: Shapes, value: Any) -> Shapes:
    """Return the models that have the ``type`` of the value; all shapes if its type is unknown."""
    if not is_choice(shapes):
        return shapes
    type_name = value_at(value, ("type",))
    return (
        tuple(
            shape
            for shape in shapes
            if _is_model(shape) and type_name in get_args(_fields(shape).get("type"))
        )
        or shapes
    )


def is_choice(shapes: Shapes) -> bool:
    """Return whether the shapes include several models."""
    return sum(map(_is_model, shapes)) > 1


def below(shapes: Shapes, part: str | int) -> Shapes:
    """Return the shapes that a key or a list item below these shapes may have."""
    return tuple(alternative for shape in shapes for alternative in _below(shape, part))


def alternatives(annotation: Any) -> Shapes:
    """Return the members of a union, inside Annotated and Optional.

    A model that is written as one of its fields stands for that field.
    """
    origin = get_origin(annotation)
    if hasattr(annotation, "__metadata__"):  # Annotated
        return alternatives(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return tuple(alternative for member in get_args(annotation) for alternative in alternatives(member))
    if _is_model(annotation) and (field := getattr(annotation, "written_as", None)) is not None:
        return alternatives(_fields(annotation)[field])
    return () if annotation is NoneType else (annotation,)


def known_keys(shapes: Shapes) -> list[str]:
    """Return the keys of all models among the shapes, sorted."""
    return sorted({name for shape in shapes if _is_model(shape) for name in _fields(shape)})


def places_of(root: Any, name: str) -> list[Key]:
    """Return the keys with this name in a model, at its top or one level below."""
    tops = _shapes_of_fields(root)
    places: list[Key] = [(name,)] if name in tops else []
    return places + [(top, name) for top, shapes in tops.items() if name in known_keys(shapes)]


def takes_text(shapes: Shapes) -> bool:
    """Return whether a reference is a text here; False if a mapping may have its key.

    ``tags: {env: production}`` is a tag, not a variable.
    """
    if any(_is_mapping(shape) or shape is Reference or _has_reference_key(shape) for shape in shapes):
        return False
    return any(shape in (str, timedelta, ByteSize) or _is_literal(shape) for shape in shapes)


def _has_reference_key(shape: Any) -> bool:
    return any(key in known_keys((shape,)) for key in KEYS)


def in_words(shapes: Shapes) -> str:
    """Return the shapes in words, such as ``text, a number or true or false``; a Literal as its values."""
    return any_of(dict.fromkeys(word for shape in shapes for word in _words(shape)))


def any_of(words: Mapping[str, Any] | Sequence[str]) -> str:
    """Return the words as ``a, b or c``."""
    *most, last = words or ["something else"]
    return f"{', '.join(most)} or {last}" if most else last


def _words(shape: Any) -> Sequence[str]:
    if _is_literal(shape):
        return [str(value) for value in get_args(shape)]
    if _is_model(shape) or _is_mapping(shape):
        return ["a mapping"]
    if get_origin(shape) in (tuple, list):
        return ["a list"]
    return [_WORDS.get(shape, getattr(shape, "__name__", str(shape)))]


def _below(shape: Any, part: str | int) -> Shapes:
    if _is_model(shape):
        return _shapes_of_fields(shape).get(part, ())
    if _is_mapping(shape):
        return alternatives(get_args(shape)[1])
    if get_origin(shape) in (tuple, list) and isinstance(part, int):
        return alternatives(get_args(shape)[0])
    return ()


@cache
def _shapes_of_fields(model: type[BaseModel]) -> Mapping[str | int, Shapes]:
    return {key: alternatives(annotation) for key, annotation in _fields(model).items()}


@cache
def _fields(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the keys as users write them, with their annotations."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _is_literal(shape: Any) -> bool:
    origin: Any = get_origin(shape)
    return origin is Literal


def _is_model(shape: Any) -> bool:
    return isinstance(shape, type) and issubclass(shape, BaseModel)


def _is_mapping(shape: Any) -> bool:
    return get_origin(shape) in (dict, Mapping)
