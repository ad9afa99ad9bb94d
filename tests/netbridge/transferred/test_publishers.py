"""What programs in C, and compiled loops of Numba, publish to an exchange with an agent: where it
goes is decided where they publish, and what nobody takes there comes back to them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

import shmbroker
from shmbroker import Broker
from shmbroker.ipc._native import ffi, lib
from tests.netbridge.networked.conftest import Brokers
from tests.netbridge.transferred.conftest import add, bound, forwarded, got, subscribed
from tests.support.compiler import NATIVE, compile_program

MODES = {"else": "forward-else", "both": "both"}
WHO = ("C", "Numba")
WISHES = {"-": 0, "mandatory": lib.SB_MANDATORY, "immediate": lib.SB_IMMEDIATE}
Sent = list[tuple[str, str, int]]
"""Key, wish and body."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Brokers, Broker, Broker]]:
    with ExitStack() as opened:
        brokers = Brokers(tmp_path_factory.mktemp("two"), opened)
        add(brokers, "far").start().becomes("live")
        given = [{"name": name, "to": "far", "mode": mode} for name, mode in MODES.items()]
        add(brokers, "near", *given).start().becomes("live")
        near, far = brokers.at("near"), brokers.at("far")
        for exchange in MODES:
            for who in WHO:
                bound(near, exchange, "direct", f"{exchange} {who}", key=f"{who} here")
            forwarded(brokers, near, exchange)
            for who in WHO:
                bound(far, exchange, "direct", f"{exchange} {who}", key=f"{who} there")
        subscribed(brokers, far, "both", len(WHO))
        yield brokers, near, far


def by_c(vhost: str, exchange: str, sent: Sent, returns: int, folder: Path) -> list[str]:
    program = compile_program(NATIVE / "agent_publisher.c", folder / "publisher")
    words = [str(word) for each in sent for word in each]
    command = [program, vhost, exchange, str(returns), *words]
    return subprocess.check_output(command, text=True, timeout=120).splitlines()


def by_numba(vhost: str, exchange: str, sent: Sent, returns: int, folder: Path) -> list[str]:
    from tests.netbridge.transferred.publishing import published

    with shmbroker.connect(f"shm://{vhost}") as broker:
        returned, kept, messages = broker.returned(), [], []
        for key, wish, body in sent:
            parts = [ffi.from_buffer(str(each).encode()) for each in (key, body)]
            made = ffi.new("sb_outgoing *", {
                "key": parts[0], "key_length": len(parts[0]), "body": parts[1],
                "length": len(parts[1]), "target": WISHES[wish],
            })  # fmt: skip
            kept += [parts, made]
            messages.append(int(ffi.cast("intptr_t", made)))
        counts = np.zeros(len(sent), np.int64)
        to = broker.exchange(exchange)._exchange
        published(int(ffi.cast("intptr_t", to)), np.array(messages), counts)
        told = [f"{body} to {count}" for (_, _, body), count in zip(sent, counts, strict=True)]
        back = [returned.receive(timeout=60).decode() for _ in range(returns)]
        return [*told, *(f"{each} came back" for each in back)]


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("exchange", MODES)
def test_it_goes_where_it_has_to_and_what_nobody_takes_comes_back(
    two: tuple[Brokers, Broker, Broker], exchange: str, who: str, tmp_path: Path
) -> None:
    _, near, far = two
    sent: Sent = [
        (f"{who} here", "-", 1),
        (f"{who} there", "-", 2),
        (f"{who} there", "mandatory", 3),
        ("nobody", "mandatory", 4),
        ("nobody", "immediate", 5),
    ]
    if exchange == "else":
        sent.append((f"{who} here", "immediate", 6))  # nobody consumes here
    publish = by_c if who == "C" else by_numba
    returns = [body for _, _, body in sent if body > 3]
    said = publish(near.vhost, exchange, sent, len(returns), tmp_path)
    assert said == [
        *(f"{body} to 1" for _, _, body in sent),
        *(f"{body} came back" for body in returns),
    ]
    assert got(near.queue(f"{exchange} {who}"), 1) == [1]
    assert got(far.queue(f"{exchange} {who}"), 2) == [2, 3]
