"""Exchanges and bindings as records: what is damaged, and what another member has of them."""

from __future__ import annotations

import pytest

import shmbroker
from shmbroker import Broker, JournalDamaged
from shmbroker.core.layout import (
    BINDING_PAYLOAD_BYTES,
    BINDINGS,
    DECLARED_BUFFER_BYTES,
    DECLARED_RECORD_AT,
    DIRECT,
    EXCHANGES,
    HEADERS,
    NAME_BYTES_MAX,
    QUEUES,
    REPLICATE_ALL,
    REPLICATE_CONFIGURATION,
    REPLICATE_NONE,
    REPLICATE_UNSAID,
    TOPIC,
)
from shmbroker.ipc._native import ffi, lib
from shmbroker.ipc.broker import declared
from shmbroker.ipc.broker.declared import HEAD, Binding, Exchange
from shmbroker.ipc.message.properties import pack


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


def test_one_that_is_there_twice_does_not_stop_a_restart(broker: Broker) -> None:
    twice = [Exchange(b"news", kind, b"", REPLICATE_UNSAID) for kind in (TOPIC, DIRECT)]
    declared.declare_all(broker, [*twice, Exchange(b"late", TOPIC, b"", REPLICATE_UNSAID)])
    assert {each.name: each.kind for each in broker.exchanges()} == {
        "late": "topic", "news": "topic",
    }  # fmt: skip


def told(broker: Broker, table: int) -> list[declared.Declared]:
    """What the journal would have, of all rows."""
    catalog, row, found = lib.sb_catalog(broker._connection), 0, list[declared.Declared]()
    while (row := lib.sb_row_next(catalog, table, row)) >= 0:
        buffer = ffi.new("char[]", DECLARED_BUFFER_BYTES)
        length = lib.sb_declared_record(catalog, table, row, buffer)
        if length > 0:
            record = ffi.buffer(buffer + DECLARED_RECORD_AT, length)[:]
            found.append(declared.read(record))
        row += 1
    return found


def test_what_is_in_the_catalog_is_told_by_names(vhost: str) -> None:
    with shmbroker.connect(f"shm://{vhost}") as broker:
        broker.declare_exchange("lost", kind="direct")
        broker.declare_exchange("news", kind="topic", alternate="lost")
        broker.declare_exchange("heads", kind="headers", replicate="none")
        for name, durable in (("kept", True), ("passing", False)):
            broker.declare_queue(name, durable=durable)
            broker.bind("news", name, key="a.*")
        broker.bind("news", "heads", key="#", to="exchange")
        broker.bind("heads", "kept", arguments={"a": 1}, match="any")
        exchanges = [
            Exchange(b"lost", DIRECT, b"", REPLICATE_UNSAID),
            Exchange(b"news", TOPIC, b"lost", REPLICATE_UNSAID),
            Exchange(b"heads", HEADERS, b"", REPLICATE_NONE),
        ]
        bindings = [
            Binding(b"news", b"kept", 0, 0, 0, 0, b"a.*", b""),
            Binding(b"news", b"heads", 1, 0, 0, 0, b"#", b""),
            Binding(b"heads", b"kept", 0, 0, 1, 0, b"", pack({"a": 1})),
        ]
        assert told(broker, EXCHANGES) == exchanges
        assert told(broker, BINDINGS) == bindings
        broker.delete_exchange("lost", force=True)
        assert told(broker, EXCHANGES) == [
            Exchange(b"news", TOPIC, b"", REPLICATE_UNSAID), exchanges[2],
        ]  # fmt: skip
        broker.delete_queue("kept", force=True)
        assert told(broker, BINDINGS) == bindings[1:2]
