"""Exchanges and bindings as the journal's records have them: by names, for rows and references are
of one boot only.  They are read again by ipc/broker/declared.py.

A buffer has two entries as they are in the catalog, and the record behind them.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load, store
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    BINDING_ARGUMENTS_LENGTH_AT,
    BINDING_DESTINATION_AT,
    BINDING_EXCLUSIVE_AT,
    BINDING_KEY_AT,
    BINDING_KEY_LENGTH_AT,
    BINDING_KIND_AT,
    BINDING_MATCH_AT,
    BINDING_PAYLOAD_BYTES,
    BINDING_SOURCE_AT,
    BINDING_TARGET_AT,
    BINDINGS,
    DECLARED_ARGUMENTS_LENGTH_AT,
    DECLARED_BYTES_AT,
    DECLARED_EXCLUSIVE_AT,
    DECLARED_FIRST_LENGTH_AT,
    DECLARED_KEY_LENGTH_AT,
    DECLARED_KIND_AT,
    DECLARED_OPTION_AT,
    DECLARED_RECORD_AT,
    DECLARED_SECOND_LENGTH_AT,
    DECLARED_TABLE_AT,
    DECLARED_TO_EXCHANGE_AT,
    ENTRY_BYTES,
    ENTRY_NAME_AT,
    ENTRY_NAME_LENGTH_AT,
    EXCHANGE_ALTERNATE_AT,
    EXCHANGE_KIND_AT,
    EXCHANGE_REPLICATE_AT,
    EXCHANGES,
    NAME_BYTES_MAX,
    QUEUE_DURABLE,
    QUEUE_FLAGS_AT,
    QUEUES,
    REFERENCE_INDEX_MASK,
)
from shmbroker.core.row import row_copy


@kernel
def declared_name(entry: int, to: int) -> int:
    """The name of an entry, copied: its length."""
    length = load(entry + ENTRY_NAME_LENGTH_AT)
    if length < 0 or length > NAME_BYTES_MAX:
        return 0
    copy(to, entry + ENTRY_NAME_AT, length)
    return length


@kernel
def declared_name_of(catalog: int, table: int, reference: int, entry: int, to: int) -> int:
    """The same of what a reference stands for, with its entry; 0 if it is gone."""
    if row_copy(catalog, table, reference & REFERENCE_INDEX_MASK, entry) != reference:
        return 0
    return declared_name(entry, to)


@kernel
def declared_exchange(catalog: int, entry: int, record: int) -> int:
    """How long its names are; it may have an alternate.  0: it is not to be told."""
    first = declared_name(entry, record + DECLARED_BYTES_AT)
    second = 0
    alternate = load(entry + EXCHANGE_ALTERNATE_AT)
    if alternate != 0:
        to = record + DECLARED_BYTES_AT + first
        second = declared_name_of(catalog, EXCHANGES, alternate, entry + ENTRY_BYTES, to)
    store(record + DECLARED_KIND_AT, load(entry + EXCHANGE_KIND_AT))
    store(record + DECLARED_OPTION_AT, load(entry + EXCHANGE_REPLICATE_AT))
    store(record + DECLARED_FIRST_LENGTH_AT, first)
    store(record + DECLARED_SECOND_LENGTH_AT, second)
    return first + second if first > 0 else 0


@kernel
def declared_binding(catalog: int, entry: int, record: int) -> int:
    """How long its names, its key and arguments are; 0: it is not to be told, as one that leads to
    a queue that does not outlive the machine."""
    kind = load(entry + BINDING_KIND_AT)
    if kind not in (QUEUES, EXCHANGES):
        return 0
    other = entry + ENTRY_BYTES
    to = record + DECLARED_BYTES_AT
    source, destination = load(entry + BINDING_SOURCE_AT), load(entry + BINDING_DESTINATION_AT)
    first = declared_name_of(catalog, EXCHANGES, source, other, to)
    second = declared_name_of(catalog, kind, destination, other, to + first)
    if first == 0 or second == 0:
        return 0
    if kind == QUEUES and not load(other + QUEUE_FLAGS_AT) & QUEUE_DURABLE:
        return 0
    key = load(entry + BINDING_KEY_LENGTH_AT)
    arguments = load(entry + BINDING_ARGUMENTS_LENGTH_AT)
    if key < 0 or arguments < 0 or key + arguments > BINDING_PAYLOAD_BYTES:
        return 0
    copy(to + first + second, entry + BINDING_KEY_AT, key + arguments)
    store(record + DECLARED_TO_EXCHANGE_AT, int(kind == EXCHANGES))
    store(record + DECLARED_KIND_AT, load(entry + BINDING_TARGET_AT))
    store(record + DECLARED_OPTION_AT, load(entry + BINDING_MATCH_AT))
    store(record + DECLARED_EXCLUSIVE_AT, load(entry + BINDING_EXCLUSIVE_AT))
    store(record + DECLARED_FIRST_LENGTH_AT, first)
    store(record + DECLARED_SECOND_LENGTH_AT, second)
    store(record + DECLARED_KEY_LENGTH_AT, key)
    store(record + DECLARED_ARGUMENTS_LENGTH_AT, arguments)
    return first + second + key + arguments


@exported_cold
def declared_record(catalog: int, table: int, row: int, buffer: int) -> int:
    """What is in this row, of exchanges or bindings, as a record: its length; 0: it has none."""
    record = buffer + DECLARED_RECORD_AT
    if row_copy(catalog, table, row, buffer) < 0:
        return 0
    for word in range(DECLARED_TABLE_AT, DECLARED_BYTES_AT, 8):
        store(record + word, 0)
    store(record + DECLARED_TABLE_AT, table)
    if table == BINDINGS:
        length = declared_binding(catalog, buffer, record)
    else:
        length = declared_exchange(catalog, buffer, record)
    return DECLARED_BYTES_AT + length if length > 0 else 0
