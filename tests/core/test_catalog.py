"""The catalog: rows that are there, that are not, and that were."""

from __future__ import annotations

import pytest

from shmbroker.core import codes, layout
from shmbroker.ipc._native import ffi, lib
from tests.core.vhost import Vhost, index_of

QUEUES, EXCHANGES, BINDINGS = layout.QUEUES, layout.EXCHANGES, layout.BINDINGS


def find(vhost: Vhost, table: int, name: bytes) -> int:
    index: int = lib.sb_row_find(vhost.address, table, name, len(name))
    return index


def row_column(table: int) -> int:
    columns = (layout.QUEUE_COLUMN_AT, layout.EXCHANGE_COLUMN_AT, layout.BINDING_COLUMN_AT)
    return columns[table]


def test_a_new_catalog_is_checked_and_empty(vhost: Vhost) -> None:
    assert lib.sb_catalog_check(vhost.address, layout.CATALOG_BYTES) == codes.OK
    assert find(vhost, QUEUES, b"orders") == codes.NOT_FOUND
    assert lib.sb_row_next(vhost.address, QUEUES, 0) == codes.NOT_FOUND


@pytest.mark.parametrize(
    ("at", "code"),
    [
        (layout.CATALOG_MAGIC_AT, codes.NOT_A_SEGMENT),
        (layout.CATALOG_VERSION_AT, codes.OTHER_VERSION),
        (layout.CATALOG_BYTES_AT, codes.DAMAGED),
        (layout.CATALOG_NAME_LENGTH_AT, codes.DAMAGED),
    ],
)
def test_another_header_is_refused(vhost: Vhost, at: int, code: int) -> None:
    vhost.poke(at, 999)
    assert lib.sb_catalog_check(vhost.address, layout.CATALOG_BYTES) == code


@pytest.mark.parametrize("size", [0, 8, 4096, layout.CATALOG_BYTES - 1])
def test_a_truncated_catalog_is_refused(vhost: Vhost, size: int) -> None:
    assert lib.sb_catalog_check(vhost.address, size) == codes.TRUNCATED


def test_entries_lie_behind_the_columns_and_inside_of_the_segment() -> None:
    assert lib.sb_catalog_entry_at(QUEUES, 0) == lib.sb_catalog_columns_bytes()
    last = lib.sb_catalog_entry_at(BINDINGS, layout.BINDING_ROWS - 1)
    assert last + layout.ENTRY_BYTES == lib.sb_catalog_entry_at(layout.SETTINGS, 0)
    last = lib.sb_catalog_entry_at(layout.SETTINGS, layout.SETTINGS_ROWS - 1)
    assert last + layout.SETTINGS_ENTRY_BYTES == lib.sb_catalog_entry_at(layout.BALANCES, 0)
    last = lib.sb_catalog_entry_at(layout.BALANCES, layout.BALANCE_ROWS - 1)
    assert last + layout.BALANCE_ENTRY_BYTES == layout.CATALOG_TABLES_END
    for table, index in [
        (-1, 0),
        (layout.TABLES, 0),
        (QUEUES, -1),
        (EXCHANGES, layout.EXCHANGE_ROWS),
    ]:
        assert lib.sb_catalog_entry_at(table, index) == codes.INVALID


def test_what_was_put_is_found_by_its_name(vhost: Vhost) -> None:
    names = ["", "a", "orders", "Ordnung/ä", "n" * 255]
    made = [vhost.queue(name) for name in names]
    assert [find(vhost, QUEUES, name.encode()) for name in names] == [0, 1, 2, 3, 4]
    assert [lib.sb_row_of(vhost.address, QUEUES, each) for each in made] == [0, 1, 2, 3, 4]
    assert find(vhost, EXCHANGES, b"orders") == codes.NOT_FOUND
    assert find(vhost, QUEUES, b"order") == codes.NOT_FOUND
    assert find(vhost, QUEUES, b"n" * 256) == codes.NOT_FOUND


def test_a_queue_entry_says_what_was_put(vhost: Vhost) -> None:
    buffer = ffi.new("int64_t[]", layout.ENTRY_BYTES // 8)
    made = lib.sb_queue_put(vhost.address, 5, b"orders", 6, 1024, 3, 99, 11, 22)
    assert lib.sb_row_copy(vhost.address, QUEUES, 5, buffer) == made
    assert list(buffer[0:6]) == [6, 1024, 3, 99, 11, 22]
    assert ffi.buffer(buffer)[layout.ENTRY_NAME_AT :][:7] == b"orders\0"
    assert lib.sb_row_copy(vhost.address, QUEUES, 4, buffer) == codes.NOT_FOUND


def test_settings_written_before_are_kept(vhost: Vhost) -> None:
    at = lib.sb_catalog_entry_at(QUEUES, 0) + layout.QUEUE_SETTINGS_AT
    last = at + layout.QUEUE_SETTINGS_BYTES - 8
    vhost.poke(at, 1)
    vhost.poke(last, 2)
    vhost.queue("n" * 255)
    assert (vhost.word(at), vhost.word(last)) == (1, 2)


def test_the_same_hash_is_not_the_same_name(vhost: Vhost) -> None:
    vhost.queue("one")
    other = vhost.queue("two")
    hashed = lib.sb_name_hash(b"one", 3)
    row = row_column(QUEUES) + 8 * index_of(other)
    vhost.poke(row, vhost.word(row) & ~layout.ROW_HASH_MASK | hashed)
    vhost.remove(QUEUES, lib.sb_row_reference(vhost.address, QUEUES, 0))
    assert find(vhost, QUEUES, b"one") == codes.NOT_FOUND


def test_a_reference_is_never_zero_and_dies_with_its_row(vhost: Vhost) -> None:
    first = vhost.queue("orders")
    assert first > 0
    vhost.remove(QUEUES, first)
    assert find(vhost, QUEUES, b"orders") == codes.NOT_FOUND
    assert lib.sb_row_of(vhost.address, QUEUES, first) == codes.NOT_FOUND
    assert lib.sb_row_remove(vhost.address, QUEUES, 0) == codes.NOT_FOUND
    second = vhost.queue("orders")
    assert index_of(second) == index_of(first)
    assert second != first
    assert lib.sb_row_of(vhost.address, QUEUES, first) == codes.NOT_FOUND


def test_a_generation_that_wraps_is_not_zero(vhost: Vhost) -> None:
    vhost.poke(row_column(QUEUES), layout.ROW_GENERATION_MASK << layout.ROW_GENERATION_SHIFT)
    last = vhost.queue("last")
    vhost.remove(QUEUES, last)
    again = vhost.queue("again")
    assert again == 1 << layout.REFERENCE_INDEX_BITS


@pytest.mark.parametrize("reference", [0, -1, 1 << 62, (1 << 24) | 0xFFFFFF, 1 << 54, 5])
def test_an_impossible_reference_is_not_found(vhost: Vhost, reference: int) -> None:
    vhost.queue("orders")
    assert lib.sb_row_of(vhost.address, QUEUES, reference) == codes.NOT_FOUND
    assert lib.sb_row_of(vhost.address, 7, reference) == codes.NOT_FOUND


def test_the_lowest_row_is_used_again(vhost: Vhost) -> None:
    made = [vhost.queue(str(each)) for each in range(5)]
    vhost.remove(QUEUES, made[1])
    assert lib.sb_row_free(vhost.address, QUEUES) == 1
    assert vhost.word(layout.CATALOG_HIGH_AT) == 5
    vhost.queue("again")
    assert vhost.word(layout.CATALOG_HIGH_AT) == 5


def test_a_full_table(vhost: Vhost) -> None:
    for _ in range(layout.EXCHANGE_ROWS):
        vhost.exchange("x")
    assert lib.sb_row_free(vhost.address, EXCHANGES) == codes.TABLE_FULL
    assert vhost.exchange("x") == codes.INVALID


def test_each_change_moves_the_generation(vhost: Vhost) -> None:
    seen = [lib.sb_catalog_generation(vhost.address)]

    def moved() -> bool:
        seen.append(lib.sb_catalog_generation(vhost.address))
        return bool(seen[-1] > seen[-2])

    queue, exchange = vhost.queue("q"), vhost.exchange("e")
    assert moved()
    vhost.bind(exchange, queue)
    assert moved()
    assert lib.sb_bindings_remove(vhost.address, QUEUES, queue) == 1
    assert moved()
    assert lib.sb_bindings_remove(vhost.address, QUEUES, queue) == 0
    assert not moved()
    vhost.remove(QUEUES, queue)
    assert moved()
    find(vhost, QUEUES, b"q")
    assert not moved()


def test_nothing_exists_before_the_commit(vhost: Vhost) -> None:
    """The state of one that died with the entry filled and high raised."""
    vhost.queue("orders")
    vhost.poke(row_column(QUEUES), 0)
    assert find(vhost, QUEUES, b"orders") == codes.NOT_FOUND
    assert lib.sb_row_free(vhost.address, QUEUES) == 0


def test_put_refuses_what_cannot_be(vhost: Vhost) -> None:
    queue, exchange = vhost.queue("q"), vhost.exchange("e")
    put = lib.sb_queue_put
    assert put(vhost.address, 0, b"q", 1, 1, 0, 0, 0, 0) == codes.INVALID  # it is live
    assert put(vhost.address, layout.QUEUE_ROWS, b"q", 1, 1, 0, 0, 0, 0) == codes.INVALID
    assert put(vhost.address, 1, b"q" * 256, 256, 1, 0, 0, 0, 0) == codes.INVALID
    assert put(vhost.address, 1, b"q", -1, 1, 0, 0, 0, 0) == codes.INVALID
    assert vhost.exchange("f", kind=4) == codes.INVALID
    assert vhost.exchange("f", alternate=queue + 1) == codes.NOT_FOUND
    assert vhost.bind(exchange, queue, kind=2) == codes.INVALID
    assert vhost.bind(exchange, queue, match=5) == codes.INVALID
    assert vhost.bind(exchange, queue + 1) == codes.NOT_FOUND
    assert vhost.bind(exchange + 1, queue) == codes.NOT_FOUND
    assert vhost.bind(exchange, queue, b"k" * 449) == codes.INVALID
    assert vhost.bind(exchange, queue, b"k" * 440, arguments={"a": "long enough"}) == codes.INVALID
    assert vhost.bind(exchange, queue, b"k" * 448) > 0


def binding_find(vhost: Vhost, source: int, queue: int, key: bytes, match: int = 0) -> int:
    index: int = lib.sb_binding_find(
        vhost.address, source, QUEUES, queue, match, key, len(key), b"", 0, 0
    )
    return index


@pytest.mark.parametrize("kind", [layout.DIRECT, layout.TOPIC])
def test_exactly_this_binding_is_found(vhost: Vhost, kind: int) -> None:
    queue, other, exchange = vhost.queue("q"), vhost.queue("r"), vhost.exchange("e", kind)
    vhost.bind(exchange, queue, b"a")
    vhost.bind(exchange, queue, b"b", arguments={"a": 1})
    assert binding_find(vhost, exchange, queue, b"a") == 0
    assert binding_find(vhost, exchange, other, b"a") == codes.NOT_FOUND
    assert binding_find(vhost, exchange, queue, b"a", match=1) == codes.NOT_FOUND
    assert binding_find(vhost, exchange, queue, b"aa") == codes.NOT_FOUND
    assert binding_find(vhost, exchange, queue, b"b") == codes.NOT_FOUND
    assert binding_find(vhost, exchange + 1, queue, b"a") == codes.NOT_FOUND


def test_bindings_of_what_is_removed_are_removed(vhost: Vhost) -> None:
    queue, other = vhost.queue("q"), vhost.queue("r")
    first, second = vhost.exchange("e"), vhost.exchange("f")
    vhost.bind(first, queue)
    vhost.bind(first, other)
    vhost.bind(second, other)
    vhost.bind(first, second, kind=EXCHANGES)
    assert lib.sb_bindings_from(vhost.address, first) == 3
    assert lib.sb_bindings_to(vhost.address, QUEUES, other) == 2
    assert lib.sb_bindings_to(vhost.address, EXCHANGES, second) == 1
    vhost.remove(EXCHANGES, second)
    assert lib.sb_bindings_remove(vhost.address, EXCHANGES, second) == 2
    assert lib.sb_bindings_from(vhost.address, second) == 0
    assert lib.sb_bindings_from(vhost.address, first) == 2
    # references of a queue and of an exchange may be the same number
    assert queue == first
    assert lib.sb_bindings_remove(vhost.address, QUEUES, queue) == 1
    assert lib.sb_row_next(vhost.address, BINDINGS, 0) == 1


@pytest.mark.parametrize("high", [-1, 1 << 40])
def test_a_damaged_high_word_reaches_no_further_than_the_table(vhost: Vhost, high: int) -> None:
    vhost.queue("orders")
    for table in range(layout.TABLES):
        vhost.poke(layout.CATALOG_HIGH_AT + 8 * table, high)
    assert find(vhost, QUEUES, b"orders") == 0
    assert find(vhost, QUEUES, b"none") == codes.NOT_FOUND
    assert lib.sb_bindings_from(vhost.address, 1) == 0
