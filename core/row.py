"""Rows: a table of the catalog is a column of words, and entries that the words vouch for.

An entry is filled while its row is not live; the one store that makes the row live is the commit,
so a death before it leaves the old state.  Removing is one exchange of the word, to not live and
the next generation: references to the row are invalid from then on.

There is one writer at a time: it holds a lock of the floor above.  Readers hold none: they load the
word, read the entry, and load the word again.  If it has changed, what they read means nothing.
Tables and indices are numbers that callers have checked (row_in_range) or that are compared with
row_count, so whatever the segment says, no address is outside of it.
"""

from __future__ import annotations

from shmbroker.core.atomics import (
    copy,
    exchange,
    fence_acquire,
    fetch_add,
    load,
    load_acquire,
    store_release,
)
from shmbroker.core.codes import NOT_FOUND, TABLE_FULL
from shmbroker.core.kernel import exported_cold, kernel
from shmbroker.core.layout import (
    BALANCE_COLUMN_AT,
    BALANCE_ENTRIES_AT,
    BALANCE_ENTRY_BYTES,
    BALANCE_ENTRY_SHIFT,
    BALANCE_ROWS,
    BALANCES,
    BINDING_COLUMN_AT,
    BINDING_ENTRIES_AT,
    BINDING_ROWS,
    CATALOG_GENERATION_AT,
    CATALOG_HIGH_AT,
    ENTRY_BYTES,
    ENTRY_SHIFT,
    EXCHANGE_COLUMN_AT,
    EXCHANGE_ENTRIES_AT,
    EXCHANGE_ROWS,
    EXCHANGES,
    QUEUE_COLUMN_AT,
    QUEUE_ENTRIES_AT,
    QUEUE_ROWS,
    QUEUES,
    REFERENCE_INDEX_BITS,
    REFERENCE_INDEX_MASK,
    ROW_GENERATION_MASK,
    ROW_GENERATION_SHIFT,
    ROW_LIVE,
    ROW_SHIFT,
    SETTINGS,
    SETTINGS_COLUMN_AT,
    SETTINGS_ENTRIES_AT,
    SETTINGS_ENTRY_BYTES,
    SETTINGS_ENTRY_SHIFT,
    SETTINGS_ROWS,
    TABLES,
)


@kernel
def table_rows(table: int) -> int:
    if table == QUEUES:
        return QUEUE_ROWS
    if table == EXCHANGES:
        return EXCHANGE_ROWS
    if table == SETTINGS:
        return SETTINGS_ROWS
    if table == BALANCES:
        return BALANCE_ROWS
    return BINDING_ROWS


@kernel
def row_in_range(table: int, index: int) -> int:
    return int(table >= 0 and table < TABLES and index >= 0 and index < table_rows(table))


@kernel
def row_at(catalog: int, table: int, index: int) -> int:
    column = BINDING_COLUMN_AT
    if table == QUEUES:
        column = QUEUE_COLUMN_AT
    elif table == EXCHANGES:
        column = EXCHANGE_COLUMN_AT
    elif table == SETTINGS:
        column = SETTINGS_COLUMN_AT
    elif table == BALANCES:
        column = BALANCE_COLUMN_AT
    return catalog + column + (index << ROW_SHIFT)


@kernel
def entry_bytes(table: int) -> int:
    if table == BALANCES:
        return BALANCE_ENTRY_BYTES
    return SETTINGS_ENTRY_BYTES if table == SETTINGS else ENTRY_BYTES


@kernel
def entry_at(catalog: int, table: int, index: int) -> int:
    if table == SETTINGS:
        return catalog + SETTINGS_ENTRIES_AT + (index << SETTINGS_ENTRY_SHIFT)
    if table == BALANCES:
        return catalog + BALANCE_ENTRIES_AT + (index << BALANCE_ENTRY_SHIFT)
    entries = BINDING_ENTRIES_AT
    if table == QUEUES:
        entries = QUEUE_ENTRIES_AT
    elif table == EXCHANGES:
        entries = EXCHANGE_ENTRIES_AT
    return catalog + entries + (index << ENTRY_SHIFT)


@kernel
def row_count(catalog: int, table: int) -> int:
    """Rows at this index and above were never used."""
    # SYNC POINT: catalog-high (acquire): pairs with the store of row_commit
    high = load_acquire(catalog + CATALOG_HIGH_AT + 8 * table)
    if high < 0 or high > table_rows(table):
        return table_rows(table)
    return high


@kernel
def row_load(catalog: int, table: int, index: int) -> int:
    # SYNC POINT: catalog-row (acquire): pairs with the store of row_commit
    return load_acquire(row_at(catalog, table, index))


@kernel
def row_unchanged(catalog: int, table: int, index: int, word: int) -> int:
    """What was read of the entry since the word was loaded belongs to it."""
    fence_acquire()
    return int(load(row_at(catalog, table, index)) == word)


@kernel
def row_generation(word: int) -> int:
    return (word >> ROW_GENERATION_SHIFT) & ROW_GENERATION_MASK


@kernel
def reference_of(word: int, index: int) -> int:
    return (row_generation(word) << REFERENCE_INDEX_BITS) | index


@exported_cold
def catalog_changed(catalog: int) -> int:
    """Tell all clients that the routes they keep are stale.

    Each change does so at its end.  Whoever takes the lock from one that died holding it calls
    this first: the dead one may have changed something and not told.
    """
    # SYNC POINT: catalog-change (release): who sees the new generation sees the change
    return fetch_add(catalog + CATALOG_GENERATION_AT, 1) + 1


@exported_cold
def catalog_generation(catalog: int) -> int:
    """Load this before a search for a route; the route may be kept until it moves."""
    # SYNC POINT: catalog-change (acquire): pairs with catalog_changed
    return load_acquire(catalog + CATALOG_GENERATION_AT)


@exported_cold
def row_free(catalog: int, table: int) -> int:
    """The lowest row that is not live, so that searches stay short; or TABLE_FULL."""
    if not row_in_range(table, 0):
        return NOT_FOUND
    for index in range(table_rows(table)):
        if not row_load(catalog, table, index) & ROW_LIVE:
            return index
    return TABLE_FULL


@exported_cold
def row_next(catalog: int, table: int, index: int) -> int:
    """The first live row at this index or above, or NOT_FOUND: for going through all of them."""
    if not row_in_range(table, index):
        return NOT_FOUND
    for each in range(index, row_count(catalog, table)):
        if row_load(catalog, table, each) & ROW_LIVE:
            return each
    return NOT_FOUND


@exported_cold
def row_reference(catalog: int, table: int, index: int) -> int:
    """The reference to a live row, or NOT_FOUND."""
    if not row_in_range(table, index):
        return NOT_FOUND
    word = row_load(catalog, table, index)
    if not word & ROW_LIVE:
        return NOT_FOUND
    return reference_of(word, index)


@exported_cold
def row_of(catalog: int, table: int, reference: int) -> int:
    """The index that a reference means, or NOT_FOUND if that row was removed."""
    index = reference & REFERENCE_INDEX_MASK
    if row_reference(catalog, table, index) != reference:
        return NOT_FOUND
    return index


@exported_cold
def row_copy(catalog: int, table: int, index: int, buffer: int) -> int:
    """Copy a live row's entry, 512 bytes or a page of settings: its reference, or NOT_FOUND."""
    if not row_in_range(table, index):
        return NOT_FOUND
    while True:
        word = row_load(catalog, table, index)
        if not word & ROW_LIVE:
            return NOT_FOUND
        copy(buffer, entry_at(catalog, table, index), entry_bytes(table))
        if row_unchanged(catalog, table, index, word):
            return reference_of(word, index)


@kernel
def row_commit(catalog: int, table: int, index: int, hashed: int) -> int:
    """Make a row live whose entry is filled: its reference."""
    if row_count(catalog, table) <= index:
        # first, so that a death before the row is live does not hide it
        # SYNC POINT: catalog-high (release): pairs with row_count
        store_release(catalog + CATALOG_HIGH_AT + 8 * table, index + 1)
    generation = max(row_generation(row_load(catalog, table, index)), 1)
    word = ROW_LIVE | (generation << ROW_GENERATION_SHIFT) | hashed
    # SYNC POINT: catalog-row (release): who sees the row live sees all of its entry
    store_release(row_at(catalog, table, index), word)
    catalog_changed(catalog)
    return reference_of(word, index)


@kernel
def row_retire(catalog: int, table: int, index: int) -> int:
    """Make a row not live, and references to it invalid; the catalog's generation is left."""
    generation = row_generation(row_load(catalog, table, index)) + 1
    word = (generation & ROW_GENERATION_MASK) << ROW_GENERATION_SHIFT
    # no store: whoever fills the entry anew must not be seen to have done so before this
    exchange(row_at(catalog, table, index), word)
    return index


@exported_cold
def row_remove(catalog: int, table: int, index: int) -> int:
    """Remove a queue, an exchange or a binding: its index, or NOT_FOUND.

    Bindings from and to it are invalid from now on; bindings_remove frees their rows.
    """
    if row_reference(catalog, table, index) < 0:
        return NOT_FOUND
    row_retire(catalog, table, index)
    catalog_changed(catalog)
    return index
