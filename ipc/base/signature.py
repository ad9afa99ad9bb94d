"""Signatures of verbs that take their options as one dictionary, which is faster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

Verb = TypeVar("Verb", bound=Callable[..., Any])


def shows(options: type, defaults: Mapping[str, Any] | None = None) -> Callable[[Verb], Verb]:
    """`inspect.signature` and help() name the keys of this TypedDict in place of `**options`."""

    def shown(verb: Verb) -> Verb:
        told = signature(verb)
        named = [each for each in told.parameters.values() if each.kind != Parameter.VAR_KEYWORD]
        more = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=(defaults or {}).get(name),
                annotation=hint,
            )
            for name, hint in get_type_hints(options).items()
            if name not in told.parameters
        ]
        verb.__signature__ = told.replace(parameters=[*named, *more])  # type: ignore[attr-defined]
        return verb

    return shown


def check_names(verb: str, given: Iterable[str], known: Iterable[str]) -> None:
    """TypeError as Python's own, for the verb that was called, with the name that was meant."""
    from difflib import get_close_matches  # only for somebody who made a mistake

    for name in given:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{verb}() got an unexpected keyword argument {name!r}{meant}")
