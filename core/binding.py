"""Bindings: which messages of an exchange go to a queue, or to another exchange.

The hash in a binding's row is of its source, and for a direct exchange of its key too, so that a
search of the column finds just those few that matter.  A binding of a message transfer agent has no
key, and a hash that no search for a key meets.  A binding is valid as long as both its
references are: whoever dies between removing a queue and its bindings leaves bindings to nowhere.
"""

from __future__ import annotations

from shmbroker.core.atomics import copy, load, store
from shmbroker.core.catalog import row_is_fillable
from shmbroker.core.codes import INVALID, NOT_FOUND
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    BINDING_ARGUMENTS_LENGTH_AT,
    BINDING_DESTINATION_AT,
    BINDING_KEY_AT,
    BINDING_KEY_LENGTH_AT,
    BINDING_KIND_AT,
    BINDING_MATCH_AT,
    BINDING_PAYLOAD_BYTES,
    BINDING_SOURCE_AT,
    BINDING_TARGET_AT,
    BINDINGS,
    DIRECT,
    EXCHANGE_KIND_AT,
    EXCHANGES,
    FORWARD_ONLY,
    MATCH_ALL,
    MATCH_ANY,
    QUEUES,
    REFERENCE_INDEX_MASK,
    ROW_LIVE,
    ROW_TAG,
)
from shmbroker.core.row import (
    catalog_changed,
    entry_at,
    row_commit,
    row_count,
    row_load,
    row_of,
    row_retire,
    row_unchanged,
)
from shmbroker.core.span import HASH_START, span_equals, span_hash, word_hash


@kernel
def binding_hash(source: int, kind: int, key: int, key_length: int) -> int:
    """What the row of a binding of such an exchange says."""
    value = word_hash(HASH_START, source)
    if kind == DIRECT:
        value = span_hash(value, key, key_length)
    return value


@kernel
def forward_hash(source: int, match: int) -> int:
    """The same of a binding by which an agent forwards."""
    return word_hash(word_hash(HASH_START, source), match)


@kernel
def binding_key_length(entry: int) -> int:
    """The length of the key, whatever the segment says no longer than the entry."""
    return max(0, min(load(entry + BINDING_KEY_LENGTH_AT), BINDING_PAYLOAD_BYTES))


@kernel
def binding_arguments_length(entry: int, key_length: int) -> int:
    length = load(entry + BINDING_ARGUMENTS_LENGTH_AT)
    return max(0, min(length, BINDING_PAYLOAD_BYTES - key_length))


@kernel
def source_hash(catalog: int, source: int, match: int, key: int, key_length: int) -> int:
    """The hash of a binding, for the kind that the source has; NOT_FOUND if it was removed."""
    if row_of(catalog, EXCHANGES, source) < 0:
        return NOT_FOUND
    entry = entry_at(catalog, EXCHANGES, source & REFERENCE_INDEX_MASK)
    kind = load(entry + EXCHANGE_KIND_AT)
    # the kind belongs to this source if it is still there
    if row_of(catalog, EXCHANGES, source) < 0:
        return NOT_FOUND
    if match > MATCH_ANY:
        return forward_hash(source, match)
    return binding_hash(source, kind, key, key_length)


@kernel
def payload_fits(key_length: int, arguments_length: int) -> int:
    if key_length < 0 or key_length > BINDING_PAYLOAD_BYTES:
        return 0
    return int(arguments_length >= 0 and arguments_length <= BINDING_PAYLOAD_BYTES - key_length)


@exported_cold
def binding_put(
    catalog: int,
    index: int,
    source: int,
    kind: int,
    destination: int,
    match: int,
    key: int,
    key_length: int,
    arguments: int,
    arguments_length: int,
    target: int,
) -> int:
    """Bind a queue (kind 0) or exchange (1) to an exchange, by references: the binding's own.

    match: all arguments (0) or any (1), or an agent's (FORWARD_*).  Key and arguments together
    have at most 448 bytes.
    `target`: BINDING_TARGET_AT.
    """
    if kind < QUEUES or kind > EXCHANGES or match < MATCH_ALL or match > FORWARD_ONLY:
        return INVALID
    if not payload_fits(key_length, arguments_length):
        return INVALID
    if not row_is_fillable(catalog, BINDINGS, index):
        return INVALID
    hashed = source_hash(catalog, source, match, key, key_length)
    if hashed < 0 or row_of(catalog, kind, destination) < 0:
        return NOT_FOUND
    entry = entry_at(catalog, BINDINGS, index)
    store(entry + BINDING_SOURCE_AT, source)
    store(entry + BINDING_DESTINATION_AT, destination)
    store(entry + BINDING_KIND_AT, kind)
    store(entry + BINDING_MATCH_AT, match)
    store(entry + BINDING_KEY_LENGTH_AT, key_length)
    store(entry + BINDING_ARGUMENTS_LENGTH_AT, arguments_length)
    store(entry + BINDING_TARGET_AT, target)
    copy(entry + BINDING_KEY_AT, key, key_length)
    copy(entry + BINDING_KEY_AT + key_length, arguments, arguments_length)
    return row_commit(catalog, BINDINGS, index, hashed)


@kernel
def binding_leads(entry: int, source: int, kind: int, destination: int, target: int) -> int:
    if load(entry + BINDING_TARGET_AT) != target:
        return 0
    if load(entry + BINDING_SOURCE_AT) != source or load(entry + BINDING_KIND_AT) != kind:
        return 0
    return int(load(entry + BINDING_DESTINATION_AT) == destination)


@cold
def binding_has(
    entry: int, match: int, key: int, key_length: int, arguments: int, arguments_length: int
) -> int:
    if load(entry + BINDING_MATCH_AT) != match:
        return 0
    if load(entry + BINDING_KEY_LENGTH_AT) != key_length:
        return 0
    if load(entry + BINDING_ARGUMENTS_LENGTH_AT) != arguments_length:
        return 0
    if not span_equals(entry + BINDING_KEY_AT, key, key_length):
        return 0
    return span_equals(entry + BINDING_KEY_AT + key_length, arguments, arguments_length)


@exported_cold
def binding_find(
    catalog: int,
    source: int,
    kind: int,
    destination: int,
    match: int,
    key: int,
    key_length: int,
    arguments: int,
    arguments_length: int,
    target: int,
) -> int:
    """The row of exactly this binding, or NOT_FOUND."""
    if not payload_fits(key_length, arguments_length):
        return NOT_FOUND
    hashed = source_hash(catalog, source, match, key, key_length)
    if hashed < 0:
        return NOT_FOUND
    for index in range(row_count(catalog, BINDINGS)):
        word = row_load(catalog, BINDINGS, index)
        while word & ROW_TAG == ROW_LIVE | hashed:
            entry = entry_at(catalog, BINDINGS, index)
            same = binding_leads(entry, source, kind, destination, target) and binding_has(
                entry, match, key, key_length, arguments, arguments_length
            )
            if row_unchanged(catalog, BINDINGS, index, word):
                if same:
                    return index
                break
            word = row_load(catalog, BINDINGS, index)
    return NOT_FOUND


@kernel
def binding_is_from(catalog: int, index: int, reference: int) -> int:
    entry = entry_at(catalog, BINDINGS, index)
    word = row_load(catalog, BINDINGS, index)
    source = load(entry + BINDING_SOURCE_AT)
    return int(
        word & ROW_LIVE != 0
        and source == reference
        and row_unchanged(catalog, BINDINGS, index, word) != 0
    )


@kernel
def binding_is_own(catalog: int, index: int) -> int:
    """Whether it is the cluster's; the row is live."""
    return int(load(entry_at(catalog, BINDINGS, index) + BINDING_TARGET_AT) != 0)


@kernel
def binding_is_to(catalog: int, index: int, kind: int, reference: int) -> int:
    entry = entry_at(catalog, BINDINGS, index)
    word = row_load(catalog, BINDINGS, index)
    same = load(entry + BINDING_KIND_AT) == kind
    destination = load(entry + BINDING_DESTINATION_AT)
    return int(
        word & ROW_LIVE != 0
        and same
        and destination == reference
        and row_unchanged(catalog, BINDINGS, index, word) != 0
    )


@exported_cold
def bindings_from(catalog: int, reference: int) -> int:
    """How many bindings of users an exchange has as their source: it is in use if there are any."""
    count = 0
    for index in range(row_count(catalog, BINDINGS)):
        if not binding_is_own(catalog, index):
            count += binding_is_from(catalog, index, reference)
    return count


@exported_cold
def bindings_to(catalog: int, kind: int, reference: int) -> int:
    """How many bindings of users lead to a queue (kind 0) or exchange (1)."""
    count = 0
    for index in range(row_count(catalog, BINDINGS)):
        if not binding_is_own(catalog, index):
            count += binding_is_to(catalog, index, kind, reference)
    return count


@exported_cold
def bindings_remove(catalog: int, kind: int, reference: int) -> int:
    """Remove all bindings to a queue (kind 0), or from and to an exchange (1): how many."""
    count = 0
    for index in range(row_count(catalog, BINDINGS)):
        ours = binding_is_to(catalog, index, kind, reference)
        if kind == EXCHANGES:
            ours |= binding_is_from(catalog, index, reference)
        if ours:
            row_retire(catalog, BINDINGS, index)
            count += 1
    if count:
        catalog_changed(catalog)
    return count
