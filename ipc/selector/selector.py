"""A selector: the condition that a message must meet, as in JMS (docs/selectors.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from shmbroker.core.codes import OK
from shmbroker.core.layout import LEVEL_DEFAULT
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.base.errors import SelectorError
from shmbroker.ipc.message.properties import pack

KEPT = 512
"""Programs of the texts that were compiled last."""


@lru_cache(KEPT)
def _compiled(text: str) -> bytes:
    from shmbroker.ipc.selector.program import compile_text  # the parser: 30 ms to load

    program = compile_text(text)
    assert lib.sb_selector_check(program, len(program)) == OK, text
    return program


@dataclass(frozen=True, slots=True)
class Selector:
    """Compiled when it is made; SelectorError says where the text is wrong."""

    text: str
    program: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise SelectorError(f"a selector is a text, not {type(self.text).__name__}")
        object.__setattr__(self, "program", _compiled(self.text))

    def matches(
        self,
        properties: Mapping[str, Any] | None = None,
        *,
        key: str = "",
        size: int = 0,
        priority: int = LEVEL_DEFAULT,
        deliveries: int = 0,
        published_at: int = 0,
        expires_at: int = 0,
    ) -> bool:
        """Whether a message like this is selected; times are in nanoseconds since the epoch."""
        packed, key_bytes = pack(properties), key.encode()
        subject = ffi.new("sb_subject *")
        # named, so that the memory lives as long as the call
        subject.properties = at_properties = ffi.from_buffer(packed)
        subject.key = at_key = ffi.from_buffer(key_bytes)
        subject.properties_length, subject.key_length = len(at_properties), len(at_key)
        subject.body_length, subject.priority, subject.deliveries = size, priority, deliveries
        subject.published_ns, subject.expiry_ns = published_at, expires_at
        return bool(lib.sb_selector_matches(self.program, len(self.program), subject))
