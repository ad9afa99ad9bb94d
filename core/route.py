"""Routes: which queues a message of an exchange goes to.

Exchanges are searched one after another, each once, so that loops of bindings end: `visited` keeps
a bit for those that were or will be searched, and for those still pending, lowest index first.  A
binding that leads to what was removed takes nothing.  An exchange of which no binding takes the
message hands it to its alternate, as in AMQP: a binding to another exchange counts as taking it,
even if nothing comes of it there.  If an exclusive binding takes it, the others do not.

A message transfer agent has bindings of its own kind: FORWARD_ALL takes each message, beside all
others, FORWARD_ELSE each that no binding of users or of a cluster takes, and FORWARD_ONLY each that
is published here: no other binding gets that.  What an agent has brought from another broker is
none of FORWARD_ONLY (`route_arrived`).  All count as taking it.  An exchange without an agent is
not searched for them.

What bindings of a cluster take goes to other nodes: then the result says the target too, which
tells that node where it goes there.  What comes from another node is searched for in the one
exchange that it names, and only bindings of users to queues count (`route_here`).

A search needs no lock.  Its result belongs to the generation that the catalog had before.
"""

from __future__ import annotations

from shmbroker.core.atomics import fill, load, prefetch, store
from shmbroker.core.binding import (
    binding_arguments_length,
    binding_hash,
    binding_key_length,
    forward_hash,
)
from shmbroker.core.codes import INVALID, NOT_FOUND, TOO_SMALL
from shmbroker.core.headers import headers_hold
from shmbroker.core.kernel import cold, exported_cold, kernel
from shmbroker.core.layout import (
    BINDING_DESTINATION_AT,
    BINDING_EXCLUSIVE_AT,
    BINDING_HERE,
    BINDING_KEY_AT,
    BINDING_KIND_AT,
    BINDING_MATCH_AT,
    BINDING_SOURCE_AT,
    BINDING_TARGET_AT,
    BINDINGS,
    DIRECT,
    EXCHANGE_ALTERNATE_AT,
    EXCHANGE_DIVERTS,
    EXCHANGE_FLAGS_AT,
    EXCHANGE_FORWARDS,
    EXCHANGE_KIND_AT,
    EXCHANGE_ROWS,
    EXCHANGES,
    FANOUT,
    FORWARD_ALL,
    FORWARD_ELSE,
    FORWARD_ONLY,
    MATCH_ANY,
    QUEUES,
    ROUTE_VISITED_BYTES,
    ROUTE_WORDS,
    ROW_LIVE,
    ROW_TAG,
    TOPIC,
    VISITED_ARRIVED,
    VISITED_EXCHANGES,
    VISITED_PENDING,
    VISITED_QUEUES,
    VISITED_TARGET,
)
from shmbroker.core.packed import map_check
from shmbroker.core.row import (
    entry_at,
    reference_of,
    row_count,
    row_load,
    row_of,
    row_reference,
    row_unchanged,
)
from shmbroker.core.span import span_equals
from shmbroker.core.topic import topic_matches

LOOK_AHEAD = 16
"""Rows: the memory of a binding's entry is asked for so long before it is looked at."""


@kernel
def bit_set(bits: int, index: int) -> int:
    """Set a bit of a bitmap: 1 if it was not set before."""
    address = bits + 8 * (index >> 6)
    word = load(address)
    bit = 1 << (index & 63)
    store(address, word | bit)
    return int(word & bit == 0)


@kernel
def bit_pop(bits: int, count: int) -> int:
    """Clear the lowest bit that is set: its index, or -1."""
    for start in range(0, count, 64):
        word = load(bits + (start >> 3))
        if word == 0:
            continue
        index = 0
        while not (word >> index) & 1:
            index += 1
        store(bits + (start >> 3), word & (word - 1))
        return start + index
    return -1


@kernel
def exchange_visit(visited: int, index: int) -> int:
    """Search this exchange too, unless it was or will be."""
    if bit_set(visited + VISITED_EXCHANGES, index):
        bit_set(visited + VISITED_PENDING, index)
    return index


@kernel
def binding_takes(
    entry: int, kind: int, key: int, key_length: int, properties: int, properties_length: int
) -> int:
    """Whether a binding of an exchange of this kind takes the message."""
    if kind == FANOUT:
        return 1
    wanted = entry + BINDING_KEY_AT
    length = binding_key_length(entry)
    if kind == TOPIC:
        return topic_matches(wanted, length, key, key_length)
    if kind == DIRECT:
        return int(length == key_length and span_equals(wanted, key, length) != 0)
    if properties_length < 0:  # malformed
        return 0
    return headers_hold(
        wanted + length,
        binding_arguments_length(entry, length),
        properties,
        properties_length,
        load(entry + BINDING_MATCH_AT),
    )


@kernel
def binding_is_asked(entry: int, which: int) -> int:
    """`which`: 0, any but those of agents; 1, exclusive ones; FORWARD_*: an agent's."""
    match = load(entry + BINDING_MATCH_AT)
    if which > MATCH_ANY:
        return int(match == which)
    return int(match <= MATCH_ANY and (not which or load(entry + BINDING_EXCLUSIVE_AT) != 0))


@kernel
def binding_goal(
    catalog: int,
    index: int,
    tag: int,
    source: int,
    kind: int,
    which: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
) -> int:
    """Where a binding takes the message, as reference << 1 | kind of it; -1 if it does not.  Its
    target is at VISITED_TARGET."""
    entry = entry_at(catalog, BINDINGS, index)
    while True:
        word = row_load(catalog, BINDINGS, index)
        if word & ROW_TAG != tag:
            return -1
        goal = -1
        if (
            load(entry + BINDING_SOURCE_AT) == source
            and binding_is_asked(entry, which) != 0
            and binding_takes(entry, kind, key, key_length, properties, properties_length)
        ):
            goal = (load(entry + BINDING_DESTINATION_AT) << 1) | (load(entry + BINDING_KIND_AT) & 1)
            store(visited + VISITED_TARGET, load(entry + BINDING_TARGET_AT))
        if row_unchanged(catalog, BINDINGS, index, word):
            return goal


@kernel
def entry_ahead(catalog: int, index: int, count: int, tag: int) -> int:
    """Ask for the memory of an entry that is soon looked at."""
    ahead = min(index + LOOK_AHEAD, count - 1)
    if row_load(catalog, BINDINGS, ahead) & ROW_TAG == tag:
        prefetch(entry_at(catalog, BINDINGS, ahead))
    return ahead


@kernel
def has_target(found: int, count: int, reference: int, target: int) -> int:
    """Whether the result has the queue with this target."""
    for index in range(count):
        at = found + 8 * ROUTE_WORDS * index
        if load(at) == reference and load(at + 8) == target:
            return 1
    return 0


@kernel
def queue_add(
    catalog: int, reference: int, visited: int, found: int, capacity: int, count: int
) -> int:
    """Add a queue to the result, once with each target: how many there are now, or a code."""
    index = row_of(catalog, QUEUES, reference)
    if index < 0:
        return NOT_FOUND
    target = load(visited + VISITED_TARGET)
    if target == BINDING_HERE:
        target = 0
    if not bit_set(visited + VISITED_QUEUES, index) and (
        not target or has_target(found, count, reference, target) != 0
    ):
        return count
    if count >= capacity:
        return TOO_SMALL
    store(found + 8 * ROUTE_WORDS * count, reference)
    store(found + 8 * ROUTE_WORDS * count + 8, target)
    return count + 1


@cold
def route_bindings(
    catalog: int,
    source: int,
    kind: int,
    which: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
    found: int,
    capacity: int,
    count: int,
) -> int:
    """Follow the bindings of one exchange that are asked for: how many queues there are now; a code
    if none took."""
    if which > MATCH_ANY:
        tag = ROW_LIVE | forward_hash(source, which)
    else:
        tag = ROW_LIVE | binding_hash(source, kind, key, key_length)
    rows = row_count(catalog, BINDINGS)
    taken = 0
    for index in range(rows):
        entry_ahead(catalog, index, rows, tag)
        goal = binding_goal(
            catalog,
            index,
            tag,
            source,
            kind,
            which,
            key,
            key_length,
            properties,
            properties_length,
            visited,
        )
        if goal < 0:
            continue
        if goal & 1:
            target = row_of(catalog, EXCHANGES, goal >> 1)
            if target >= 0:
                exchange_visit(visited, target)
                taken = 1
        else:
            total = queue_add(catalog, goal >> 1, visited, found, capacity, count)
            if total == TOO_SMALL:
                return TOO_SMALL
            if total >= 0:
                count = total
                taken = 1
    if not taken:
        return NOT_FOUND
    return count


@cold
def route_forwards(
    catalog: int, source: int, visited: int, found: int, capacity: int, count: int, total: int
) -> int:
    """Follow the bindings of agents; `total`: what the others gave, as route_bindings says it."""
    is_else = total == NOT_FOUND
    if not is_else:
        count = total
    for which in range(FORWARD_ALL, FORWARD_ELSE + 1):
        if count >= 0 and (which == FORWARD_ALL or is_else):
            more = route_bindings(
                catalog, source, FANOUT, which, 0, 0, 0, 0, visited, found, capacity, count
            )
            if more != NOT_FOUND:
                count = more
                total = more
    return total


@kernel
def route_exchange(
    catalog: int,
    exchange: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
    found: int,
    capacity: int,
    count: int,
) -> int:
    """Search one exchange: how many queues there are now, or TOO_SMALL."""
    entry = entry_at(catalog, EXCHANGES, exchange)
    word = row_load(catalog, EXCHANGES, exchange)
    kind = load(entry + EXCHANGE_KIND_AT)
    alternate = load(entry + EXCHANGE_ALTERNATE_AT)
    flags = load(entry + EXCHANGE_FLAGS_AT)
    if not word & ROW_LIVE or not row_unchanged(catalog, EXCHANGES, exchange, word):
        return count  # removed: its bindings lead nowhere
    source = reference_of(word, exchange)
    if flags & EXCHANGE_FORWARDS and load(visited + VISITED_ARRIVED) == 0:
        total = route_bindings(
            catalog, source, FANOUT, FORWARD_ONLY, 0, 0, 0, 0, visited, found, capacity, count
        )
        if total != NOT_FOUND:
            return total
    total = NOT_FOUND
    for exclusive in range(flags & EXCHANGE_DIVERTS, -1, -1):
        total = route_bindings(
            catalog,
            source,
            kind,
            exclusive,
            key,
            key_length,
            properties,
            properties_length,
            visited,
            found,
            capacity,
            count,
        )
        if total != NOT_FOUND:
            break
    if flags & EXCHANGE_FORWARDS:
        total = route_forwards(catalog, source, visited, found, capacity, count, total)
    if total != NOT_FOUND:
        return total
    target = row_of(catalog, EXCHANGES, alternate)
    if target >= 0:
        exchange_visit(visited, target)
    return count


@cold
def route_from(
    catalog: int,
    exchange: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
    found: int,
    capacity: int,
    has_arrived: int,
) -> int:
    if key_length < 0 or properties_length < 0:
        return INVALID
    if row_reference(catalog, EXCHANGES, exchange) < 0:
        return NOT_FOUND
    if not map_check(properties, properties + properties_length):
        properties_length = -1
    fill(visited, 0, ROUTE_VISITED_BYTES)
    store(visited + VISITED_ARRIVED, has_arrived)
    exchange_visit(visited, exchange)
    count = 0
    while count >= 0:
        pending = bit_pop(visited + VISITED_PENDING, EXCHANGE_ROWS)
        if pending < 0:
            break
        count = route_exchange(
            catalog,
            pending,
            key,
            key_length,
            properties,
            properties_length,
            visited,
            found,
            capacity,
            count,
        )
    return count


@exported_cold
def route(
    catalog: int,
    exchange: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
    found: int,
    capacity: int,
) -> int:
    """The queues that a message of an exchange (by index) goes to: how many, or a code.

    `found` gets their references and targets, each once, in a stable order; TOO_SMALL if it has no
    room for all of them.  `visited` is SB_ROUTE_VISITED_BYTES of the caller's to work with.
    """
    return route_from(
        catalog,
        exchange,
        key,
        key_length,
        properties,
        properties_length,
        visited,
        found,
        capacity,
        0,
    )


@exported_cold
def route_arrived(
    catalog: int,
    exchange: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
    found: int,
    capacity: int,
) -> int:
    """The same of a message that an agent of another broker has brought."""
    return route_from(
        catalog,
        exchange,
        key,
        key_length,
        properties,
        properties_length,
        visited,
        found,
        capacity,
        1,
    )


@exported_cold
def route_forwarded(catalog: int, exchange: int, visited: int, found: int, capacity: int) -> int:
    """The queues of agents that a message of this exchange goes to if nobody here takes it now."""
    source = row_reference(catalog, EXCHANGES, exchange)
    if source < 0:
        return NOT_FOUND
    fill(visited, 0, ROUTE_VISITED_BYTES)
    flags = load(entry_at(catalog, EXCHANGES, exchange) + EXCHANGE_FLAGS_AT)
    if not flags & EXCHANGE_FORWARDS:
        return 0
    count = route_forwards(catalog, source, visited, found, capacity, 0, NOT_FOUND)
    return 0 if count == NOT_FOUND else count


@exported_cold
def route_here(
    catalog: int,
    exchange: int,
    key: int,
    key_length: int,
    properties: int,
    properties_length: int,
    visited: int,
    found: int,
    capacity: int,
) -> int:
    """The queues here that a message of this exchange goes to that was routed at another node."""
    if key_length < 0 or properties_length < 0:
        return INVALID
    source = row_reference(catalog, EXCHANGES, exchange)
    if source < 0:
        return NOT_FOUND
    if not map_check(properties, properties + properties_length):
        properties_length = -1
    kind = load(entry_at(catalog, EXCHANGES, exchange) + EXCHANGE_KIND_AT)
    fill(visited, 0, ROUTE_VISITED_BYTES)
    tag = ROW_LIVE | binding_hash(source, kind, key, key_length)
    count = 0
    for index in range(row_count(catalog, BINDINGS)):
        goal = binding_goal(
            catalog,
            index,
            tag,
            source,
            kind,
            0,
            key,
            key_length,
            properties,
            properties_length,
            visited,
        )
        if goal < 0 or goal & 1 or load(visited + VISITED_TARGET) != 0:
            continue
        total = queue_add(catalog, goal >> 1, visited, found, capacity, count)
        if total == TOO_SMALL:
            return TOO_SMALL
        if total >= 0:
            count = total
    return count
