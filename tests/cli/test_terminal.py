"""What is different at a terminal: questions, a progress line, and `top` in place."""

from __future__ import annotations

import pytest

from tests.cli.command import Shell
from tests.cli.terminal import terminal

CTRL_C = b"\x03"


@pytest.fixture
def orders(shell: Shell) -> Shell:
    shell.does("queue", "declare", "orders", "--slots", "64")
    shell.does("pub", "orders", "x")
    return shell


@pytest.mark.parametrize(("answer", "code", "left"), [(b"y", 0, []), (b"n", 1, ["x"])])
def test_what_destroys_asks(orders: Shell, answer: bytes, code: int, left: list[str]) -> None:
    with terminal(orders, "queue", "purge", "orders") as person:
        person.until(lambda drawn: b"[y/N]" in drawn)
        person.press(answer + b"\n")
        assert person.end() == code
    assert orders.bodies("orders") == left


def test_progress(orders: Shell) -> None:
    arguments = ["--destination", "orders", "--message-count", "5", "--sleep", "120ms"]
    with terminal(orders, "producer", *arguments) as person:
        assert person.end() == 0
        assert b"produced 3 (60 %)" in person.drawn
        assert person.drawn.endswith(b"/s\r\n")


@pytest.mark.parametrize(("key", "code"), [(b"q", 0), (CTRL_C, 130)], ids=["q", "Ctrl-C"])
def test_top_redraws_in_place_until_a_key(orders: Shell, key: bytes, code: int) -> None:
    with terminal(orders, "top", "--interval", "50ms") as person:
        before = person.settings
        person.until(lambda drawn: drawn.count(b"\x1b[H") > 3)
        assert person.settings != before
        person.press(key)
        assert person.end() == code
        assert person.settings == before
    assert b"orders" in person.drawn
    assert person.drawn.count(b"\x1b[?1049h") == 1
    assert person.drawn.index(b"\x1b[?1049l") > person.drawn.rindex(b"orders")
    assert b"Traceback" not in person.drawn
