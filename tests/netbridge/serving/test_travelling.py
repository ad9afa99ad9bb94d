"""What is acknowledged in open transactions is put aside when a broker leaves, and is in hand again
for who asks for it at its successor.  Both are of one vhost here: what is put aside moves like all
that is in queues (tests/netbridge/clustered/test_open_transactions.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import shmbroker
from shmbroker import InvalidArgument, TransactionRolledBack
from shmbroker.ipc.broker.journaler import Journaler
from shmbroker.ipc.instance.leaving import HELD
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.remote.body import asked, raised
from shmbroker.netbridge.remote.outcome import Outcome
from shmbroker.netbridge.remote.session import SessionLimits
from shmbroker.netbridge.serving import travelling
from shmbroker.netbridge.serving.service import Service
from shmbroker.netbridge.wire.words import Verb
from tests.support.program import Program
from tests.support.serving import Site
from tests.support.until import until

PATIENCE = 60.0


class Leaver:
    def __init__(self, at: Site, opened: ExitStack) -> None:
        self.at, self._opened, self._serves = at, opened, ExitStack()
        self.service: Service
        self.serve()

    def serve(self) -> None:
        self.service = self._serves.enter_context(self.at.served())._service

    def program(self) -> Any:
        url = f"tcp://127.0.0.1:{self.at.port}"
        return self._opened.enter_context(
            shmbroker.connect(url, user="site", password="correct horse battery")
        )

    def leaves(self, *, tells: bool = True, ttl: float = PATIENCE) -> None:
        """And another one, which knows what it was told, is in its place.  `ttl`: so long a program
        may take to come there."""
        rows = self.service.hands_over()
        self.at.limits = SessionLimits(ttl=ttl)
        self._serves.close()
        for row in rows if tells else ():
            travelling.remember(self.at.broker, row)
        self.serve()

    def dies(self) -> None:
        """Another one takes over, which knows only what is in queues."""
        self._serves.close()
        self.serve()

    def held(self) -> list[str]:
        return [each.name for each in self.at.broker.queues() if each.name.startswith(HELD)]


@pytest.fixture
def leaver(vhost: str, tmp_path: Path) -> Iterator[Leaver]:
    with ExitStack() as opened:
        broker = opened.enter_context(shmbroker.connect(f"shm://{vhost}", create=True, name="test"))
        (tmp_path / "journal").mkdir()
        journaler = opened.enter_context(Journaler(tmp_path / "journal", node=b"n" * 16))
        journaler.start(broker, 1)
        times = LinkTimes(heartbeat_interval=PATIENCE)
        made = Leaver(Site(broker, tmp_path, SessionLimits(ttl=PATIENCE), times), opened)
        opened.callback(made._serves.close)
        opened.enter_context(made.at.opened)
        yield made


def bodies(queue: Any) -> list[bytes]:
    return [bytes(each.body) for each in queue.browse()]


def works(leaver: Leaver, name: str = "orders") -> tuple[Any, Any]:
    """A program with a transaction that acknowledges the first message, and publishes another."""
    program = leaver.program()
    transaction = program.transaction()
    transaction.ack(program.queue(name).get(timeout=PATIENCE))
    transaction.publish(name, b"4")
    return program, transaction


def test_who_asks_has_it_in_hand_again(leaver: Leaver) -> None:
    orders = leaver.at.broker.declare_queue("orders", slots=64)
    for body in (b"1", b"2", b"3"):
        orders.publish(body)
    program, transaction = works(leaver)
    leaver.leaves()
    assert bodies(orders) == [b"2", b"3"]
    transaction.ack(program.queue("orders").get(timeout=PATIENCE))
    leaver.leaves()
    transaction.commit()
    assert bodies(orders) == [b"3", b"4"]
    until(lambda: not leaver.held())


def test_what_travels_on_is_not_taken_for_what_nobody_has(
    leaver: Leaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The successor leaves as well: it looks no more for what its program has given back."""
    monkeypatch.setattr(travelling, "LOOK_SECONDS_MAX", 0.05)
    orders = leaver.at.broker.declare_queue("orders", slots=64)
    for body in (b"1", b"2"):
        orders.publish(body)
    program, transaction = works(leaver)
    leaver.leaves()
    transaction.ack(program.queue("orders").get(timeout=PATIENCE))
    hands_over = leaver.service.hands_over

    def slowly() -> list[dict[str, Any]]:
        rows = hands_over()
        time.sleep(0.3)  # all moves meanwhile
        return rows

    monkeypatch.setattr(leaver.service, "hands_over", slowly)
    leaver.leaves()
    transaction.commit()
    assert bodies(orders) == [b"4"]


def asks(leaver: Leaver, program: Program, deliveries: list[int], number: int = 1) -> Outcome:
    """For a transaction of it that has travelled, with what that has acknowledged."""
    session = program.client.session
    held = travelling.opened(leaver.at.broker, travelling.name_of(session, number, "orders"))
    held.publish_many([b"held"] * len(deliveries), timeout=PATIENCE)
    row = {travelling.OF: session, "number": number, "queues": {"orders": deliveries}}
    travelling.remember(leaver.at.broker, row)
    body = asked(open=[(number, deliveries)])
    return program.call(Verb.TRANSACTIONS, repeated=True, body=body)


def test_who_asks_for_transactions_when_it_has_later_ones_in_hand_is_refused(
    leaver: Leaver,
) -> None:
    """Two deliveries would have one number, and nobody could settle them."""
    leaver.at.broker.declare_queue("orders", slots=64).publish_many([b"1", b"2"])
    program = leaver.at.program()
    first, taken = program.get("orders", 2, wait=PATIENCE)
    assert (first, taken) == (0, [b"1", b"2"])
    outcome = asks(leaver, program, [0])
    assert "before anything is delivered" in str(raised(outcome.code, outcome.body))
    assert program.settle(Verb.ACK, 0, 2).code == 0


def test_who_has_asked_and_asks_again_for_the_same_is_refused(leaver: Leaver) -> None:
    leaver.at.broker.declare_queue("orders", slots=64)
    program = leaver.at.program()
    assert asks(leaver, program, [3, 4]).code == 0
    assert asks(leaver, program, [0], 2).code < 0
    assert asks(leaver, leaver.at.program(), [5, 5]).code < 0
    taken = [leaver.at.broker.queue(each).statistics().taken for each in sorted(leaver.held())]
    assert sorted(taken) == [0, 0, 2]


def test_what_is_rolled_back_is_in_its_queue_as_it_was(leaver: Leaver) -> None:
    orders = leaver.at.broker.declare_queue("orders", slots=64)
    orders.publish(b"1", key="k", properties={"kind": "tea"}, priority=3, ttl=3600.0)
    _, transaction = works(leaver)
    leaver.leaves()
    transaction.rollback()
    with orders.get(timeout=PATIENCE) as back:
        assert (bytes(back.body), back.key, back.properties) == (b"1", "k", {"kind": "tea"})
        assert (back.priority, back.redelivered) == (3, True)
        assert back.expires_at is not None
    until(lambda: not leaver.held())


def test_what_has_ended_with_the_successor_is_in_its_queue_when_its_program_comes(
    leaver: Leaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever takes over from the successor has it put aside still, and knows no program."""
    monkeypatch.setattr(travelling, "LOOK_SECONDS_MAX", 0.05)
    orders = leaver.at.broker.declare_queue("orders", slots=64)
    for body in (b"1", b"2"):
        orders.publish(body)
    program, transaction = works(leaver)
    leaver.leaves(ttl=10 * PATIENCE)
    with program.queue("orders").get(timeout=PATIENCE) as other:  # so it has come
        assert bytes(other.body) == b"2"
    leaver.dies()
    with pytest.raises(TransactionRolledBack):
        transaction.commit()
    until(lambda: not leaver.held())
    assert bodies(orders) == [b"1"]


def test_what_nobody_knows_to_be_whole_is_rolled_back_and_in_its_queue_later(
    leaver: Leaver,
) -> None:
    orders = leaver.at.broker.declare_queue("orders", slots=64)
    orders.publish(b"1")
    _, transaction = works(leaver)
    leaver.leaves(tells=False, ttl=0.5)
    with pytest.raises(TransactionRolledBack):
        transaction.commit()
    with orders.get(timeout=PATIENCE) as back:
        assert bytes(back.body) == b"1"


def test_one_of_a_queue_with_a_long_name_does_not_travel(leaver: Leaver) -> None:
    name = "q" * 250
    long = leaver.at.broker.declare_queue(name, slots=64)
    long.publish(b"1")
    _, transaction = works(leaver, name)
    leaver.leaves()
    assert not leaver.held()
    assert bodies(long) == [b"1"]
    with pytest.raises(TransactionRolledBack):
        transaction.commit()


def test_nobody_else_has_the_queues_in_which_it_is(leaver: Leaver) -> None:
    broker = leaver.at.broker
    broker.declare_queue("orders", slots=64).publish(b"1")
    _, transaction = works(leaver)
    leaver.leaves()
    [name] = leaver.held()
    held = broker.queue(name)
    for refused in (held.pause, held.resume, held.purge, held.delete):
        with pytest.raises(InvalidArgument, match="in an open transaction of a program on another"):
            refused()
    other = leaver.program()
    for named in (
        lambda: other.queue(name),
        lambda: other.declare_queue(name),
        lambda: other.delete_queue(name, force=True),
        lambda: other.bind("news", name, "a"),
        lambda: other.declare_queue(HELD.removesuffix(".")),
    ):
        with pytest.raises(InvalidArgument, match="is the broker's own"):
            named()
    assert {each.name for each in other.queues()} == {"orders"}
    transaction.commit()
    until(lambda: not leaver.held())
