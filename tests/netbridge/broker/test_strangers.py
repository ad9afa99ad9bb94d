"""Strangers at a broker: its memory stays bounded, its log short, and its links go on."""

from __future__ import annotations

import os
import resource
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import zmq
from zmq.utils import z85

from shmbroker.ipc.instance import reloading
from shmbroker.netbridge.carrier.accepted import CONNECTIONS_MAX
from shmbroker.netbridge.security.curve import new_pair, public_of
from shmbroker.netbridge.security.key_file import KnownKey, create, trust
from shmbroker.netbridge.security.stretched import Stretched
from shmbroker.netbridge.wire.words import Role
from tests.netbridge.broker.conftest import PASSWORD, Two
from tests.support.link import PATIENCE, SOURCE, TARGET

MEMORY_MAX = 100 << 20
"""What so many strangers may cost: 50 KiB for each connection."""
SPOKEN = ("a stranger was refused", "too many connections", "too many links")


def memory_of(process: Any) -> int:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def quick(two: Two) -> None:
    two.write(two.far, **{"link-defaults.handshake-timeout": "500ms"})


def lines_of_strangers(two: Two) -> list[str]:
    return [str(each.get("what")) for each in two.lines(two.far, "link") if "what" in each]


@contextmanager
def connections(two: Two, count: int, says: bytes) -> Iterator[list[socket.socket]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 500)), hard))
    with ExitStack() as opened:
        made = []
        for _ in range(count):
            each = opened.enter_context(socket.create_connection(("127.0.0.1", two.port)))
            each.sendall(says)
            made.append(each)
        yield made


def are_closed(sockets: list[socket.socket]) -> None:
    until = time.monotonic() + PATIENCE
    for each in sockets:
        each.settimeout(max(0.1, until - time.monotonic()))
        try:
            while each.recv(1 << 16):
                pass
        except ConnectionResetError:
            pass


def test_two_thousand_connections_at_once(two: Two) -> None:
    quick(two)
    near, far = two.started()
    two.becomes("up")
    before = memory_of(two.far.process)
    with connections(two, CONNECTIONS_MAX + 100, b"") as made:
        near.queue(SOURCE).publish(b"in the crowd")
        assert far.queue(TARGET).receive(timeout=PATIENCE) == b"in the crowd"
        assert memory_of(two.far.process) - before < MEMORY_MAX
        are_closed(made)
    told = lines_of_strangers(two)
    assert set(told) <= set(SPOKEN)
    assert len(told) == len(set(told)), "one line each, however many there were"
    assert told
    assert two.becomes("up")["losses"] == 0


def test_who_says_half_a_handshake_or_garbage_is_closed(two: Two) -> None:
    quick(two)
    two.started()
    two.becomes("up")
    greeting = b"\xff" + bytes(8) + b"\x7f\x03\x01CURVE" + bytes(15)
    for says in (greeting[:5], greeting + bytes(32), b"GET / HTTP/1.1\r\n\r\n"):
        with connections(two, 20, says) as made:
            are_closed(made)
    assert lines_of_strangers(two) == ["a stranger was refused"]
    assert two.link()["losses"] == 0


@contextmanager
def knowing_the_key(two: Two) -> Iterator[Any]:
    """It knows the public key of the acceptor, and nothing else."""
    far = public_of(Stretched("site", PASSWORD).listening)
    ours = new_pair()
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.setsockopt(zmq.LINGER, 0)
        dealer.setsockopt(zmq.RECONNECT_IVL, -1)
        dealer.setsockopt(zmq.CURVE_PUBLICKEY, z85.encode(ours[0]))
        dealer.setsockopt(zmq.CURVE_SECRETKEY, z85.encode(ours[1]))
        dealer.setsockopt(zmq.CURVE_SERVERKEY, z85.encode(far))
        monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
        try:
            dealer.connect(f"tcp://127.0.0.1:{two.port}")
            assert monitor.poll(PATIENCE * 1000)
            monitor.recv_multipart()
            yield dealer, monitor
        finally:
            dealer.disable_monitor()


def test_who_knows_the_key_and_says_nothing_is_closed(two: Two) -> None:
    quick(two)
    two.started()
    with knowing_the_key(two) as (_, monitor):
        assert monitor.poll(PATIENCE * 1000), "it is closed"


def test_who_floods_without_a_proof_is_closed(two: Two) -> None:
    quick(two)
    two.started()
    two.becomes("up")
    before = memory_of(two.far.process)
    with knowing_the_key(two) as (dealer, monitor):
        sent, until = 0, time.monotonic() + PATIENCE
        while not monitor.poll(0) and time.monotonic() < until:
            with suppress(zmq.Again):
                dealer.send(bytes(1 << 20), zmq.NOBLOCK)
                sent += 1
        assert monitor.poll(0), f"after {sent} MiB"
    assert memory_of(two.far.process) - before < MEMORY_MAX
    assert lines_of_strangers(two) == ["a stranger was refused"]
    assert two.link()["losses"] == 0


def test_a_key_that_is_not_known_is_refused(two: Two) -> None:
    """With security.known-keys the password is not enough."""
    known = two.far.folder / "known.keys"
    known.touch(0o600)
    two.write(two.far, **{"security.known-keys": "known.keys"})
    two.write(two.near, **{"security.key-file": "near.key",
                           "bridges.to-far.refused-retry-interval": "100ms"})  # fmt: skip
    pair = create(two.near.folder / "near.key")
    two.far.start().becomes("live")
    two.near.start().becomes("live")
    near, far = two.connected("near"), two.connected("far")
    far.declare_queue(TARGET)
    near.declare_queue(SOURCE).publish(b"known")
    two.becomes("refused")
    trust(known, KnownKey(pair.public, (Role.CLIENT,), "for clients only"))
    two.reload(two.far)
    until = time.monotonic() + PATIENCE
    while two.link()["reason"] != "credentials" and time.monotonic() < until:
        time.sleep(0.01)
    assert two.link()["reason"] == "credentials", "it is known, and not for this"
    trust(known, KnownKey(pair.public, (Role.PEERING,), "near"))
    two.reload(two.far)
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"known"


def test_links_of_a_key_that_is_not_known_any_more_end(two: Two) -> None:
    pair = create(two.near.folder / "near.key")
    known = two.far.folder / "known.keys"
    trust(known, KnownKey(pair.public, (Role.PEERING,), "near"))
    two.write(two.far, **{"security.known-keys": "known.keys"})
    two.write(two.near, **{"security.key-file": "near.key",
                           "bridges.to-far.refused-retry-interval": "100ms"})  # fmt: skip
    two.started()
    two.becomes("up")
    trust(known, KnownKey(pair.public, (Role.CLIENT,), "for clients only"))
    two.reload(two.far)
    two.becomes("refused")
    trust(known, KnownKey(pair.public, (Role.PEERING,), "near"))
    two.reload(two.far)
    two.becomes("up")
    known.write_text("")
    two.reload(two.far)
    two.becomes("unreachable")


def test_files_of_keys_are_read_before_anything_is_done(two: Two) -> None:
    known = two.far.folder / "known.keys"
    known.touch(0o600)
    known.write_text("nonsense client me\n")
    wrong = f"{known}, line 1: a public key has 64 hexadecimal digits"
    two.write(two.far, **{"security.known-keys": "known.keys"})
    assert two.far.start().ends() == 1
    assert wrong in two.far.errors()
    two.write(two.far, **{"security.known-keys": None})
    near, far = two.started()
    two.becomes("up")
    more: dict[str, object]
    for more, why in [
        ({"security.known-keys": "known.keys"}, wrong),
        ({"security.known-keys": "."}, "Is a directory"),
        ({"security.known-keys": None, "security.key-file": "none"}, "No such file"),
    ]:
        two.write(two.far, **more, **{"credentials.site.password": PASSWORD + " no more"})
        answer = reloading.asked(two.far.folder, PATIENCE)
        assert answer is not None
        assert why in answer["why"]
    near.queue(SOURCE).publish(b"as before")
    assert far.queue(TARGET).receive(timeout=PATIENCE) == b"as before"
    assert two.link()["losses"] == 0
