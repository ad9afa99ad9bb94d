"""What a listener does while much comes, and while connections come and go."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
import zmq
from zmq import curve_keypair
from zmq.utils import z85

from shmbroker import Broker
from shmbroker.netbridge.carrier import listener as module
from shmbroker.netbridge.carrier.dialled import Dialled
from shmbroker.netbridge.carrier.link import Link
from shmbroker.netbridge.carrier.listener import Listener
from shmbroker.netbridge.carrier.monitor import Event
from shmbroker.netbridge.carrier.socket import RECEIVED_MAX
from shmbroker.netbridge.carrier.source import Shipped
from shmbroker.netbridge.carrier.thread import NetworkThread
from shmbroker.netbridge.link.handshake import Near
from shmbroker.netbridge.link.peer import Identity, Wish
from shmbroker.netbridge.link.times import LinkTimes
from shmbroker.netbridge.security.credential import Credential, Credentials
from shmbroker.netbridge.security.curve import public_of
from shmbroker.netbridge.security.proof import Channel, NearEnd
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.frame import Refused
from shmbroker.netbridge.wire.words import Refusal, Role, Standing, TargetKind
from shmbroker.perf.machine.port import free_port
from tests.support.link import SITE, credential_of

OURS = Identity(b"o" * 16, b"i" * 16, "ours", Standing.LIVE, 0)
OLD, NEW = b"old", b"new"
FRAMES = 5000


class Part:
    """Of a message of this peer."""

    def __init__(self, peer: bytes, descriptor: int) -> None:
        self.bytes = self.buffer = peer
        self._said = {zmq.SRCFD: descriptor, "User-Id": "00" * 32, "Peer-Address": "there"}

    def get(self, what: object) -> Any:
        return self._said[what]  # type: ignore[index]


class Scripted:
    """A listener whose monitor and socket say what stands here."""

    def __init__(self, opened: ExitStack, thread: NetworkThread) -> None:
        here, there = (opened.enter_context(each) for each in socket.socketpair())
        self.old, self.new = here.fileno(), there.fileno()
        self.events: list[tuple[Event, int]] = []
        self.messages: list[tuple[bytes, int]] = []
        address = f"tcp://127.0.0.1:{free_port()}"
        self.listener = opened.enter_context(
            Listener(thread, address, SITE.keys[0], Credentials([SITE]), OURS)
        )
        self.taken = 0

    def told(self) -> Iterator[tuple[Event, int]]:
        while self.events:
            yield self.events.pop(0)

    def next(self, *, is_signalled: bool = False) -> list[Any] | None:
        self.taken += 1
        assert self.taken < FRAMES, "others have no turn"
        if not self.messages:
            return None
        peer, descriptor = self.messages[0]
        if len(self.messages) > 1:
            self.messages.pop(0)
        return [Part(peer, descriptor), Part(b"", descriptor)]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Do this in the thread of a listener that is scripted."""
    with ExitStack() as opened:
        thread = opened.enter_context(NetworkThread())
        made = Scripted(opened, thread)

        def step(what: Callable[[Scripted], Any]) -> Any:
            def steps() -> Any:
                with monkeypatch.context() as patched:
                    patched.setattr(made.listener._monitor, "events", made.told)
                    patched.setattr(made.listener._received, "next", made.next)
                    patched.setattr(
                        module, "is_readable", lambda _: bool(made.messages), raising=False
                    )
                    return what(made)

            return thread.ask(steps)

        yield step


def test_who_comes_as_another_one_goes_is_heard(scripted: Callable[..., Any]) -> None:
    def step(made: Scripted) -> bool:
        listener = made.listener
        made.events = [(Event.ACCEPTED, made.old)]
        listener._happened()
        listener._came(OLD, Part(OLD, made.old))
        made.events = [(Event.DISCONNECTED, made.old), (Event.ACCEPTED, made.new)]
        listener._take = _once(listener, NEW, made.new)  # type: ignore[method-assign]
        listener._happened()
        del listener._take  # type: ignore[method-assign]
        return NEW in listener._peers and OLD not in listener._peers

    assert scripted(step), "its first frame would be lost"


def _once(listener: Listener, peer: bytes, descriptor: int) -> Callable[..., bool]:
    """A first frame comes, and no more."""
    left = [peer]

    def take(*, is_signalled: bool = False) -> bool:
        if not left:
            return False
        listener._came(left.pop(), Part(peer, descriptor))
        return True

    return take


def test_who_goes_while_much_comes_holds_nobody_up(scripted: Callable[..., Any]) -> None:
    """What it had sent counts, and is among so many."""

    def step(made: Scripted) -> tuple[int, int]:
        listener = made.listener
        made.events = [(Event.ACCEPTED, made.old), (Event.ACCEPTED, made.new)]
        listener._happened()
        listener._came(OLD, Part(OLD, made.old))
        listener._came(NEW, Part(NEW, made.new))
        heard: list[object] = []
        listener._peers[OLD].arrived = heard.append  # type: ignore[union-attr,method-assign]
        many = [(NEW, made.new)] * RECEIVED_MAX
        made.events = [(Event.DISCONNECTED, made.old)]
        made.messages = [*many, (OLD, made.old), (NEW, made.new)]
        listener._happened()
        turns = 1
        while OLD in listener._peers:
            listener._readable()
            turns += 1
        made.messages.clear()
        listener._readable()
        return len(heard), turns

    heard, turns = scripted(step)
    assert heard == 1
    assert turns <= 2


def test_a_listener_that_is_behind_beats(scripted: Callable[..., Any]) -> None:
    """And judges nobody by what it has not read yet."""

    def step(made: Scripted) -> int:
        listener = made.listener
        made.events = [(Event.ACCEPTED, made.new)]
        listener._happened()
        listener._came(NEW, Part(NEW, made.new))
        (end,) = listener._ids
        woken: list[float] = []
        end.woken = lambda now, heard=0.0: woken.append(heard)  # type: ignore[method-assign]
        end.due = 0.0
        listener._deadlines.look(end)
        made.messages = [(NEW, made.new)]
        listener._peers[NEW] = None  # what comes is of no interest
        listener._readable()
        listener.woken(1e12)
        made.messages.clear()
        listener._readable()
        assert all(each < 1e12 for each in woken), "what has come may be what it waits for"
        return len(woken)

    assert scripted(step) == 1


class Served:
    """Links of members of a cluster."""

    def __init__(self) -> None:
        self.there: list[object] = []
        self.has_come = threading.Event()

    def came(self, end: object) -> None:
        self.there.append(end)
        self.has_come.set()

    def heard(self, end: object, frame: object) -> None:
        """Nothing is said."""

    def gone(self, end: object) -> None:
        if end in self.there:  # else it was refused
            self.there.remove(end)


TIMES = LinkTimes(heartbeat_interval=20.0, connect_timeout=60.0, handshake_timeout=60.0)
MINE = Identity(b"m" * 16, b"i" * 16, "mine", Standing.LIVE, 0)
PATIENCE = 60.0


def of_cluster(password: str) -> Credential:
    return Credential("town", "town", (Role.CLUSTER,), (Stretched("town", password),))


def listening(
    opened: ExitStack, thread: NetworkThread, known: Credential, served: Served
) -> Listener:
    return opened.enter_context(
        Listener(
            thread, f"tcp://127.0.0.1:{free_port()}", known.keys[0], Credentials([known]), OURS,
            roles=frozenset({Role.CLUSTER}), times=TIMES, clusters=served,
        )
    )  # fmt: skip


def dialled(
    opened: ExitStack, thread: NetworkThread, listener: Listener, known: Credential,
    tell: Callable[[Any], None] = lambda _: None,
) -> Dialled:  # fmt: skip
    return opened.enter_context(
        Dialled(
            Served(), thread, "link", listener.address, known, MINE, (), times=TIMES,
            role=Role.CLUSTER, refused_retry=3600.0, tell=tell,
        )
    )  # fmt: skip


def test_who_says_no_goodbye_to_a_listener_that_is_closed_is_gone() -> None:
    """Else whoever serves its link would believe for ever that it is there."""
    goes_on, served = threading.Event(), Served()
    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread()) for _ in range(2))
        known = of_cluster("correct horse battery")
        listener = listening(opened, far, known, served)
        dialled(opened, near, listener, known)
        assert served.has_come.wait(PATIENCE)
        near.call(lambda: goes_on.wait(PATIENCE))
        listener.close()
        assert served.there == []
        goes_on.set()


def test_a_link_goes_by_the_credentials_that_its_thread_has_learnt() -> None:
    """One that was refused is tried again at once; so is one that is made of what was read
    before."""
    old, new, refused = of_cluster("an old password"), of_cluster("a new one"), threading.Event()

    def tell(line: Any) -> None:
        if line.get("state") == "refused":
            refused.set()

    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread()) for _ in range(2))
        served = [Served(), Served()]
        first, second = (listening(opened, far, new, each) for each in served)
        dialled(opened, near, first, old, tell)
        assert refused.wait(PATIENCE)
        near.learns(Credentials([new]))
        assert served[0].has_come.wait(PATIENCE)
        dialled(opened, near, second, old)
        assert served[1].has_come.wait(PATIENCE)


def test_a_broker_that_takes_no_messages_of_its_cluster_says_so(broker: Broker) -> None:
    """It has told of no queue, but what was for it before may still be shipped."""
    broker.declare_queue("outbox")
    refused = threading.Event()

    def shows(link: Link) -> None:
        if "its max-hops is 0" in link.why:
            refused.set()

    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread(each)) for each in (broker, None))
        known = of_cluster("correct horse battery")
        listener = listening(opened, far, known, Served())
        link = Link(
            near, "forwarding", listener.address, known, MINE,
            [Shipped("outbox", OURS.node.hex(), TargetKind.NODE)], times=TIMES, role=Role.CLUSTER,
            shows=shows,
        )  # fmt: skip
        opened.enter_context(link)
        assert refused.wait(PATIENCE)
        assert near.ask(lambda: link.state) != "up"


@pytest.mark.parametrize("known", [
    Credentials([credential_of("a new password")]), Credentials([SITE], known_keys={}),
])  # fmt: skip
@pytest.mark.parametrize("ends_links", [True, False])
def test_who_shakes_hands_at_a_reload_proves_what_is_known_by_then(
    scripted: Callable[..., Any], known: Credentials, ends_links: bool
) -> None:
    times = LinkTimes()

    def step(made: Scripted) -> None:
        listener = made.listener
        made.events = [(Event.ACCEPTED, made.old)]
        listener._came(OLD, Part(OLD, made.old))
        end = listener._peers[OLD]
        assert end is not None
        far = end.machine.handshake
        one = NearEnd(SITE, SITE.keys[0], Channel(bytes(32), listener._public), b"c" * 32)
        near = Near(MINE, Wish("", "a link", Role.PEERING, SITE.user), one, one)
        [hello] = near.begin(times)
        [challenge] = far.take(hello, times, 0)
        [proof] = near.take(challenge, times, 0)
        listener._thread.known_keys = known.known_keys
        if ends_links:
            listener._admit(known, frozenset({Role.PEERING}))
        else:
            listener.learns(known)
        said = far.take(proof, times, 0)
        assert next(said) == Refused(Refusal.CREDENTIALS, "", "")

    scripted(step)


def test_a_program_does_not_take_the_place_of_a_broker() -> None:
    """It says another one's node and name of a link, and has no more than its own role."""
    broker = Credential("site", "site", (Role.PEERING,), (Stretched("site", "correct horse"),))
    program = Credential("app", "app", (Role.CLIENT,), (Stretched("app", "battery staple"),))
    theirs = Identity(b"t" * 16, b"u" * 16, "theirs", Standing.LIVE, 0)
    told: list[Mapping[str, Any]] = []
    key = public_of(broker.keys[0].listening).hex()
    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread()) for _ in range(2))
        listener = opened.enter_context(
            Listener(
                far, "tcp://127.0.0.1:0", broker.keys[0], Credentials([broker, program]), theirs,
                roles=frozenset({Role.PEERING, Role.CLIENT}), times=TIMES, tell=told.append,
            )
        )  # fmt: skip
        for credential in (broker, program):
            is_up = threading.Event()

            def tell(line: Mapping[str, Any], is_up: threading.Event = is_up) -> None:
                if line.get("state") == "up":
                    is_up.set()

            link = Link(
                near, "a link", f"{listener.address}?key={key}", credential, OURS, (),
                times=TIMES, role=credential.roles[0], tell=tell,
            )  # fmt: skip
            opened.enter_context(link)
            assert is_up.wait(PATIENCE)
        assert [each["state"] for each in far.ask(lambda: list(told))] == ["up", "up"]


MANY = 20_000
"""Parts of one message."""


def test_a_message_of_very_many_parts_holds_nobody_up() -> None:
    """Anybody may send one, before any proof; the thread has other turns meanwhile."""
    site = Credential("site", "site", (Role.PEERING,), (Stretched("site", "correct horse"),))
    theirs = Identity(b"t" * 16, b"u" * 16, "theirs", Standing.LIVE, 0)
    is_up = threading.Event()

    def tell(line: Mapping[str, Any]) -> None:
        if line.get("state") == "up":
            is_up.set()

    with ExitStack() as opened:
        near, far = (opened.enter_context(NetworkThread()) for _ in range(2))
        listener = opened.enter_context(
            Listener(
                far, "tcp://127.0.0.1:0", site.keys[0], Credentials([site]), theirs,
                roles=frozenset({Role.PEERING}), times=TIMES,
            )
        )  # fmt: skip
        turns: list[bool] = []
        readable = listener._readable
        is_dropped = threading.Event()

        def counted() -> None:
            readable()
            turns.append(listener._received.has_rest)
            if turns[-2:] == [True, False]:
                is_dropped.set()

        far.ask(lambda: far.remove(listener._socket))
        far.ask(lambda: far.add(listener._socket, counted))
        public, secret = curve_keypair()
        stranger = near.context.socket(zmq.DEALER)
        opened.callback(stranger.close, 0)
        stranger.curve_publickey, stranger.curve_secretkey = public, secret
        stranger.curve_serverkey = z85.encode(public_of(site.keys[0].listening))
        stranger.connect(listener.address)
        stranger.send_multipart([b""] * MANY)
        assert is_dropped.wait(PATIENCE)
        assert turns.count(True) > 1, "its rest was dropped in one turn"
        link = Link(
            near, "a link", listener.address, site, OURS, (), times=TIMES, role=Role.PEERING,
            tell=tell,
        )  # fmt: skip
        opened.enter_context(link)
        assert is_up.wait(PATIENCE)
