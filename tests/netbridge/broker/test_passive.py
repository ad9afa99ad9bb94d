"""A live and its backup share a store; both listen.  Who comes to the backup is told who is live,
and goes on there when it serves."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import shmbroker
from shmbroker import ConnectionClosed, Unconfirmed
from shmbroker.netbridge.broker import standby, whereabouts
from shmbroker.netbridge.remote.action import Event
from shmbroker.perf.machine.port import free_port
from tests.cli.command import eventually
from tests.conftest import vhost_for_a_while
from tests.netbridge.broker.conftest import PASSWORD, PATIENT, SITE, TIMES, hup
from tests.support.fall import falls_when, reload_falls
from tests.support.link import PATIENCE
from tests.support.runs import Run
from tests.support.small_disk import empty, fill, small_disk

SHM = "prefer-shared-memory=false"


@dataclass
class Group:
    """`live` and `backup` of one store."""

    live: Run
    backup: Run
    ports: tuple[int, int]
    vhost: str
    opened: ExitStack

    def address(self, which: int) -> str:
        return f"tcp://127.0.0.1:{self.ports[which]}"

    def member(self, which: int) -> str:
        """As it stands in a list."""
        return f"{self.address(which)}?{PATIENT}"

    def uri(self, *order: int, more: str = "") -> str:
        members = ",".join(self.member(each) for each in order)
        return f"failover:({members})?randomize=false&{SHM}{more}"

    def program(self, uri: str, **options: Any) -> Any:
        made = shmbroker.connect(uri, user="site", password=PASSWORD, **options)
        self.opened.callback(made.close)
        return made

    def up(self) -> None:
        self.live.start().becomes("live")
        listening(self.live)
        self.backup.start().becomes("passive")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """The store of the group, on a disk of its own."""
    with small_disk(tmp_path / "store", 64 << 20) as mounted:
        yield mounted


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    with ExitStack() as opened:
        vhost = opened.enter_context(vhost_for_a_while())
        ports = free_port(), free_port()
        runs = []
        for name, role, port in zip(("first", "second"), ("live", "backup"), ports, strict=True):
            run = Run(tmp_path / name, vhost, role, {
                "store.path": str(tmp_path / "store"),
                "acceptors.site.uri": f"tcp://127.0.0.1:{port}",
                "acceptors.site.roles": ["client", "peering"],
                **{f"link-defaults.{key}": each for key, each in TIMES.items()},
                **SITE, "credentials.site.role": ["client", "peering"],
            })  # fmt: skip
            opened.callback(run.kill)
            runs.append(run)
        yield Group(runs[0], runs[1], ports, vhost, opened)


def listening(run: Run) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if any(each["event"] == "acceptor" for each in run.said()):
            return
        time.sleep(0.01)
    raise AssertionError(run.said()[-5:])


def test_a_live_without_its_network_thread_has_failed_and_its_backup_serves(group: Group) -> None:
    file = group.live.folder / "fall"
    group.live.before = partial(falls_when, file)
    group.up()
    group.program(group.uri(0))
    file.touch()
    assert group.live.ends() == 1
    assert "the network thread has ended" in group.live.why("failed")
    assert "RuntimeError: it fell" in group.live.why("failed")
    group.backup.becomes("live")


def test_a_live_whose_network_cannot_be_changed_has_failed_and_its_backup_serves(
    group: Group,
) -> None:
    """It stood still, and so did all who waited for it."""
    group.live.before = reload_falls
    group.up()
    hup(group.live)
    assert group.live.ends() == 1
    assert "RuntimeError: it fell" in group.live.why("failed")
    group.backup.becomes("live")


def test_a_full_disk_keeps_no_network_from_serving_and_none_from_ending(
    disk: Path, group: Group
) -> None:
    """What it could not tell its group it tells when there is room."""
    group.up()
    eventually((disk / standby.FOLDER / "second").exists)
    assert group.backup.process is not None
    # a disk has room again as soon as any file goes: this is in its way for as long as it is there
    obstacle = disk / f".{whereabouts.FILE}-{group.backup.process.pid}"
    obstacle.mkdir()
    fill(disk)
    group.live.kill()
    group.backup.becomes("live")
    program = group.program(group.uri(1))
    eventually(lambda: program.uri == group.member(1))
    program.close()
    assert whereabouts.read(disk, 2) is None
    empty(disk)
    obstacle.rmdir()
    eventually(lambda: whereabouts.read(disk, 2))
    fill(disk)
    assert group.backup.stop() == 0
    assert "stopped" in group.backup.events()


def test_a_backup_that_had_no_room_to_say_that_it_waits_says_so_later(
    disk: Path, group: Group
) -> None:
    group.live.start().becomes("live")
    listening(group.live)
    program = group.program(group.uri(0))
    knows(program, "live")
    fill(disk)
    group.backup.start().becomes("passive")
    eventually(lambda: "network" in group.backup.events())
    assert not (disk / standby.FOLDER / "second").exists()
    empty(disk)
    knows(program, "backup", "live")


def test_a_passive_broker_says_so_and_the_next_member_is_taken(group: Group) -> None:
    group.up()
    listening(group.backup)
    with pytest.raises(ConnectionClosed, match="passive"):
        group.program(f"{group.address(1)}?{SHM}")
    program = group.program(group.uri(1, 0))
    assert program.uri == group.member(0)
    told = [(each.uri, each.standing, each.name) for each in program.topology()]
    assert told == [(group.member(1), "backup", ""), (group.member(0), "live", "first")]
    program.declare_queue("q").publish(b"to the live")
    assert not [each for each in group.backup.said() if each.get("what")], "no line for that"


def test_who_reached_a_passive_broker_alone_hears_that(group: Group) -> None:
    """The live that it names stands still."""
    group.up()
    listening(group.backup)
    assert group.live.process is not None
    group.live.process.stop()
    try:
        with pytest.raises(ConnectionClosed, match="passive"):
            group.program(group.uri(1, more="&reconnect-deadline=10s"))
    finally:
        group.live.process.go_on()


def test_it_names_the_live(group: Group) -> None:
    group.up()
    listening(group.backup)
    told = whereabouts.read(group.live.folder.parent / "store", epoch=1)
    assert told is not None
    assert told.uri == group.address(0)
    # two that are not there stand before the live, and it is tried next all the same
    gone = [f"tcp://127.0.0.1:{free_port()}" for _ in range(2)]
    members = ",".join((group.address(1), *gone, group.address(0)))
    began = time.monotonic()
    program = group.program(f"failover:({members})?randomize=false&{SHM}")
    assert program.uri == group.address(0)
    assert time.monotonic() - began < PATIENCE


def knows(program: Any, *standings: str) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        told = [each.standing for each in program.topology()]
        if told == list(standings):
            return
        time.sleep(0.01)
    raise AssertionError(program.topology())


def test_a_program_is_told_of_a_backup_that_its_list_does_not_have(group: Group) -> None:
    group.live.start().becomes("live")
    listening(group.live)
    program = group.program(group.uri(0))
    queue = program.declare_queue("q")
    knows(program, "live")
    group.backup.start().becomes("passive")
    knows(program, "backup", "live")
    group.live.kill()
    assert queue.publish(b"at the second") == 0
    assert program.uri == group.address(1)
    knows(program, "live", "live")


def test_a_backup_that_stops_is_no_member_any_more(group: Group) -> None:
    group.live.start().becomes("live")
    listening(group.live)
    program = group.program(group.uri(0))
    program.declare_queue("q")
    group.backup.start().becomes("passive")
    knows(program, "backup", "live")
    assert group.backup.stop() == 0
    knows(program, "live")


class Publisher(threading.Thread):
    """Numbers, one after the other, each confirmed before the next; until it is told to end."""

    def __init__(self, queue: Any) -> None:
        super().__init__(daemon=True)
        self.queue, self.confirmed = queue, 0
        self.ends = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.ends.is_set():
                number = b"%d" % self.confirmed
                self.queue.publish(number, message_id=f"m{self.confirmed}", timeout=PATIENCE)
                self.confirmed += 1
        except BaseException as error:  # noqa: BLE001  # the test looks at it
            self.error = error

    def reaches(self, count: int) -> None:
        until = time.monotonic() + PATIENCE
        while self.confirmed < count and self.error is None and time.monotonic() < until:
            time.sleep(0.005)
        assert self.error is None, self.error
        assert self.confirmed >= count


def test_a_program_goes_on_at_the_backup(group: Group) -> None:
    group.up()
    listening(group.backup)
    events: list[Event] = []
    sender = group.program(group.uri(0, 1))
    sender.on_event(lambda event, _: events.append(event))
    queue = sender.declare_queue("orders", durable=True, slots=1 << 14)
    got: Counter[bytes] = Counter()
    flagged: Counter[bytes] = Counter()
    publisher = Publisher(queue)
    publisher.start()
    publisher.reaches(50)
    taker = group.program(group.uri(0, 1))
    is_killed = False
    for message in taker.queue("orders").consume(prefetch=20, timeout=PATIENCE):
        got[message.body] += 1
        flagged[message.body] += message.redelivered
        if len(got) == 30 and not is_killed:
            group.live.kill()
            is_killed = True
            publisher.reaches(publisher.confirmed + 50)
            publisher.ends.set()
            publisher.join(PATIENCE)
        if is_killed and len(got) >= publisher.confirmed:
            break
    assert sender.uri == taker.uri == group.member(1)
    assert set(got) == {b"%d" % each for each in range(publisher.confirmed)}
    assert all(count <= 1 + flagged[body] for body, count in got.items()), "twice, and not flagged"
    with shmbroker.connect(f"shm://{group.vhost}") as local:
        assert local.queue("orders").statistics().published == publisher.confirmed
    assert events[:2] == [Event.FAILURE_DETECTED, Event.FAILOVER_COMPLETED]
    assert set(events[2:]) <= {Event.FAILURE_DETECTED, Event.REATTACHED}, "it moves once"


@pytest.mark.parametrize(
    ("mode", "events"),
    [
        ("automatic", [Event.MOVING, Event.FAILURE_DETECTED, Event.FAILOVER_COMPLETED]),
        ("application", [Event.MOVED]),
    ],
)
def test_programs_are_told_where_a_failback_takes_them(
    group: Group, mode: str, events: list[Event]
) -> None:
    group.up()
    listening(group.backup)
    group.live.kill()
    group.backup.becomes("live")
    options = f"{SHM}&startup-max-reconnect-attempts=-1&failover-mode={mode}"
    program = group.program(f"failover:({group.member(1)})?{options}")
    told: SimpleQueue[tuple[Event, str]] = SimpleQueue()
    program.on_event(lambda event, detail: told.put((event, detail)))
    orders = program.declare_queue("orders", durable=True)
    knows(program, "live")
    # as of one that died while it waited for this live to end
    standby.write(group.live.folder.parent / "store", "gone", 2, f"tcp://127.0.0.1:{free_port()}")
    group.live.start().becomes("live")
    found = [told.get(timeout=PATIENCE) for _ in events]
    assert [event for event, _ in found] == events
    assert found[0][1] == group.address(0)
    if mode == "automatic":
        orders.publish(b"there", timeout=PATIENCE)
        assert program.uri == group.address(0)


def test_a_program_that_decides_itself_is_told_how_it_was_lost(group: Group) -> None:
    group.up()
    listening(group.backup)
    events: list[tuple[Event, str]] = []
    told = threading.Event()

    def listen(event: Event, detail: str) -> None:
        events.append((event, detail))
        told.set()

    program = group.program(group.uri(0, 1, more="&failover-mode=application"))
    program.on_event(listen)
    queue = program.declare_queue("orders", durable=True)
    publisher = Publisher(queue)
    publisher.start()
    publisher.reaches(20)
    group.live.kill()
    assert told.wait(PATIENCE)
    publisher.join(PATIENCE)
    assert [event for event, _ in events] == [Event.LOST]
    error = publisher.error
    assert isinstance(error, (Unconfirmed, ConnectionClosed))
    group.backup.becomes("live")
    group.program(group.uri(0, 1)).close()  # its network serves a moment later: this waits for that
    program.reconnect()
    if isinstance(error, Unconfirmed):
        assert error.token is not None
        program.retry(error.token)
        publisher.confirmed += 1
    queue.publish(b"goes on")
    assert queue.statistics().published == publisher.confirmed + 1
    told.clear()
    assert group.backup.stop() == 0
    assert told.wait(PATIENCE)
    assert [event for event, _ in events] == [Event.LOST, Event.CLOSED]
    assert [each.standing for each in program.topology()] == ["live", "live"], "as it was known"
    with pytest.raises(ConnectionClosed, match="nobody listens"):
        program.reconnect()
    assert [event for event, _ in events][2:] == [Event.REFUSED]


def test_who_waits_is_told_when_the_backup_serves(group: Group) -> None:
    """By the connection that was refused: the pause until the next round is an hour."""
    group.up()
    listening(group.backup)
    program = group.program(
        group.uri(1, 0, more="&initial-reconnect-delay=1h&max-reconnect-delay=1h"
                             "&reconnect-deadline=-1")
    )  # fmt: skip
    queue = program.declare_queue("q")
    group.live.kill()
    assert queue.publish(b"at the second") == 0
    assert program.uri == group.member(1)
