"""Connections are counted, and shut when they are too many, too late, or over."""

from __future__ import annotations

import socket

import pytest

from shmbroker.netbridge.carrier import accepted
from shmbroker.netbridge.carrier.accepted import LAST_WORDS_SECONDS, Accepted


def is_shut(peer: socket.socket) -> bool:
    peer.setblocking(False)
    try:
        return peer.recv(1) == b""
    except BlockingIOError:
        return False


def test_one_too_many_is_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted, "CONNECTIONS_MAX", 2)
    pairs = [socket.socketpair() for _ in range(3)]
    found = Accepted(5.0)
    assert [found.came(ours.fileno(), 0.0) for ours, _ in pairs] == [True, True, False]
    assert [is_shut(peer) for _, peer in pairs] == [False, False, True]
    for pair in pairs:
        for each in pair:
            each.close()


def test_who_says_nothing_in_time_or_has_ended_is_shut() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    silent, ended, good = (ours.fileno() for ours, _ in pairs)
    found = Accepted(5.0)
    for each in (silent, ended, good):
        found.came(each, 0.0)
    found.spoke(ended)
    found.spoke(good)
    found.ended(ended, 1.0)
    assert found.due == 1.0 + LAST_WORDS_SECONDS
    assert found.shut_late(found.due) == 1
    assert found.shut_late(5.0) == 1
    assert [is_shut(peer) for _, peer in pairs] == [True, True, False]
    for pair in pairs:
        for each in pair:
            each.close()


def test_a_descriptor_that_is_of_another_socket_by_now_is_left_alone() -> None:
    former = socket.socketpair()
    found = Accepted(5.0)
    number = former[0].fileno()
    found.came(number, 0.0)
    for each in former:
        each.close()
    later = socket.socketpair()
    assert number in (each.fileno() for each in later), "the kernel gives the lowest"
    found.shut_late(10.0)
    assert not any(is_shut(each) for each in later)
    for each in later:
        each.close()
