"""Boards: who has seen a version reads what changed since, a page at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

from shmbroker.core.layout import SELECTOR_BYTES_MAX
from shmbroker.netbridge.cluster.advert import SELECTORS_MAX, Advert, Binding, Queue
from shmbroker.netbridge.cluster.adverts import NOBODY, Copy
from shmbroker.netbridge.cluster.board import GONE_MAX, PAGE_BYTES_MAX, ROWS_MAX, Board
from shmbroker.netbridge.cluster.codec import encode
from shmbroker.netbridge.cluster.said import Ask, Told

LIFE = b"L" * 16
ORDERS, BILLS = Queue("orders", True, False), Queue("bills", True, False)
BOUND = Binding("news", "topic", "orders", False, "a.#", b"\x80", False, False)


def read(board: Board, asked: Ask) -> Iterator[Told]:
    """All pages, until nothing is left."""
    while (page := board.page(asked)) is not None:
        yield page
        asked = Ask(page.incarnation, page.until)


def test_who_knows_nothing_reads_all() -> None:
    board = Board(LIFE)
    board.shows([ORDERS, BOUND])
    [page] = read(board, Ask(NOBODY, 0))
    assert page == Told(LIFE, True, 2, 2, (ORDERS,), (BOUND,), (), ())


def test_an_empty_board_is_told_once() -> None:
    [page] = read(Board(LIFE), Ask(NOBODY, 0))
    assert page.is_anew
    assert page.until == page.latest == 0


def test_only_what_changed_is_read() -> None:
    board = Board(LIFE)
    board.shows([ORDERS, BILLS, BOUND])
    seen = Ask(LIFE, board.version)
    assert not board.shows([BILLS, BOUND, ORDERS])
    assert board.page(seen) is None
    consumed = Queue("orders", True, True)
    assert board.shows([consumed, BILLS])
    [page] = read(board, seen)
    assert (page.is_anew, page.queues, page.gone_bindings) == (False, (consumed,), (BOUND,))


def test_a_row_that_changed_twice_is_read_once() -> None:
    board = Board(LIFE)
    board.shows([ORDERS])
    seen = Ask(LIFE, board.version)
    for each in ([], [BILLS], [ORDERS, BILLS]):
        board.shows(each)
    [page] = read(board, seen)
    assert (page.queues, page.gone_queues) == ((BILLS, ORDERS), ())


def test_versions_of_another_process_are_not_ours() -> None:
    board = Board(LIFE)
    board.shows([ORDERS])
    for asked in (Ask(b"other life......", 1), Ask(LIFE, 99)):
        [page] = read(board, asked)
        assert page.is_anew
        assert page.queues == (ORDERS,)


def test_a_page_is_bounded_by_rows_and_by_bytes() -> None:
    board = Board(LIFE)
    short = [Queue(f"q{number}", True, False) for number in range(3 * ROWS_MAX)]
    board.shows(short)
    pages = list(read(board, Ask(NOBODY, 0)))
    assert [len(each.queues) for each in pages] == [ROWS_MAX] * 3
    assert [each.is_anew for each in pages] == [True, False, False]
    long = [
        Binding("e" * 255, "topic", f"{number:0255}", False, "k" * 200, b"a" * 250, False, False)
        for number in range(100)
    ]
    board.shows(long)
    pages = list(read(board, Ask(NOBODY, 0)))
    assert len(pages) > 3
    assert sum(len(each.bindings) for each in pages) == 100
    texts = tuple("x" * (SELECTOR_BYTES_MAX - 1) + str(each) for each in range(SELECTORS_MAX))
    board.shows(Queue(f"q{number}", True, True, selectors=texts) for number in range(50))
    pages += read(board, Ask(NOBODY, 0))
    assert sum(len(each.queues) for each in pages) == 50
    assert all(len(encode(each)) <= PAGE_BYTES_MAX for each in pages)


def test_few_notes_of_what_is_gone_are_kept() -> None:
    board = Board(LIFE)
    board.shows([ORDERS])
    first = Ask(LIFE, board.version)
    for number in range(GONE_MAX + 5):
        board.shows([ORDERS, Queue(f"temporary {number}", False, True)])
    board.shows([ORDERS])
    pages = list(read(board, first))
    assert pages[0].is_anew
    assert sum(len(each.gone_queues) for each in pages) == 0
    assert pages[0].queues == (ORDERS,)
    # who has seen a late one is told of the others
    late = Ask(LIFE, board.version - 10)
    assert [each.is_anew for each in read(board, late)] == [False]
    assert len(board._rows) <= GONE_MAX + 1
    assert len(board._log) <= 3 * GONE_MAX


def test_who_reads_all_gets_beyond_rows_that_are_older_than_all_notes() -> None:
    board = Board(LIFE)
    old = [Queue(f"q{number}", True, False) for number in range(2 * ROWS_MAX)]
    board.shows(old)
    board.shows([*old, *(Queue(f"temporary {n}", False, True) for n in range(GONE_MAX + 5))])
    board.shows(old)
    pages = list(islice(read(board, Ask(NOBODY, 0)), 4))
    assert [each.is_anew for each in pages] == [True, False]
    assert [queue for each in pages for queue in each.queues] == old
    assert board.page(Ask(LIFE, pages[-1].until)) is None


def test_readers_at_any_version_end_with_the_same() -> None:
    random = Random(7)
    board = Board(LIFE)
    names = [f"q{number}" for number in range(2 * ROWS_MAX)]
    readers = [(NOBODY, 0, Copy()) for _ in range(5)]
    for _ in range(60):
        shown: set[Advert] = {
            Queue(name, True, random.random() < 0.5)
            for name in random.sample(names, random.randrange(len(names)))
        }
        if random.random() < 0.5:
            shown.add(BOUND)
        board.shows(shown)
        number = random.randrange(len(readers))
        life, version, copy = readers[number]
        for page in read(board, Ask(life, version)):
            copy = Copy() if page.is_anew else copy
            copy.takes(page)
            life, version = page.incarnation, page.until
        readers[number] = (life, version, copy)
        assert {*copy.queues.values(), *copy.bindings} == shown == set(board.adverts)
