"""The catalog of a vhost: its queues and exchanges by name (bindings are in binding.py).

Changers hold a lock of the floor above; readers hold none (row.py).  To add: row_free, memory
behind catalog_entry_at, *_put.  To remove: row_remove, then bindings_remove.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load, load_acquire, store, store_release
from shmbroker.core.codes import (
    DAMAGED,
    INVALID,
    NOT_A_SEGMENT,
    NOT_FOUND,
    OK,
    OTHER_VERSION,
    TRUNCATED,
)
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    BINDINGS,
    CATALOG_ARENA_AT,
    CATALOG_BOOT_AT,
    CATALOG_BYTES,
    CATALOG_BYTES_AT,
    CATALOG_COLUMNS_END,
    CATALOG_IDENTITY_BYTES,
    CATALOG_MAGIC,
    CATALOG_MAGIC_AT,
    CATALOG_NAME_AT,
    CATALOG_NAME_BYTES_MAX,
    CATALOG_NAME_LENGTH_AT,
    CATALOG_VERSION_AT,
    DIRECT,
    ENTRY_NAME_AT,
    ENTRY_NAME_LENGTH_AT,
    EXCHANGE_ALTERNATE_AT,
    EXCHANGE_FLAGS_AT,
    EXCHANGE_KIND_AT,
    EXCHANGE_REPLICATE_AT,
    EXCHANGES,
    HEADERS,
    LAYOUT_VERSION,
    NAME_BYTES_MAX,
    QUEUE_CREATED_AT,
    QUEUE_FLAGS_AT,
    QUEUE_IDENTITY_HIGH_AT,
    QUEUE_IDENTITY_LOW_AT,
    QUEUE_SLOTS_AT,
    QUEUES,
    REFERENCE_INDEX_MASK,
    ROW_LIVE,
    ROW_TAG,
    SETTINGS,
)
from shmbroker.core.row import (
    entry_at,
    reference_of,
    row_commit,
    row_count,
    row_in_range,
    row_load,
    row_of,
    row_unchanged,
)
from shmbroker.core.span import HASH_START, span_equals, span_hash


@exported_cold
def catalog_bytes() -> int:
    """How large the segment of a catalog is."""
    return CATALOG_BYTES


@exported_cold
def catalog_columns_bytes() -> int:
    """How much of it, from the start, has memory behind it from the start."""
    return CATALOG_COLUMNS_END


@exported_cold
def catalog_entry_at(table: int, index: int) -> int:
    """Where an entry is in the segment: it needs memory before it is filled."""
    if not row_in_range(table, index):
        return INVALID
    return entry_at(0, table, index)


@exported_cold
def catalog_format(catalog: int, identity: int, boot: int, name: int, name_length: int) -> int:
    """Make the catalog of a vhost in zeroed memory; identity is its arena's.  Magic comes last."""
    if name_length < 0 or name_length > CATALOG_NAME_BYTES_MAX:
        return INVALID
    store(catalog + CATALOG_VERSION_AT, LAYOUT_VERSION)
    store(catalog + CATALOG_BYTES_AT, CATALOG_BYTES)
    store(catalog + CATALOG_ARENA_AT, identity)
    store(catalog + CATALOG_BOOT_AT, boot)
    store(catalog + CATALOG_NAME_LENGTH_AT, name_length)
    copy(catalog + CATALOG_NAME_AT, name, name_length)
    store_release(catalog + CATALOG_MAGIC_AT, CATALOG_MAGIC)
    return OK


@exported_cold
def catalog_check(catalog: int, size: int) -> int:
    """Whether a segment of so many bytes is a catalog: OK or a code."""
    if size < CATALOG_IDENTITY_BYTES:
        return TRUNCATED
    if load_acquire(catalog + CATALOG_MAGIC_AT) != CATALOG_MAGIC:
        return NOT_A_SEGMENT
    if load(catalog + CATALOG_VERSION_AT) != LAYOUT_VERSION:
        return OTHER_VERSION
    length = load(catalog + CATALOG_NAME_LENGTH_AT)
    if length < 0 or length > CATALOG_NAME_BYTES_MAX:
        return DAMAGED
    if load(catalog + CATALOG_BYTES_AT) != CATALOG_BYTES:
        return DAMAGED
    if size < CATALOG_BYTES:
        return TRUNCATED
    return OK


@exported_cold
def name_hash(name: int, length: int) -> int:
    """32 bits of a name, as its row keeps them."""
    return span_hash(HASH_START, name, length)


@kernel
def entry_has_name(entry: int, name: int, length: int) -> int:
    if load(entry + ENTRY_NAME_LENGTH_AT) != length:
        return 0
    return span_equals(entry + ENTRY_NAME_AT, name, length)


@exported_cold
def reference_find(catalog: int, table: int, name: int, length: int) -> int:
    """The reference to the queue or exchange of this name, or NOT_FOUND.

    For those who hold no lock: a row may get another name as soon as it was found.
    """
    if table < 0 or table >= BINDINGS or length < 0 or length > NAME_BYTES_MAX:
        return NOT_FOUND
    wanted = ROW_LIVE | name_hash(name, length)
    for index in range(row_count(catalog, table)):
        word = row_load(catalog, table, index)
        while word & ROW_TAG == wanted:
            same = entry_has_name(entry_at(catalog, table, index), name, length)
            if row_unchanged(catalog, table, index, word):
                if same:
                    return reference_of(word, index)
                break
            word = row_load(catalog, table, index)
    return NOT_FOUND


@exported_cold
def row_find(catalog: int, table: int, name: int, length: int) -> int:
    """The row of the queue or exchange of this name, or NOT_FOUND."""
    reference = reference_find(catalog, table, name, length)
    if reference < 0:
        return reference
    return reference & REFERENCE_INDEX_MASK


@kernel
def row_is_fillable(catalog: int, table: int, index: int) -> int:
    return int(row_in_range(table, index) and not row_load(catalog, table, index) & ROW_LIVE)


@kernel
def named_commit(catalog: int, table: int, index: int, name: int, length: int) -> int:
    entry = entry_at(catalog, table, index)
    store(entry + ENTRY_NAME_LENGTH_AT, length)
    copy(entry + ENTRY_NAME_AT, name, length)
    return row_commit(catalog, table, index, name_hash(name, length))


@exported_cold
def queue_put(
    catalog: int,
    index: int,
    name: int,
    length: int,
    slots: int,
    flags: int,
    created: int,
    identity_high: int,
    identity_low: int,
) -> int:
    """Add a queue in a free row: its reference.  The caller has filled the entry's settings."""
    if length < 0 or length > NAME_BYTES_MAX or not row_is_fillable(catalog, QUEUES, index):
        return INVALID
    entry = entry_at(catalog, QUEUES, index)
    store(entry + QUEUE_SLOTS_AT, slots)
    store(entry + QUEUE_FLAGS_AT, flags)
    store(entry + QUEUE_CREATED_AT, created)
    store(entry + QUEUE_IDENTITY_HIGH_AT, identity_high)
    store(entry + QUEUE_IDENTITY_LOW_AT, identity_low)
    return named_commit(catalog, QUEUES, index, name, length)


@exported_cold
def settings_put_row(catalog: int, index: int, pattern: int, length: int) -> int:
    """Add the settings of a pattern in a free row whose page was filled: its reference."""
    if length < 0 or length > NAME_BYTES_MAX or not row_is_fillable(catalog, SETTINGS, index):
        return INVALID
    return row_commit(catalog, SETTINGS, index, name_hash(pattern, length))


@exported_cold
def exchange_put(
    catalog: int,
    index: int,
    name: int,
    length: int,
    kind: int,
    replicate: int,
    alternate: int,
) -> int:
    """Add an exchange in a free row: its reference.  alternate: a reference to one, or 0."""
    if length < 0 or length > NAME_BYTES_MAX or not row_is_fillable(catalog, EXCHANGES, index):
        return INVALID
    if kind < DIRECT or kind > HEADERS:
        return INVALID
    if alternate != 0 and row_of(catalog, EXCHANGES, alternate) < 0:
        return NOT_FOUND
    entry = entry_at(catalog, EXCHANGES, index)
    store(entry + EXCHANGE_KIND_AT, kind)
    store(entry + EXCHANGE_FLAGS_AT, 0)
    store(entry + EXCHANGE_REPLICATE_AT, replicate)
    store(entry + EXCHANGE_ALTERNATE_AT, alternate)
    return named_commit(catalog, EXCHANGES, index, name, length)
