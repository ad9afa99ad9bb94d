"""Each value of a configuration, and where it is from; `***` for secrets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shmbroker.ipc.instance.config.option import Option
from shmbroker.ipc.instance.config.sources import NAME, Layers
from shmbroker.netbridge.config.config import ALL, option_of

HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class Explained:
    key: str
    value: object
    source: str


def explained(layers: Layers, place: Path) -> Iterator[Explained]:
    """In the order of the tables."""
    named = dict.fromkeys(
        key.rpartition(".")[0] for key in layers.values if _is_named(option_of(key))
    )
    for option in ALL:
        if not _is_named(option):
            yield _one(option, option.key, layers, place)
    for table in named:
        for option in ALL:
            if option.table == table.partition(".")[0] + NAME:
                yield _one(option, f"{table}.{option.name}", layers, place)


def _is_named(option: Option | None) -> bool:
    return option is not None and option.table.endswith(NAME)


def _one(option: Option, key: str, layers: Layers, place: Path) -> Explained:
    value = layers.values.get(key, option.default)
    if option.kind.name.startswith("secret") and value:
        value = HIDDEN
    source = layers.sources.get(key, "default")
    return Explained(key, value, str(place) if source == place.name else source)
