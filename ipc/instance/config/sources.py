"""Where values of a configuration come from: a flag, else the environment, else the file.

    SHMBROKER_HA_ROLE=backup                       ha.role
    SHMBROKER_CREDENTIALS_APPS_PASSWORD=...        credentials.apps.password

A name of a table that is not in the file is that of the variable, in lower case with dashes.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from shmbroker.ipc.instance.config.option import Option

PREFIX = "SHMBROKER_"
NAME = ".NAME"


class NoSuchVariable(ValueError):
    """A variable names an option that there is not; the message says which."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Values by key, and where each is from."""

    values: dict[str, object]
    sources: dict[str, str]


def value_of(text: str) -> object:
    """What a text of a command line or a variable means: TOML, or else itself."""
    with suppress(ValueError, RecursionError):
        return tomllib.loads(f"value = {text}")["value"]
    return text


def variable(key: str) -> str:
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", key.upper())


def layered(
    file: Mapping[str, object],
    options: Iterable[Option],
    environment: Mapping[str, str],
    flags: Mapping[str, object],
    file_name: str,
) -> Layers:
    values, sources = dict(file), dict.fromkeys(file, file_name)
    of_environment = _of_environment(tuple(options), file, environment)
    for key, (name, value) in of_environment.items():
        values[key], sources[key] = value, name
    values |= flags
    sources |= dict.fromkeys(flags, "flag")
    return Layers(values, sources)


def _of_environment(
    options: tuple[Option, ...], file: Mapping[str, object], environment: Mapping[str, str]
) -> dict[str, tuple[str, object]]:
    single = {variable(each.key): each.key for each in options if NAME not in each.table}
    named = [each for each in options if NAME in each.table]
    found: dict[str, tuple[str, object]] = {}
    ours = (each for each in environment.items() if each[0].startswith(PREFIX))
    for name, text in ours:
        key = single.get(name) or _of_named(name, named, file)
        if key is not None:
            found[key] = name, value_of(text)
        else:
            _check_unknown(name, [*single, *(variable(each.key) for each in named)], options)
    return found


def _of_named(name: str, named: list[Option], file: Mapping[str, object]) -> str | None:
    """The longest option counts: cluster-filter and update-cluster-filter end alike."""
    for option in sorted(named, key=lambda each: -len(each.name)):
        table = option.table.removesuffix(NAME)
        inside = re.fullmatch(
            f"{variable(table)}_(.+)_{variable(option.name).removeprefix(PREFIX)}", name
        )
        if inside:
            given = (key[len(table) + 1 :].rpartition(".")[0] for key in file if
                     key.startswith(f"{table}."))  # fmt: skip
            same = (each for each in given if variable(each) == PREFIX + inside[1])
            return f"{table}.{next(same, inside[1].lower().replace('_', '-'))}.{option.name}"
    return None


def _check_unknown(name: str, known: list[str], options: tuple[Option, ...]) -> None:
    """A variable that begins as one of ours is a misspelt one of ours."""
    tables = {variable(each.table.removesuffix(NAME)) for each in options}
    if any(name.startswith(f"{each}_") for each in tables):
        meant = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {meant[0]}?" if meant else ""
        raise NoSuchVariable(f"the environment has {name}, which is no option{hint}")
