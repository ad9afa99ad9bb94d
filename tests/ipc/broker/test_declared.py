"""Exchanges and bindings as records: what is damaged, and what another member has of them."""

from __future__ import annotations

import pytest

from shmbroker import JournalDamaged
from shmbroker.core.layout import (
    BINDING_PAYLOAD_BYTES,
    BINDINGS,
    EXCHANGES,
    NAME_BYTES_MAX,
    QUEUES,
    REPLICATE_ALL,
    REPLICATE_CONFIGURATION,
    REPLICATE_NONE,
)
from shmbroker.ipc.broker import declared
from shmbroker.ipc.broker.declared import HEAD, Binding, Exchange


def body(table: int, *texts: bytes) -> bytes:
    return HEAD.pack(table, 1, 2, 3, 4, *map(len, texts)) + b"".join(texts)


def test_what_a_record_says() -> None:
    exchange = Exchange(b"news", 1, b"other", 2)
    assert declared.read(body(EXCHANGES, b"news", b"other", b"", b"")) == exchange
    binding = Binding(b"news", b"q", 4, 1, 2, 3, b"key", b"\x80")
    assert declared.read(body(BINDINGS, b"news", b"q", b"key", b"\x80")) == binding


@pytest.mark.parametrize(
    "damaged",
    [
        body(EXCHANGES, b"news", b"", b"", b"")[: HEAD.size - 1],
        body(EXCHANGES, b"news", b"", b"", b"")[:-1],
        body(EXCHANGES, b"news", b"", b"", b"") + b"x",
        body(EXCHANGES, b"", b"", b"", b""),
        body(EXCHANGES, b"n" * (NAME_BYTES_MAX + 1), b"", b"", b""),
        body(BINDINGS, b"news", b"n" * (NAME_BYTES_MAX + 1), b"", b""),
        body(BINDINGS, b"news", b"q", b"k" * BINDING_PAYLOAD_BYTES, b"a"),
        body(QUEUES, b"news", b"", b"", b""),
        HEAD.pack(EXCHANGES, 1, 2, 3, 4, 4, 0, -1, 1) + b"news",
    ],
)
def test_a_record_that_contradicts_itself(damaged: bytes) -> None:
    with pytest.raises(JournalDamaged):
        declared.read(damaged)


def test_an_exchange_that_is_left_out_is_no_alternate() -> None:
    here = Exchange(b"here", 0, b"", REPLICATE_NONE)
    kept = Exchange(b"kept", 0, b"", REPLICATE_CONFIGURATION)
    binding = Binding(b"here", b"q", 0, 0, 0, 0, b"", b"")
    first, second = (
        Exchange(b"of " + name, 0, name, REPLICATE_ALL) for name in (b"here", b"kept")
    )
    found = declared.replicated([first, here, second, kept, binding])
    assert found == [Exchange(b"of here", 0, b"", REPLICATE_ALL), second, kept, binding]
