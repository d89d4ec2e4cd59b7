"""Validates plain values against sections; errors name every mistake."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from keras_dml.errors import UsageError
from keras_dml.naming import nearest, shortened, shown
from keras_dml.wording import listed

# What pydantic adds to a key whose value may have several forms.
FORMS = re.compile(r"range|list|(constrained-)?(int|float)|bool|literal\[.*\]")
# As many mistakes as a person reads.
MOST_SENTENCES = 20
# So alike are a mistyped name and what was meant.
ALIKE = 0.7
# What a value must be, by the kind of mistake that pydantic found.
_WANTED = {
    **dict.fromkeys(
        ("int_parsing", "int_type", "int_from_float"), "a whole number"
    ),
    **dict.fromkeys(("float_parsing", "float_type"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    "finite_number": "a finite number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "string_type": "text",
}
SectionType = TypeVar("SectionType", bound=BaseModel)


def validated(
    section: type[SectionType], values: Mapping[str, Any], where: str = ""
) -> SectionType:
    """Makes a section from plain values.

    Args:
        section: The class, such as `RunConfig`.
        values: Its values, with plain values in place of inner sections.
        where: What each sentence of the error starts with. Defaults to `""`.

    Raises:
        UsageError: If values are not valid; one sentence names each mistake.
    """
    try:
        return section.model_validate(values)
    except ValidationError as error:
        mistakes = error.errors(include_url=False)
        first = mistakes[:MOST_SENTENCES]
        sentences = [_sentence(item, section) for item in first]
        if len(mistakes) > len(first):
            others = len(mistakes) - len(first)
            sentences.append(f"There are {others:,} more mistakes.")
        raise UsageError(
            "\n".join(f"{where}{sentence}" for sentence in sentences)
        ) from error


def _sentence(item: Any, root: type[BaseModel]) -> str:
    """Returns a sentence on one mistake, with the nearest valid key."""
    location = [part for part in item["loc"] if not FORMS.fullmatch(str(part))]
    key = shortened(".".join(str(part) for part in location))
    if item["type"] == "extra_forbidden":
        known = _fields_at(location[:-1], root)
        last = str(location[-1])
        unknown = f"Unknown configuration key `{key}`."
        mistyped = difflib.get_close_matches(last, known, cutoff=ALIKE)
        elsewhere = [] if mistyped else _keys_like(last, root)
        near = listed(elsewhere[:3]) or nearest(last, known)
        if not mistyped and not elsewhere and not location[:-1]:
            return f"{unknown} There are: {', '.join(known)}."
        return f"{unknown} Nearest: {near}."
    received = shown(item["input"])
    if key and item["type"] in _WANTED:
        bounds = item.get("ctx", {}).items()
        wanted = _WANTED[item["type"]].format(
            **{name: _short(bound) for name, bound in bounds}
        )
        return (
            f"Configuration key `{key}` must be {wanted}. Received: {received}"
        )
    message = shortened(item["msg"].removeprefix("Value error, "), 500)
    message = message.rstrip(".")
    if not key:
        return f"{message[:1].upper()}{message[1:]}."
    return f"Configuration key `{key}`: {message}. Received: {received}"


def _short(bound: Any) -> Any:
    """Returns `0` for `0.0`."""
    whole = isinstance(bound, float) and bound.is_integer()
    return int(bound) if whole else bound


def _fields_at(
    location: Sequence[int | str], section: type[BaseModel]
) -> list[str]:
    """Returns the names of the fields of the section at `location`."""
    for part in location:
        if isinstance(part, str) and part in section.model_fields:
            inner = _section_of(section.model_fields[part].annotation)
            section = inner or section
    return list(section.model_fields)


def _keys_like(name: str, section: type[BaseModel]) -> list[str]:
    """Returns the keys below a section whose last part is like a name.

    The most alike come first; equal ones leave no others.
    """
    alike: dict[str, float] = {}
    for key in _keys_of(section):
        end = key.rpartition(".")[2]
        share = difflib.SequenceMatcher(None, name, end).ratio()
        if share >= ALIKE or name in end.split("_"):
            alike[key] = share
    least = 1.0 if 1.0 in alike.values() else 0.0
    order = sorted(alike, key=alike.__getitem__, reverse=True)
    return [f"`{key}`" for key in order if alike[key] >= least]


def _keys_of(section: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yields the keys below a section, with the usual names in lists."""
    for field, info in section.model_fields.items():
        key, inner = f"{above}{field}", _section_of(info.annotation)
        if inner is None:
            yield key
        elif "list[" in str(info.annotation):
            named = inner.model_fields.get("name")
            if named is not None and not named.is_required():
                # A phase stands below its stage, without the name of the list.
                place = above or f"{field}."
                yield from _keys_of(inner, f"{place}{named.default}.")
        elif info.default is not None:
            yield from _keys_of(inner, f"{key}.")


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """Returns the section class inside `X`, `list[X]` or `X | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (list, dict, Union, UnionType, Annotated):
        for argument in get_args(annotation):
            found = _section_of(argument)
            if found:
                return found
    return None
