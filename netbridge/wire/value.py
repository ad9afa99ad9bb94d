"""Values: objects that are not changed once they are made, as frames and actions.

The type checker sees to that.  dataclass(frozen=True) sees to it while the program runs: making a
frame of eleven fields takes six times as long then, and each message between hosts makes ten such
objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def value(kind: type[T]) -> type[T]:
    return dataclass(slots=True, unsafe_hash=True)(kind)
