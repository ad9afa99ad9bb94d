"""Ports: whoever asks has one that nobody else was given, bound or not."""

from __future__ import annotations

import os

from shmbroker.perf.machine.port import BLOCK, Ports, free_port, is_free


def test_none_is_given_twice_also_before_it_is_bound() -> None:
    given = [free_port() for _ in range(3 * BLOCK)]
    assert len(set(given)) == len(given)
    assert all(is_free(each) for each in given[:3])


def test_another_process_that_asks_gets_others() -> None:
    ours, theirs = Ports(), Ports()  # a name is claimed once, whoever asks
    given = [each.next() for _ in range(2 * BLOCK) for each in (ours, theirs)]
    assert len(set(given)) == len(given)


def test_who_is_forked_leaves_what_is_left_to_its_parent() -> None:
    ports = Ports()
    first = ports.next()
    readable, writable = os.pipe()
    if os.fork() == 0:
        os.write(writable, " ".join(str(ports.next()) for _ in range(BLOCK)).encode())
        os._exit(0)
    os.wait()
    theirs = {int(each) for each in os.read(readable, 1 << 16).split()}
    for each in (readable, writable):
        os.close(each)
    ours = {first, *(ports.next() for _ in range(BLOCK - 1))}
    assert len(theirs) == len(ours) == BLOCK
    assert not theirs & ours
