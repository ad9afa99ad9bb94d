"""The log of a broker's links: one line for a change, and of what repeats itself one a minute."""

from __future__ import annotations

import random
from typing import Any

from shmbroker.netbridge.broker.lines import WHILE_SECONDS, Lines
from shmbroker.netbridge.plan.action import Changed, Connect
from shmbroker.netbridge.plan.plans import drafts
from shmbroker.netbridge.plan.text import parse


class Log:
    def __init__(self) -> None:
        self.now = 0.0
        self.written: list[dict[str, Any]] = []
        self.lines = Lines(self._write, lambda: self.now)

    def _write(self, event: str, **fields: Any) -> None:
        self.written.append({"event": event, **fields})


def test_a_thousand_failed_rounds_are_one_line() -> None:
    log = Log()
    [draft] = drafts(parse("failover:(a,b)?warn-after-reconnect-attempts=3"))
    plan = draft.plan(random.Random(1))
    steps, rounds = list(plan.start(log.now)), 0
    while rounds < 1000:
        attempts = [each for each in steps if isinstance(each, Connect)]
        for each in steps:
            if isinstance(each, Changed):
                log.lines.tell({"event": "link", "link": "x", "state": each.state.value})
        steps = []
        if attempts:
            log.lines.tell({"event": "link", "link": "x", "what": "clocks differ", "detail": ""})
            steps = list(plan.attempt_failed(log.now, "connection refused"))
        else:
            rounds += 1
            assert plan.due is not None
            log.now = plan.due
            steps = list(plan.woken(log.now))
    states = [each["state"] for each in log.written if "state" in each]
    assert states == ["unreachable"]
    told = [each for each in log.written if "what" in each]
    assert len(told) <= log.now / WHILE_SECONDS + 1
    assert sum(each.get("left_out", 0) for each in told) > 1000


def test_a_line_says_how_many_were_left_out() -> None:
    log = Log()
    for _ in range(5):
        log.lines.tell({"event": "link", "what": "a stranger was refused", "detail": "x"})
    assert len(log.written) == 1
    log.now += WHILE_SECONDS
    log.lines.tell({"event": "link", "what": "a stranger was refused", "detail": "x"})
    assert log.written[1]["left_out"] == 4
